"""Translates SQL between Spark and DuckDB. Views are written once, in Spark's SQL."""

import re
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from quotaflow.pipelines.errors import WrongQueryError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


_IN_SPARK = {"epoch_us": "unix_micros"}
"""Functions of DuckDB by their names in Spark, where sqlglot knows none."""
_ALIKE = """
and argmax argmin array arraytostring avg cardinality case cast ceil coalesce concat contains count
currenttimestamp denserank epoch_us exists exp explode firstvalue floor greatest groupconcat
grouping if lag lead least left length logicaland logicalor lower max min now nullif or pad
percentilecont rank regexplike replace round rownumber splitpart startswith strposition substring
sum timestamptrunc transform trim trycast unixmicros unixmillis abs pow
"""
ALIKE = frozenset(_ALIKE.split())
"""Functions of DuckDB that mean the same in Spark, once translated; by `function_name`."""
_OF_WHOLE = """
cardinality ceil count denserank epoch_us floor length rank rownumber strposition unixmicros
unixmillis
"""
_WHOLE = frozenset(_OF_WHOLE.split())
"""Functions whose values have no fraction, by `function_name`."""
_ASCII = 128
_MESSAGE_CHARS = 400
WITHIN = "{} within"
"""The name of a table's rows of one time, which stands beside the table."""


@cache
def in_duckdb(sql: str, within: frozenset[str] = frozenset()) -> str:
    """A query in Spark's SQL as DuckDB reads it. Raises sqlglot.errors.ParseError.

    Of tables `within` it reads the rows of one time.
    """
    # Without copies: nobody else has the tree.
    tree = _parsed(sql).transform(_with_floored_millis, copy=False)
    tree = _with_duckdb_names(tree.transform(_with_groups, copy=False))
    if within:
        _rename(tree, within)
    return tree.sql(dialect="duckdb", pretty=True, copy=False)


@cache
def in_spark(sql: str) -> str:
    """A query in DuckDB's SQL as Spark reads it. Raises WrongQueryError."""
    import sqlglot  # noqa: PLC0415  as above
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except SqlglotError as error:
        message = " ".join(str(error).split())[:_MESSAGE_CHARS]
        raise WrongQueryError(f"cannot be translated for Spark: {message}") from None
    for node in tree.find_all(exp.Func):
        if not _is_alike(node):
            name = function_name(node)
            raise WrongQueryError(
                f"the function {name} may mean something else in Spark: write the query in Spark's "
                "SQL, and run it with --spark"
            )
    tree = tree.transform(_with_spark_names, copy=False)
    return tree.sql(dialect=_spark(), copy=False)


def _is_alike(node: "Expr") -> bool:
    from sqlglot import exp  # noqa: PLC0415  as above

    match node:
        case exp.Substring():
            length = node.args.get("length") or node.args["start"]
            return _is_past_zero(node.args["start"]) and _is_past_zero(length)
        case exp.Cast() if node.to.is_type(*exp.DataType.INTEGER_TYPES):
            return _is_whole(node.this) or _is_sum(node.this)
    return function_name(node) in ALIKE or _is_ascii(node)


def _is_past_zero(start: "Expr") -> bool:
    """Whether a place in a text is surely 1 or more: DuckDB has a place 0 before the first."""
    from sqlglot import exp  # noqa: PLC0415  as above

    if isinstance(start, exp.Add):
        return isinstance(start.this, exp.StrPosition) and _is_past_zero(start.expression)
    return isinstance(start, exp.Literal) and start.is_int and int(start.name) > 0


def _is_whole(value: "Expr") -> bool:
    """Whether a value surely has no fraction, which DuckDB rounds and Spark cuts off."""
    from sqlglot import exp  # noqa: PLC0415  as above

    match value:
        case exp.Literal():
            return value.name.isdigit()
        case exp.Neg():
            return value.is_int
        case exp.Paren() | exp.Filter() | exp.Window():
            return _is_whole(value.this)
        case exp.Round():
            return not value.args.get("decimals")
        case exp.Anonymous():
            return value.name.lower() in _WHOLE
    return isinstance(value, exp.Null | exp.Boolean | exp.Predicate | exp.Connector) or (
        isinstance(value, exp.Func) and function_name(value) in _WHOLE
    )


def _is_sum(value: "Expr") -> bool:
    from sqlglot import exp  # noqa: PLC0415  as above

    if isinstance(value, exp.Filter | exp.Window):
        return _is_sum(value.this)
    return isinstance(value, exp.Sum)


def _is_ascii(node: "Expr") -> bool:
    """Whether it is `chr` of a code up to 127, with which `literal` writes a backslash."""
    from sqlglot import exp  # noqa: PLC0415  as above

    if not isinstance(node, exp.Chr):
        return False
    return all(code.is_int and 0 < int(code.name) < _ASCII for code in node.expressions)


def function_name(node: "Expr") -> str:
    """The name of a function, or of sqlglot's kind of it, in small letters."""
    from sqlglot import exp  # noqa: PLC0415  as above

    return node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__.lower()


