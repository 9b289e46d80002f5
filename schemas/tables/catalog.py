"""All Delta tables by name: those that the modules beside this one declare, and answers."""

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from types import ModuleType
from typing import Protocol, TypeVar

from quotaflow.schemas import answer_head
from quotaflow.schemas.derived import Described
from quotaflow.schemas.levels import LEVELS
from quotaflow.schemas.table import Column, Table
from quotaflow.schemas.tables import (
    config_alterations,
    control,
    fetch_sizes,
    fetches,
    group_snapshots,
    groups,
    producer_ids,
    quality,
    quotas,
    read_faults,
    reassignments,
    remote_reads,
    replicas,
    requests,
    snapshots,
    telemetry,
    throttles,
    topology,
    traffic,
)

_SOURCE = re.compile(r"^--   from (\w+):", re.M)


class _Head(Protocol):
    """The head of a file that fills a table."""

    @property
    def table(self) -> Table:
        """The table."""
        ...


_AnyHead = TypeVar("_AnyHead", bound=_Head)


def _declared(*modules: ModuleType) -> dict[str, Table]:
    return {
        table.name: table
        for module in modules
        for table in vars(module).values()
        if isinstance(table, Table)
    }


def _read(
    folder: str, parse: Callable[[str, str, Described], _AnyHead], declared: Mapping[str, Table]
) -> dict[str, _AnyHead]:
    """The heads of a folder's files, by name. A head may have columns of another one."""
    texts = {
        file.name.removesuffix(".sql"): file.read_text(encoding="utf-8")
        for file in files(f"quotaflow.schemas.{folder}").iterdir()
        if file.name.endswith(".sql")
    }
    heads: dict[str, _AnyHead] = {}

    def columns(name: str) -> Mapping[str, Column]:
        table = declared[name] if name in declared else head(name).table
        return {column.name: column for column in table.columns}

    def head(name: str) -> _AnyHead:
        if name not in heads:
            text = texts[name]
            _, _, query = text.partition("\n\n")
            named = [each for each in _SOURCE.findall(text) if re.search(rf"\b{each}\b", query)]
            heads[name] = parse(name, text, {each: columns(each) for each in named})
        return heads[name]

    return {name: head(name) for name in sorted(texts)}


_FACTS = _declared(
    requests,
    telemetry,
    fetches,
    producer_ids,
    traffic,
    quotas,
    replicas,
    read_faults,
    fetch_sizes,
    remote_reads,
    reassignments,
    config_alterations,
    throttles,
    groups,
)
_STATE = _declared(topology, group_snapshots, snapshots, control, quality)

ANSWERS = _read("answers", answer_head.parse, {**_FACTS, **_STATE})
"""What the head of each answer says, by its name."""


# In the order that lists of tables show: facts, results, answers, snapshots, control tables.
TABLES: dict[str, Table] = {
    **_FACTS,
    **{name: head.table for name, head in ANSWERS.items()},
    **_STATE,
}


def required(tables: Iterable[str], level: str) -> set[str]:
    """Those of the tables that a view or answer of this level cannot do without.

    Those of a higher level may not exist: then they have no rows.
    """
    return {name for name in tables if LEVELS.index(TABLES[name].level) <= LEVELS.index(level)}
