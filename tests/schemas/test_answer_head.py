"""The head of an answer's file: what it says is read, and each mistake is one clear error."""

from datetime import timedelta

import pyarrow as pa
import pytest

from quotaflow.schemas.answer_head import AnswerHead, Lookback, parse
from quotaflow.schemas.head import HeadError
from quotaflow.schemas.table import DOUBLE, STRING, TIMESTAMP, Column, Table

from ..cases import cases

CLUSTER_ID = Column("cluster_id", STRING, "id of the cluster")
HEAD = """\
-- kind: answer
-- grain: one row per user
-- area: quotas
-- level: telemetry
-- question: Use. What does each user use?
-- description: What each uses.
-- empty: until one
--   uses it
-- key: cluster_id, since
-- time: since
-- clustering: since
-- lookbacks:
--   usage: 36 h
--   commits: at most 1 d
--   rates: 7 d, quotas.advice_days * 1 d
-- expiry: SELECT now()
--   AS expires_at
-- columns:
--   from usage: cluster_id
--   since TIMESTAMP: start of its first window: the
--     oldest one
--   evidence ARRAY<STRUCT<signal: STRING, of: MAP<STRING, DOUBLE>>>: the numbers
"""
QUERY = "-- Why.\nSELECT * FROM usage"


def answer(text: str) -> AnswerHead:
    return parse("uses", f"{text}\n{QUERY}\n", {"usage": {"cluster_id": CLUSTER_ID}})


def test_an_answer_is_its_table_its_text_and_its_lookbacks() -> None:
    evidence = pa.list_(pa.struct([("signal", STRING), ("of", pa.map_(STRING, DOUBLE))]))
    assert answer(HEAD) == AnswerHead(
        table=Table(
            name="uses",
            comment="One row per user. What each uses.",
            columns=(
                CLUSTER_ID,
                Column("since", TIMESTAMP, "start of its first window: the oldest one"),
                Column("evidence", evidence, "the numbers"),
            ),
            key=("cluster_id", "since"),
            time="since",
            clustering=("since",),
            empty="until one uses it",
            area="quotas",
            level="telemetry",
            question="Use. What does each user use?",
        ),
        sql="-- Why.\nSELECT\n    cluster_id,\n    since,\n    evidence\nFROM usage",
        lookbacks={
            "usage": Lookback(timedelta(hours=36)),
            "commits": Lookback(timedelta(days=1), is_memory=True),
            "rates": Lookback(timedelta(days=7), "quotas.advice_days", timedelta(days=1)),
        },
        expiry="SELECT now() AS expires_at",
    )


def test_the_grain_may_stand_within_the_description() -> None:
    text = HEAD.replace("What each uses.", "What is used, one row {per}; of quotas")
    assert answer(text).table.comment == "What is used, one row per user; of quotas"


def test_an_answer_may_read_all_its_inputs_whole() -> None:
    start, end = HEAD.index("-- lookbacks"), HEAD.index("-- columns")
    whole = answer(HEAD[:start] + HEAD[end:])
    assert (whole.lookbacks, whole.expiry) == ({}, None)


def test_a_lookback_is_the_stored_setting_where_there_is_one() -> None:
    lookback = answer(HEAD).lookbacks["rates"]
    assert lookback.length({}) == timedelta(days=7)
    assert lookback.length({"quotas.advice_days": 1.5}) == timedelta(hours=36)


