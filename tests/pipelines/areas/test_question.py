"""Questions: what Spark answers too, and whom a diagnosis is about, which tables do not plant."""

import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from quotaflow.pipelines import areas
from quotaflow.pipelines.areas.finding import RowProblem
from quotaflow.pipelines.areas.question import Question, everywhere, filled, undiagnosed
from quotaflow.pipelines.warehouse.sql_dialects import in_spark
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


def questions() -> Iterator[tuple[str, Question]]:
    """The questions that modules of areas name, also those of their problems."""
    for name in (each.name for each in iter_modules(areas.__path__)):
        for constant, value in vars(import_module(f"{areas.__name__}.{name}")).items():
            question = value.question if isinstance(value, RowProblem) else value
            if isinstance(question, Question):
                yield f"{name}.{constant}", question


def test_each_question_is_translated_for_spark() -> None:
    every = dict(questions())
    assert len(every) > 50
    for question in every.values():
        sql = everywhere(question.counted_rows).replace("{limit}", "5")
        assert in_spark(re.sub(r"\{\w+\}", "NULL", sql))
