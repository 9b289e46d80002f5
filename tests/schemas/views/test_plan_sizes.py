"""How often a text reads tables once Spark has put each view and each WITH part where it is named.

Spark plans and computes a part again at each place, so a text of parts that name parts twice grows
by powers of two: DuckDB computes such a part once, and does not show it.
"""

import sqlglot
from sqlglot import exp

from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views

MOST_READS = 80
Sizes = dict[str, int]


def reads(query: exp.Expression, sizes: Sizes) -> int:
    """Tables that a query reads; `sizes`: reads of the views and WITH parts that it may name."""
    sizes = dict(sizes)
    for part in query.args.get("with_") or ():
        sizes[part.alias] = reads(part.this, sizes)
    inner = [each for each in query.iter_expressions() if not isinstance(each, exp.With)]
    own = sizes.get(query.name, 1) if isinstance(query, exp.Table) else 0
    return own + sum(reads(each, sizes) for each in inner)


def test_no_text_grows_by_powers() -> None:
    sizes: Sizes = {}
    texts = [(name, view.sql) for name, view in views.load().items()]
    for name, sql in texts:
        sizes[name] = reads(sqlglot.parse_one(sql, read="spark"), sizes)
    answers = {a.name: reads(sqlglot.parse_one(a.sql, read="spark"), sizes) for a in ANSWERS}
    assert {name: n for name, n in (sizes | answers).items() if n > MOST_READS} == {}


def test_a_part_counts_wherever_it_is_named() -> None:
    sql = "WITH a AS (SELECT 1 FROM t), b AS (SELECT 1 FROM a, a AS x) SELECT 1 FROM b, b AS y, v"
    assert reads(sqlglot.parse_one(sql), {"v": 3}) == 7