WRONG = {
    ("kind: answer", "kind: answers"): (
        "kind 'answers' is none of answer, proposal (did you mean answer?)"
    ),
    ("area: quotas", "area: quota"): (
        "area 'quota' is none of requests, producer_ids, quotas, racks, groups, replication, "
        "telemetry, configs, cluster, pipeline (did you mean quotas?)"
    ),
    ("Use. What", "What"): "question is 'Label. Question?', got 'What does each user use?'",
    ("-- time: since\n", ""): "the head has no time",
    ("36 h", "36 hours"): "expected a number and one of s, min, h, d, got: 36 hours",
    (
        "usage: 36 h",
        "usage 36 h",
    ): ("expected 'table: [at most] time' or 'table: time, setting * time', got: usage 36 h"),
    (
        "-- lookbacks:\n",
        "-- lookbacks: usage: 1 h\n",
    ): "lookbacks begin in the line below, got: usage: 1 h",
    ("since TIMESTAMP:", "since:"): (
        "expected 'column TYPE: meaning' or 'from table: columns', got: since: start of its first "
        "window: the oldest one"
    ),
    ("TIMESTAMP", "DATETIME"): (
        "column since: DATETIME is no type: STRING, BINARY, BOOLEAN, INT, BIGINT, DOUBLE, DATE, "
        "TIMESTAMP, ARRAY, MAP or STRUCT"
    ),
    (
        "STRING, of:",
        "STRING; of:",
    ): "column evidence: a type ends before '; of: MAP<STRING, DOUBLE>>>: the numbers'",
    ("MAP<STRING, DOUBLE>", "MAP<STRING>"): "column evidence: expected , in a type, got >",
    ("TIMESTAMP: start", "TIMESTAMP start"): (
        "expected 'column TYPE: meaning', got: since TIMESTAMP start of its first window: the "
        "oldest one"
    ),
}
"""What is replaced in the head, by what, and the error."""


@cases(("right", "wrong", "error"), *((error, *edit, error) for edit, error in WRONG.items()))
def test_a_wrong_head_is_one_clear_error(right: str, wrong: str, error: str) -> None:
    assert right in HEAD
    with pytest.raises(HeadError) as raised:
        answer(HEAD.replace(right, wrong, 1))
    assert str(raised.value) == f"answer uses: {error}"


PROPOSAL = """\
-- kind: proposal
-- grain: one row per broker
-- area: replication
-- level: admin_api
-- description: One row {per}.
-- evidence:
--   age_s (s): since when
--   rate (bytes/s): its rate

WITH old AS (
    SELECT 1 AS broker_id
)

"""
SELECTED = """SELECT
    concat('a, b AS c', cluster_id) AS cluster_id, -- x, y
    old.age_s,
    if(true, 'MB/s', 'x') AS rate_unit,
    10 AS priority,
    least(1, 2) AS rate
FROM old"""


def proposal(selected: str) -> str:
    return parse("some_proposals", PROPOSAL + selected, {}).sql


def test_what_a_proposal_does_not_name_is_null() -> None:
    text = proposal(SELECTED)
    assert ")\n\nSELECT cluster_id, CAST(NULL AS STRING) AS entity_type, " in text
    assert " priority, CAST(NULL AS STRING) AS blocked_reason, " in text
    assert " CAST(NULL AS BIGINT) AS lease_s, false AS renew_only, " in text


def test_the_evidence_has_the_signals_that_a_text_yields() -> None:
    assert (
        "array(struct('age_s' AS signal, CAST(age_s AS DOUBLE) AS value, 's' AS unit), "
        "struct('rate' AS signal, CAST(rate AS DOUBLE) AS value, rate_unit AS unit)) AS evidence,"
    ) in proposal(SELECTED)
    without = proposal("SELECT\n    1 AS priority\nFROM old")
    assert "STRUCT<signal: STRING, value: DOUBLE, unit: STRING>>) AS evidence," in without


def test_rows_of_another_proposal_have_all_columns() -> None:
    text = proposal("SELECT * FROM more_proposals")
    assert text.endswith("offence,\n    least_value,\n    direction\nFROM more_proposals")


@cases(
    ("selected", "error"),
    ("age", "SELECT\n    1 AS age\nFROM old", "age is no column of a proposal, and no signal"),
    ("no select", "VALUES (1)", "the text does not end in a SELECT at the start of a line"),
)
def test_a_text_that_is_no_proposal_is_an_error(selected: str, error: str) -> None:
    with pytest.raises(HeadError, match=error):
        proposal(selected)
