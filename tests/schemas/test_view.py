"""The head of a view's file: what it says is read, and each mistake is one clear error."""

import pytest

from quotaflow.schemas import head
from quotaflow.schemas.head import HeadError
from quotaflow.schemas.view import View, ViewColumn, parse

from ..cases import cases

DESCRIBED = {
    "brokers": {
        column.name: column
        for column in (
            ViewColumn("cluster_id", "id of the cluster"),
            ViewColumn("broker_id", "node id"),
            ViewColumn("rack", "broker.rack"),
        )
    },
    "topics": {"topic": ViewColumn("topic", "name of the topic")},
}
HEAD = """\
-- kind: staging
-- grain: one row per broker
-- area: cluster
-- level: telemetry
-- description: Where each broker is.
--   Fenced ones too.
-- columns:
--   from brokers: cluster_id,
--     broker_id
--   uptime_s: time since it registered: null where that
--     is not known, in seconds
--   from brokers: rack
"""
QUERY = "SELECT\n    a -- the reason\nFROM brokers"


def view(text: str) -> View:
    return parse("where", text, DESCRIBED)


def test_a_view_is_its_head_and_its_query() -> None:
    with_comment = QUERY.replace("SELECT\n", "SELECT\n    -- Not of topics.\n")
    assert view(f"{HEAD}\n{with_comment}\n") == View(
        name="where",
        kind="staging",
        grain="one row per broker",
        area="cluster",
        level="telemetry",
        description="Where each broker is. Fenced ones too.",
        columns=(
            ViewColumn("cluster_id", "id of the cluster"),
            ViewColumn("broker_id", "node id"),
            ViewColumn(
                "uptime_s", "time since it registered: null where that is not known, in seconds"
            ),
            ViewColumn("rack", "broker.rack"),
        ),
        sql=QUERY,
    )


@cases(
    ("query", "written_out"),
    ("all", "SELECT * FROM brokers", ["cluster_id", "broker_id", "uptime_s", "rack"]),
    (
        "those that it does not make",
        "SELECT\n    *,\n    least(a, b) AS uptime_s, -- x, y\n    t.cluster_id\nFROM brokers",
        ["-- x, y\n    t.cluster_id", "broker_id", "least(a, b) AS uptime_s", "rack"],
    ),
    (
        "a text with a comma",
        "SELECT\n    *,\n    concat('a, (b', f(c, d)) AS rack\nFROM brokers",
        ["cluster_id", "broker_id", "uptime_s", "concat('a, (b', f(c, d)) AS rack"],
    ),
    (
        "of one table",
        "SELECT\n    b.*,\n    t.rack\nFROM brokers",
        ["b.cluster_id", "b.broker_id", "b.uptime_s", "t.rack"],
    ),
)
def test_the_star_is_the_columns_of_the_head(query: str, written_out: list[str]) -> None:
    listed = ",\n    ".join(written_out)
    assert view(f"{HEAD}\n{query}").sql == f"SELECT\n    {listed}\nFROM brokers"


def test_what_the_table_of_a_union_lacks_is_null() -> None:
    query = "SELECT * FROM brokers\nUNION ALL\nSELECT *, 1 AS uptime_s\nFROM others"
    described = {"brokers": {}, "others": {"rack": ViewColumn("rack", "broker.rack")}}
    made = head.without_star(query, ["uptime_s", "rack", "state"], described)
    assert made.endswith("SELECT\n    1 AS uptime_s,\n    rack,\n    NULL AS state\nFROM others")


def test_a_star_within_a_query_is_that_of_sql() -> None:
    query = "WITH a AS (\n    SELECT * FROM brokers\n)\nSELECT a, b FROM a"
    assert view(f"{HEAD}\n{query}").sql == query


def test_the_comment_of_a_view_says_what_a_row_is_first() -> None:
    assert view(HEAD).comment == (
        "One row per broker. Where each broker is. Fenced ones too. Needs client telemetry."
    )


def test_a_view_may_say_when_it_is_rightly_empty() -> None:
    text = HEAD.replace("-- columns:", "-- empty: until a broker\n--   registers\n-- columns:")
    assert view(text).empty == "until a broker registers"
    assert view(text).comment.endswith("Needs client telemetry. Empty until a broker registers.")
    assert view(HEAD).empty == ""


def test_a_view_names_the_tables_that_it_needs_whole() -> None:
    text = HEAD.replace("-- columns:", "-- history: brokers\n-- columns:")
    assert (view(text).history, view(HEAD).history) == (frozenset({"brokers"}), frozenset())


WRONG = {
    (
        "kind: staging",
        "kind: stagin",
    ): "kind 'stagin' is none of staging, intermediate, mart (did you mean staging?)",
    ("-- kind: staging\n", ""): "the head has no kind",
    ("level: telemetry", "level: telemtry"): (
        "level 'telemtry' is none of admin_api, telemetry, sampled_log, whole_log (did you "
        "mean telemetry?)"
    ),
    ("-- kind: staging\n", "-- kind: staging\n-- kind: mart\n"): "the head has kind twice",
    (
        "-- kind: staging\n-- grain: one row per broker\n",
        "-- grain: one row per broker\n-- kind: staging\n",
    ): (
        "fields are in this order: kind, grain, area, level, question, description, empty, "
        "history, first, columns"
    ),
    ("-- kind", "-- sort: of\n-- kind"): (
        "expected a field (kind, grain, area, level, question, description, empty, history, "
        "first, columns) or a line indented by two spaces, got: sort: of"
    ),
    ("--   Fenced", "-- Fenced"): (
        "expected a field (kind, grain, area, level, question, description, empty, history, "
        "first, columns) or a line indented by two spaces, got: Fenced ones too."
    ),
    ("-- kind", "--   Brokers.\n-- kind"): "the head begins with an indented line: Brokers.",
    (
        "one row per broker",
        "One row per broker.",
    ): "grain is 'one row per ...' without a full stop, got 'One row per broker.'",
    (
        "Fenced ones too.",
        "Fenced ones too",
    ): "description is one or more sentences, got 'Where each broker is. Fenced ones too'",
    (
        "--   from brokers: rack",
        "--   from brokers: rack, broker_id",
    ): "column broker_id is described twice",
    (
        "--   from brokers: rack",
        "--   from brokers: racks",
    ): "brokers describes no column 'racks' (did you mean rack?)",
    ("--   from brokers: rack", "--   from brokers: rack,"): "brokers describes no column ''",
    (
        "--   from brokers: rack",
        "--   from broker: rack",
    ): "the query does not read broker (did you mean brokers?)",
    (
        "-- columns:",
        "-- history: requests\n-- columns:",
    ): "history: the query does not read requests",
    (
        "-- columns:",
        "-- first: racks, broker_id\n-- columns:",
    ): "first: no column racks (did you mean rack?)",
    (
        "--   from brokers: rack",
        "--   rack",
    ): "expected 'column: meaning' or 'from table: columns', got: rack",
    ("-- columns:", "-- columns: rack"): "columns begin in the line below, got: rack",
    (
        HEAD[HEAD.index("-- columns") :],
        "-- columns:\n",
    ): "columns is empty: describe every column of the query",
}
"""What is replaced in the head, by what, and the error."""


@cases(("right", "wrong", "error"), *((error, *edit, error) for edit, error in WRONG.items()))
def test_a_wrong_head_is_one_clear_error(right: str, wrong: str, error: str) -> None:
    assert right in HEAD
    with pytest.raises(HeadError) as raised:
        view(HEAD.replace(right, wrong, 1))
    assert str(raised.value) == f"view where: {error}"
