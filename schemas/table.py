"""What a Delta table is made of: columns as Arrow types, each written once with its meaning."""

import re
from dataclasses import dataclass

import pyarrow as pa

from quotaflow.schemas.levels import SAMPLED_LOG

STRING, BINARY, BOOLEAN = pa.string(), pa.binary(), pa.bool_()
INT, LONG, DOUBLE, DATE = pa.int32(), pa.int64(), pa.float64(), pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")

_SQL_NAMES = {
    STRING: "STRING",
    BINARY: "BINARY",
    BOOLEAN: "BOOLEAN",
    INT: "INT",
    LONG: "BIGINT",
    DOUBLE: "DOUBLE",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
}
_ARROW = {name: arrow for arrow, name in _SQL_NAMES.items()}
_TOKEN = re.compile(r"\s*(\w+|[<>,:])")


def sql_type(arrow: pa.DataType) -> str:
    """The Spark SQL name of an Arrow type, nested ones included."""
    if pa.types.is_list(arrow):
        return f"ARRAY<{sql_type(arrow.value_type)}>"
    if pa.types.is_map(arrow):
        return f"MAP<{sql_type(arrow.key_type)}, {sql_type(arrow.item_type)}>"
    if pa.types.is_struct(arrow):
        return f"STRUCT<{', '.join(f'{f.name}: {sql_type(f.type)}' for f in arrow)}>"
    return _SQL_NAMES[arrow]


def typed(text: str) -> tuple[pa.DataType, str]:
    """The Arrow type whose Spark SQL name a text begins with, and the rest of the text.

    Raises ValueError if it begins with none.
    """
    word, rest = _token(text)
    if word == "ARRAY":
        element, rest = typed(_after("<", rest))
        return pa.list_(element), _after(">", rest)
    if word == "MAP":
        key, rest = typed(_after("<", rest))
        item, rest = typed(_after(",", rest))
        return pa.map_(key, item), _after(">", rest)
    if word == "STRUCT":
        return _struct(rest)
    if word not in _ARROW:
        raise ValueError(f"{word} is no type: {', '.join(_ARROW)}, ARRAY, MAP or STRUCT")
    return _ARROW[word], rest


def _struct(text: str) -> tuple[pa.DataType, str]:
    fields, mark, rest = [], "<", text
    while mark != ">":
        name, rest = _token(_after(mark, rest))
        kind, rest = typed(_after(":", rest))
        fields.append(pa.field(name, kind))
        mark, _ = _token(rest)
    return pa.struct(fields), _after(">", rest)


def _token(text: str) -> tuple[str, str]:
    match = _TOKEN.match(text)
    if not match:
        raise ValueError(f"a type ends before {text!r}")
    return match[1], text[match.end() :]


def _after(mark: str, text: str) -> str:
    token, rest = _token(text)
    if token != mark:
        raise ValueError(f"expected {mark} in a type, got {token}")
    return rest


def sql_columns(schema: pa.Schema) -> str:
    """The columns of an Arrow schema as Spark's DDL text."""
    return ", ".join(f"`{field.name}` {sql_type(field.type)}" for field in schema)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name (with the unit in it), its type, and what it means."""

    name: str
    type: pa.DataType
    comment: str


@dataclass(frozen=True, slots=True)
class Table:
    """One Delta table: what a row is, its columns, the key of a row, and how files are laid out.

    `key` names the columns that identify a row; a replay may never make two rows of one key.
    `area` is one of schemas/areas.py, and `level` the first of schemas/levels.py at which it can
    have rows. `empty` says when it is rightly without rows, if it can be where all goes well.
    `question` is a label and the question that its rows answer, if people ask them (head.question).
    `first` names columns whose largest values lists begin with; without it the newest rows do.
    A table is either clustered (facts) or partitioned (results, which are replaced by date).
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    time: str
    clustering: tuple[str, ...] = ()
    partitioning: tuple[str, ...] = ()
    empty: str = ""
    area: str = ""
    level: str = SAMPLED_LOG
    question: str = ""
    first: tuple[str, ...] = ()

    @property
    def column_names(self) -> list[str]:
        """Names in the table's order: the final select of the code that fills the table."""
        return [column.name for column in self.columns]

    @property
    def times(self) -> tuple[str, ...]:
        """The column with the time of a row, and that with its date where the table has one."""
        return (self.time, *(name for name in self.column_names if name == "event_date"))

    def same(self, *names: str) -> tuple[Column, ...]:
        """Some columns, for a table that has them with the same meaning. Raises KeyError."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in names)

    @property
    def arrow(self) -> pa.Schema:
        """The table's columns as an Arrow schema."""
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])

    @property
    def sql_schema(self) -> str:
        """The table's columns as Spark's DDL text, for mapInArrow and readers."""
        return sql_columns(self.arrow)

    def element(self, name: str) -> pa.StructType:
        """The struct that a list column has."""
        return self.arrow.field(name).type.value_type

    @property
    def empty_sql(self) -> str:
        """Spark's SQL for the table's columns without a row."""
        columns = (f"CAST(NULL AS {sql_type(f.type)}) AS `{f.name}`" for f in self.arrow)
        return f"SELECT {', '.join(columns)} WHERE false"
