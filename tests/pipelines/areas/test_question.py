"""Conditions of questions that tables do not plant: whom a diagnosis is about."""

from quotaflow.pipelines.areas.question import filled, undiagnosed
from quotaflow.udfs.engine.connections import connect

from ...cases import cases


@cases(
    ("diagnosed", "client_id", "is_shown"),
    ("its own", "app", "app", False),
    ("another with a longer name", "app", "app-billing", True),
    ("one of a program", "app-*", "app-7", False),
    ("another program", "app-*", "billing-7", True),
    ("no name, like the diagnosis", None, None, False),
    ("a name, and the diagnosis has none", None, "app", True),
    ("no name, and the diagnosis has one", "app", None, True),
    ("named like a pattern of all", "*", "app", True),
)
def test_a_diagnosis_hides_the_problems_of_its_client_alone(
    diagnosed: str | None, client_id: str | None, is_shown: bool
) -> None:
    database = connect()
    database.execute(
        "CREATE TABLE diagnoses AS SELECT 'c1' AS cluster_id, 'User:a' AS principal, "
        "CAST(? AS VARCHAR) AS client_id, 'quota' AS cause",
        [diagnosed],
    )
    condition = filled(undiagnosed("quota"), {}, lambda *_: "true")
    rows = database.execute(
        "SELECT 1 FROM (SELECT 'c1' AS cluster_id, 'User:a' AS principal, "
        f"CAST(? AS VARCHAR) AS client_id) AS every_row WHERE {condition}",
        [client_id],
    ).fetchall()
    assert bool(rows) == is_shown
