"""Decides which SQL the local engine may run: one query that only reads tables and views.

DuckDB can also write files, read any file, and change its settings. Its own parser says what a text
would do. Everything that is not known to be harmless is refused: a kind of statement, also in a
WITH clause, a table function, and a name that is no table, view or CTE (it may be that of a file).
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from quotaflow.pipelines.errors import ConfigError, WrongQueryError, nearest
from quotaflow.pipelines.warehouse.query_times import Bounds, bounds
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.connections import connect

_QUERY_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_TABLE_FUNCTIONS = {"generate_series", "json_each", "json_tree", "range", "unnest"}
_REFUSED_FUNCTIONS = {
    *("current_setting", "getvariable"),
    *("currval", "nextval"),
    *("pg_sleep", "sleep_ms", "write_log"),
    *("json_deserialize_sql", "json_serialize_sql", "json_serialize_plan"),
}
_QUERY_WORDS = {
    *("SELECT", "WITH", "VALUES", "FROM", "TABLE"),
    *("DESCRIBE", "SHOW", "SUMMARIZE", "PIVOT", "UNPIVOT"),
}
_EVERY = {"tables", "__show_tables_expanded"}
"""The names by which SHOW TABLES and SHOW ALL TABLES are parsed."""
_INFORMATION_SCHEMA = "information_schema"
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?!\(?\s*ANALY[ZS]E\b)(?=[\w(])", re.I)
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|[(;])*([^\s(;]*)", re.S)
# Python decodes bytes of an argument that are not UTF-8 to these.
_UNREADABLE = re.compile("[\ud800-\udfff]")
MESSAGE_CHARS = 400


@dataclass(frozen=True, slots=True)
class Query:
    """A query that may run, and the tables and views that it reads.

    `perhaps`: names that are also those of CTEs, so that only the engine knows which are tables.
    `describes_all`: it asks which tables and columns there are. `bounds`: the times of the rows
    that it reads of a table, where its text says so.
    """

    names: frozenset[str]
    perhaps: frozenset[str]
    describes_all: bool
    bounds: Mapping[str, Bounds]


def check_encoding(sql: str) -> None:
    """Raise ConfigError for a text that is not UTF-8."""
    if _UNREADABLE.search(sql):
        raise ConfigError("the query is not UTF-8: give it in UTF-8, under a locale of UTF-8")


def checked(
    sql: str, declared: frozenset[str], parser: duckdb.DuckDBPyConnection | None = None
) -> Query:
    """The query of a text. `declared` are the names of tables and views.

    `parser`: a database that is open already. Raises ConfigError for a text that is not one query
    or does more than to read, and WrongQueryError for one that cannot be parsed or names an unknown
    table.
    """
    check_encoding(sql)
    explained = _EXPLAIN.match(sql)
    parser = parser or _parser().cursor()
    tree = _parsed(sql[explained.end() :] if explained else sql, parser)
    nodes = list(_nodes(tree))
    _check_kinds(nodes)
    ctes = {entry["key"].lower() for node in nodes for entry in _ctes(node)}
    names, describes_all = set[str](), False
    for node in nodes:
        match node.get("type"):
            case "BASE_TABLE":
                *schemas, name = (part.lower() for part in node["qualified_name"]["path"])
                describes_all |= _check_schema(schemas, name)
                if not schemas and name not in ctes and name not in declared:
                    raise WrongQueryError(f"no table {name}{nearest(name, sorted(declared))}")
                names |= set() if schemas else {name}
            case "SHOW_REF" if node["query"] is None:
                name = node["table_name"].strip('"').lower()
                describes_all |= node["show_type"] == "SHOW_SPECIAL"
                names |= {name} - _EVERY
                if name not in _EVERY | declared or node["schema_name"]:
                    # Other names are those of settings, which have paths.
                    raise ConfigError(f"SHOW {name} is not allowed: SHOW TABLES, or name a table")
    times = {name: TABLES[name].times for name in names - ctes if name in TABLES}
    return Query(
        frozenset(names - ctes),
        frozenset(names & ctes & declared),
        describes_all,
        bounds(nodes, times, parser) if times else {},
    )


def check_condition(name: str, where: str, columns: Collection[str]) -> None:
    """Check that a text is a condition on rows of a table or view: its columns, and nothing else.

    Raises ConfigError for more than that, and WrongQueryError for what is no SQL, or names another
    column.
    """
    sql, plain = (f"SELECT * FROM {name} WHERE (\n{each}\n)" for each in (where, "true"))
    checked(sql, frozenset({name}))
    condition, *trees = (_without_where(_parsed(each, _parser())) for each in (sql, plain))
    nodes = list(_nodes(condition[0]))
    if condition[1] != trees[0][1] or any(str(n.get("type")).endswith("_NODE") for n in nodes):
        raise ConfigError(f"a condition has columns of {name}, and no query: {where[:80]}")
    # A bracket that closes the condition would put the rest outside of it.
    checked(f"SELECT {where}\nFROM {name}", frozenset({name}))
    # A lambda names its own parameters.
    if any(node.get("class") == "LAMBDA" for node in nodes):
        return
    named = (node["column_names"][0] for node in nodes if node.get("class") == "COLUMN_REF")
    if wrong := [each for each in named if each.lower() not in columns]:
        raise WrongQueryError(f"{name} has no column {wrong[0]}{nearest(wrong[0], [*columns])}")


def _without_where(tree: Any) -> tuple[Any, Any]:
    """The condition of a statement, and the rest of its tree without places in the text."""
    condition = tree[0]["node"].pop("where_clause", None)
    for node in _nodes(tree):
        node.pop("query_location", None)
    return condition, tree


def one_line(error: Exception | str) -> str:
    """An error of the engine without its excerpt of the query, its advice and native frames."""
    text, *_ = re.split(r"\n+LINE \d+:| Use TRY\(|\s+\d+: <unknown>", str(error))
    return " ".join(text.split())[:MESSAGE_CHARS]


def _parsed(sql: str, parser: duckdb.DuckDBPyConnection) -> Any:
    """The syntax tree of the only statement of a text."""
    try:
        statements = parser.extract_statements(sql)
    except duckdb.Error as error:
        if _first_word(sql).upper() not in _QUERY_WORDS:
            raise ConfigError(_only_queries(_first_word(sql))) from None
        raise WrongQueryError(one_line(error)) from None
    if len(statements) > 1:
        raise ConfigError(f"only one query is run at a time, and this has {len(statements)}")
    if not statements or statements[0].type.name != "SELECT":
        raise ConfigError(_only_queries(_first_word(sql)))
    ((text,),) = parser.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    try:
        tree = json.loads(text)
    except RecursionError:
        raise WrongQueryError("the query is nested too deep: write it with fewer levels") from None
    if tree["error"]:
        raise WrongQueryError(one_line(tree["error_message"]))
    return tree["statements"]


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """A database that only parses: no query runs in it."""
    return connect(threads=1)


def _only_queries(what: str) -> str:
    kinds = "SELECT, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN"
    return f"only queries are run here ({kinds}), not {what}"


def _first_word(sql: str) -> str:
    match = _FIRST_WORD.match(sql)
    return (match[1] if match else "")[:40] or "nothing"


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a syntax tree."""
    pending = [tree]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)