def _with_spark_names(node: "Expr") -> "Expr":
    """Times with a zone, and Spark's functions that DuckDB has under other names."""
    from sqlglot import exp  # noqa: PLC0415  as above

    match node:
        case exp.DataType(this=exp.DataType.Type.TIMESTAMP | exp.DataType.Type.TIMESTAMPNTZ):
            return exp.DataType.build("TIMESTAMPTZ")
        case exp.Anonymous() if name := _IN_SPARK.get(node.name.lower()):
            return exp.Anonymous(this=name, expressions=node.expressions)
        case exp.ArgMax() | exp.ArgMin():
            # DuckDB passes over rows whose value is null, Spark over those whose order is null.
            is_null = exp.Is(this=node.this.copy(), expression=exp.Null())
            order = exp.If(this=exp.Not(this=is_null), true=node.expression)
            node.set("expression", exp.Case(ifs=[order]))
        case exp.Cast() if node.to.is_type(*exp.DataType.INTEGER_TYPES) and _is_sum(node.this):
            # DuckDB rounds: a half to the even number, but that of a decimal away from 0.
            node.set("this", _rounded(node))
        case exp.PercentileCont():
            return exp.Anonymous(this="percentile", expressions=[node.this, node.expression])
    return node


def _rounded(cast: "Expr") -> "Expr":
    """The sum in a cast as a whole number. Only Spark knows its type."""
    from sqlglot import exp  # noqa: PLC0415  as above

    of_double, of_others = cast.copy(), cast.copy()
    of_double.set("this", exp.Anonymous(this="rint", expressions=[cast.this.copy()]))
    of_others.set("this", exp.Round(this=cast.this.copy()))
    kind = exp.Anonymous(this="typeof", expressions=[cast.this.copy()])
    is_double = exp.EQ(this=kind, expression=exp.Literal.string("double"))
    return exp.Case(ifs=[exp.If(this=is_double, true=of_double)], default=of_others)


@cache
def tables_in(sql: str) -> frozenset[str]:
    """The tables and views that a query in Spark's SQL reads, without names of its WITH clauses.

    Raises sqlglot.errors.ParseError.
    """
    from sqlglot import exp  # noqa: PLC0415  takes a third of a second, and tables need none

    query = _parsed(sql)
    own = {each.alias for each in query.find_all(exp.CTE)}
    return frozenset({table.name for table in query.find_all(exp.Table)} - own)


def _rename(tree: "Expr", within: frozenset[str]) -> None:
    from sqlglot import exp  # noqa: PLC0415  as above

    for table in tree.find_all(exp.Table):
        if (name := table.name) in within:
            table.set("this", exp.to_identifier(WITHIN.format(name), quoted=True))
            if not table.args.get("alias"):
                table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))


def _parsed(sql: str) -> "Expr":
    import sqlglot  # noqa: PLC0415  as above

    return sqlglot.parse_one(sql, read=_spark())


def _with_floored_millis(node: "Expr") -> "Expr":
    """unix_millis by floor, as Spark does it: DuckDB's epoch_ms rounds to the nearest one."""
    from sqlglot import exp  # noqa: PLC0415  as above

    if not isinstance(node, exp.UnixMillis):
        return node
    micros = exp.UnixMicros(this=node.this.copy())
    floor = exp.Floor(this=exp.Div(this=micros, expression=exp.Literal.number("1e3")))
    return exp.Cast(this=floor, to=exp.DataType.build("BIGINT"))


def _with_groups(node: "Expr") -> "Expr":
    """regexp_replace with DuckDB's names of groups: Spark writes $1 for what is \\1 there."""
    from sqlglot import exp  # noqa: PLC0415  as above

    if isinstance(node, exp.RegexpReplace) and (text := node.args["replacement"]).is_string:
        node.set("replacement", exp.Literal.string(re.sub(r"\$([0-9])", r"\\\1", text.name)))
    return node


def _with_duckdb_names(tree: "Expr") -> "Expr":
    """Functions that are others in DuckDB.

    The length of a list is len: before DuckDB 2.0, cardinality takes a map alone. Its max_by passes
    over rows whose value is null. In Spark a list of nulls alone is empty, and null is a number.
    """
    from sqlglot import exp  # noqa: PLC0415  as above

    renamed = (exp.Anonymous, exp.ArgMax, exp.ArgMin, exp.ArrayAgg, exp.IsNan)
    for node in [*tree.find_all(*renamed)]:
        match node:
            case exp.Anonymous() if node.name.lower() == "cardinality":
                node.set("this", "len")
            case exp.ArgMax() | exp.ArgMin():
                name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
                node.replace(exp.Anonymous(this=name, expressions=[node.this, node.expression]))
            case exp.ArrayAgg() if not isinstance(node.parent, exp.Filter | exp.Window):
                node.replace(filled := exp.Coalesce(expressions=[exp.Array()]))
                filled.set("this", node)
            case exp.IsNan():
                node.replace(filled := exp.Coalesce(expressions=[exp.false()]))
                filled.set("this", node)
    return tree


@cache
def _spark() -> type:
    """Spark's dialect since 4.0: within a text, two quotes are one."""
    from sqlglot.dialects.spark import Spark  # noqa: PLC0415  as above

    class Spark4(Spark):
        class Tokenizer(Spark.Tokenizer):
            STRING_ESCAPES: ClassVar = ["'", *Spark.Tokenizer.STRING_ESCAPES]

    return Spark4
