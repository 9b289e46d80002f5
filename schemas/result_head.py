"""What the head of a result's file says (`schemas/derived.py`), and what its rule reads when.

    -- facts: requests
    -- relevant: api IN ('PRODUCE', 'FETCH')
    -- bucket: 60 s
    -- lookback: 0 s
    -- lookups:
    --   brokers: from event_time, reaches back
    --   client_quotas: from coalesce(set_at, event_time)
    --   topic_names: changes nothing
    -- unnamed:
    --   traffic

Each field is one of the class ResultHead. A time, and `relevant`, may be a `$parameter` of the rule
(`pipelines/results/inputs.py`), because they depend on conf. A second result that fills the table
of another one has `fills`, and no table of its own. `carry` and what follows it are for sequential
rules. A lookup says from when a new row changes results: `changes nothing` that is computed
already; `reaches back`: the first rows ever are valid before them too; `within the time`: only rows
of the time that is computed are read. Each text has `$since`, the start of the rows that are
computed: what needs no lookback reads facts from then on. `unnamed` has the tables whose rows may
lack names of topics: alone, or with `ids of` SQL `where` SQL. A `*` is as in an answer.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quotaflow.schemas import derived, head
from quotaflow.schemas.head import Fields, HeadError
from quotaflow.schemas.table import Table

KIND = "result"
_READ = ("facts", "relevant", "scope", "bucket", "lookback", "lookahead")
_SEQUENTIAL = ("carry", "carry_key", "warm_up")
_SPLIT = ("split_by", "split_or_by", "split_shared")
_FIELDS = (
    *derived.DESCRIBED,
    *derived.STORED,
    *_READ,
    *_SEQUENTIAL,
    *_SPLIT,
    "runs_forward",
    "rolls_up",
    "lookups",
    "unnamed",
    "columns",
)
_OPTIONAL = {*derived.OPTIONAL, *_FIELDS[_FIELDS.index("facts") :]} - {"facts", "bucket", "columns"}
_OF_ANOTHER = ("kind", "fills", *_FIELDS[_FIELDS.index("facts") : -1])
_LOOKUP = re.compile(r"(\w+): (changes nothing|from .+?)(, reaches back)?(, within the time)?")
_UNNAMED = re.compile(r"(\w+)(?:: ids of (.+) where (.+))?")

Time = int | str
"""Seconds, or the name of the parameter that has them."""


Lookup = tuple[str | None, bool, bool]
"""From when a new row changes results, as SQL, or None; whether the first ones reach back; whether
only rows of the time that is computed are read."""


@dataclass(frozen=True, slots=True)
class ResultHead:
    """One result: its rule in DuckDB's SQL, the facts that it reads, and how far back.

    `table` is None if it fills the table of another one, `fills`.

    `relevant` is SQL over flat columns of the facts, for those that the rule reads; `scope` is true
    for the rows of this result, if another one fills the same table. What is recomputed at once is
    a `bucket`; `lookback` is how far before a row its rule reads facts. With `lookahead` new facts
    also affect rows that much before them.

    With `carry` the rule is sequential: a row needs the last row of its `carry_key` within that
    time, so a change affects later rows. The rule computes rows from `warm_up` earlier on, which
    are not stored. With `runs_forward` a change affects all later rows, and no rows are carried:
    the rule reads a lookup table instead.

    `split_by` is a key by which tasks may share the rows, beside time: SQL over columns of the
    facts. A row reads facts of its own key only, facts whose `split_or_by` have the values of that
    key, and facts that are `split_shared`, which each task reads. With one of these two, and in a
    sequential rule, the result has the columns of the key too.
    With `rolls_up` upkeep replaces rows older than a day by rows of whole minutes and hours, so old
    rows are computed by the hour.
    """

    name: str
    table: Table | None
    fills: str
    sql: str
    facts: str
    bucket: Time
    lookback: Time
    lookahead: Time
    relevant: str
    scope: str
    carry: Time
    carry_key: tuple[str, ...]
    warm_up: Time
    split_by: tuple[str, ...]
    split_or_by: tuple[str, ...]
    split_shared: str
    runs_forward: bool
    rolls_up: bool
    lookups: Mapping[str, Lookup]
    unnamed: Mapping[str, tuple[str, ...]]


def parse(name: str, text: str, described: derived.Described) -> ResultHead:
    """The result of a file. Raises HeadError."""
    lines, sql = head.split(text)
    try:
        is_of_another = any(line.startswith("fills:") for line in lines)
        fields = head.fields(lines, _OF_ANOTHER if is_of_another else _FIELDS, _OPTIONAL)
        head.one_of("kind", fields["kind"], (KIND,))
        table = None if is_of_another else derived.table(name, fields, described)
        fills = head.text(fields["fills"]) if is_of_another else name
        sql = head.without_star(sql, table.column_names) if table else sql
        return _of_fields(name, table, fills, sql, fields)
    except HeadError as error:
        raise HeadError(f"result {name}: {error}") from None


def _of_fields(name: str, table: Table | None, fills: str, sql: str, fields: Fields) -> ResultHead:
    return ResultHead(
        name=name,
        table=table,
        fills=fills,
        sql=sql,
        facts=head.text(fields["facts"]),
        bucket=_time(fields["bucket"]),
        lookback=_time(fields.get("lookback")),
        lookahead=_time(fields.get("lookahead")),
        relevant=head.text(fields.get("relevant", ["true"])),
        scope=head.text(fields.get("scope", ["true"])),
        carry=_time(fields.get("carry")),
        carry_key=head.names(fields.get("carry_key", [])),
        warm_up=_time(fields.get("warm_up")),
        split_by=head.names(fields.get("split_by", [])),
        split_or_by=head.names(fields.get("split_or_by", [])),
        split_shared=head.text(fields.get("split_shared", ["false"])),
        runs_forward=_is_set(fields, "runs_forward"),
        rolls_up=_is_set(fields, "rolls_up"),
        lookups=dict(map(_lookup, _entries(fields, "lookups"))),
        unnamed=dict(map(_unnamed, _entries(fields, "unnamed"))),
    )


def _time(lines: list[str] | None) -> Time:
    read = head.text(lines or ["0 s"])
    if read.startswith("$"):
        return read.removeprefix("$")
    return int(derived.duration(read).total_seconds())


def _is_set(fields: Mapping[str, list[str]], name: str) -> bool:
    return name in fields and bool(head.one_of(name, fields[name], ("yes",)))


def _entries(fields: Mapping[str, list[str]], name: str) -> Iterator[str]:
    return head.entries(name, fields.get(name, [""]))


def _lookup(entry: str) -> tuple[str, Lookup]:
    match = _LOOKUP.fullmatch(entry)
    if not match:
        raise HeadError(f"expected 'table: changes nothing' or 'table: from SQL', got: {entry}")
    table, validity, reaches_back, within = match.groups()
    valid_from = None if validity == "changes nothing" else validity.removeprefix("from ")
    return table, (valid_from, bool(reaches_back), bool(within))


def _unnamed(entry: str) -> tuple[str, tuple[str, ...]]:
    match = _UNNAMED.fullmatch(entry)
    if not match:
        raise HeadError(f"expected 'table' or 'table: ids of SQL where SQL', got: {entry}")
    table, topic_ids, where = match.groups()
    return table, (where, topic_ids) if where else ()