def _ctes(node: dict[str, Any]) -> list[dict[str, Any]]:
    ctes: list[dict[str, Any]] = node.get("cte_map", {}).get("map", [])
    name = node.get("cte_name")
    return [*ctes, {"key": name}] if name else ctes


def _check_kinds(nodes: list[dict[str, Any]]) -> None:
    for node in nodes:
        kind = str(node.get("type", ""))
        # As a part of a WITH clause also other statements count as a SELECT.
        if kind.endswith("_NODE") and kind not in _QUERY_NODES:
            raise ConfigError(_only_queries(kind.partition("_")[0]))
        if kind == "TABLE_FUNCTION":
            name = node["function"].get("function_name", "").lower()
            if name not in _TABLE_FUNCTIONS:
                raise ConfigError(f"the table function {name} is not allowed: name a table")
        if kind == "FUNCTION" and node.get("function_name", "").lower() in _REFUSED_FUNCTIONS:
            raise ConfigError(f"the function {node['function_name']} is not allowed")


def _check_schema(schemas: list[str], name: str) -> bool:
    """Whether a table is of the information schema; raises ConfigError for another schema."""
    if schemas and schemas[-1] == _INFORMATION_SCHEMA:
        return True
    if schemas:
        listed = ".".join([*schemas, name])
        raise ConfigError(f"{listed} is not allowed: name a table or view without its schema")
    return False
