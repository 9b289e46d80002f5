"""What an answer is: its table, its text, and how far back it reads each input."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from quotaflow.pipelines.warehouse import kept_translations, views
from quotaflow.schemas.answer_head import Lookback
from quotaflow.schemas.migrations import SCHEMA_VERSION
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES, required


@dataclass(frozen=True, slots=True)
class Derivation:
    """What makes the rows of an answer of those of its text: a pure function, of few rows.

    `schema`: the rows of the text. `code`: the text of the function, by which a change shows.
    """

    schema: pa.Schema
    rows: Callable[[pa.Table], pa.Table]
    code: str


@dataclass(frozen=True)
class Answer:
    """One answer.

    Inputs that `lookbacks` does not name are read whole. `expiry`: SQL for the time from which the
    rows differ though no input changed; null: never. `derive`: null: the rows of the text are the
    answer's.
    """

    table: Table
    sql: str
    lookbacks: Mapping[str, Lookback] = field(default_factory=dict)
    expiry: str | None = None
    derive: Derivation | None = None

    @property
    def name(self) -> str:
        """The name of its table."""
        return self.table.name

    @property
    def schema(self) -> pa.Schema:
        """The columns that its text has."""
        return self.table.arrow if self.derive is None else self.derive.schema

    def derived(self, rows: pa.Table) -> pa.Table:
        """Its rows, of those of its text."""
        return rows if self.derive is None else self.derive.rows(rows)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Its text, and what else it computes."""
        return (self.sql,) if self.expiry is None else (self.sql, self.expiry)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The views that it reads, each after those it reads itself."""
        needed: set[str] = set()
        left = [self.sql]
        while left:
            for name in kept_translations.tables_in(left.pop()) & views.load().keys() - needed:
                needed.add(name)
                left.append(views.load()[name].sql)
        return tuple(name for name in views.load() if name in needed)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The tables that it reads, answers among them, by itself and by its views."""
        texts = (*self.texts, *(views.load()[name].sql for name in self.views))
        read = frozenset[str]().union(*map(kept_translations.tables_in, texts))
        return tuple(name for name in TABLES if name in read)

    @cached_property
    def required(self) -> frozenset[str]:
        """The inputs without which it is not computed; others are empty if they do not exist."""
        return frozenset(required(self.inputs, self.table.level))

    @cached_property
    def fingerprint(self) -> str:
        """Another one after a change of a text or view, of a lookback, or of the table's schema."""
        # By words, which may name more views than it reads: that takes no parser.
        texts = [*self.texts, *(views.load()[name].sql for name in views.dependencies(self.sql)[1])]
        texts += [] if self.derive is None else [repr(self.derive.schema), self.derive.code]
        others = (sorted(self.lookbacks.items()), self.table.arrow, SCHEMA_VERSION)
        whole = "\n".join([*texts, *map(repr, others)])
        return hashlib.sha256(whole.encode()).hexdigest()
