"""The health of a job: each bound of conf, from both sides."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.monitoring import job_health
from quotaflow.pipelines.monitoring.job_health import JobFacts
from quotaflow.pipelines.streaming.checkpoints import Checkpoint
from quotaflow.pipelines.warehouse.delta_log import UnreadFiles

from ...cases import cases
from ...delta_tables import NOON

BOUNDS = HealthSection(max_silence_s=600, max_behind_s=300)
CHECKPOINT = Checkpoint("job", 3, kafka=None, delta=None, topic=None)
NOON_MS = int(NOON.timestamp() * 1_000)


def job_facts(job: str = "job", unread: UnreadFiles | None = None, **row: Any) -> JobFacts:
    values_by_column = {"last_trigger": NOON, "newest_event_time": NOON} | row
    return JobFacts(job, values_by_column, CHECKPOINT if job != "snapshot" else None, unread)


@cases(
    ("silent_s", "usual_gap_s", "expected"),
    ("no longer than a start takes", 119, 10.0, None),
    ("longer than it usually is", 121, 10.0, 121.0),
    ("it triggers once a minute", 121, 60.0, None),
    ("nobody knows how it usually is", 500, None, None),
)
def test_silence_is_measured_by_what_is_usual(
    silent_s: int, usual_gap_s: float | None, expected: float | None
) -> None:
    facts = job_facts(last_trigger=NOON - timedelta(seconds=silent_s))
    health = job_health.job_health(replace(facts, usual_gap_s=usual_gap_s), NOON, BOUNDS)
    assert (health.silent_s, health.problems) == (expected, ())


@cases(
    ("days", "is_old"),
    ("yesterday", 1.1, False),
    ("more than two days ago", 2.1, True),
)
def test_upkeep_is_due_each_day(days: float, is_old: bool) -> None:
    facts = JobFacts("upkeep", {"last_trigger": NOON - timedelta(days=days)})
    health = job_health.job_health(facts, NOON, BOUNDS)
    assert (health.silent_s is not None, health.problems) == (is_old, ())


@cases(
    ("facts", "expected"),
    ("well", job_facts(), []),
    ("triggered just now", job_facts(last_trigger=NOON - timedelta(seconds=600)), []),
    (
        "silent",
        job_facts(last_trigger=NOON - timedelta(hours=3)),
        ["no trigger for 3 h (threshold: 10 min)"],
    ),
    (
        "no snapshot for long",
        job_facts("snapshot", last_trigger=NOON - timedelta(days=3)),
        ["no trigger for 3 days (threshold: 10 min)"],
    ),
    ("a command by hand", JobFacts("upkeep", {"last_trigger": NOON - timedelta(days=3)}), []),
    (
        "a query whose checkpoint is out of reach",
        replace(
            JobFacts("job", {"last_trigger": NOON - timedelta(days=3), "batch_id": 7}),
            is_out_of_reach=True,
        ),
        ["no trigger for 3 days (threshold: 10 min)"],
    ),
    ("never reported", JobFacts("job", {}, CHECKPOINT), ["it never reported a batch"]),
    (
        "nothing to read: however old the newest is",
        job_facts(behind_offsets=0, newest_event_time=NOON - timedelta(days=9)),
        [],
    ),
    (
        "records wait",
        job_facts(behind_offsets=5, newest_event_time=NOON - timedelta(minutes=6)),
        ["data from 6 min ago is not read yet (threshold: 5 min)"],
    ),
    (
        "files wait",
        job_facts(unread=UnreadFiles(1, 9, NOON_MS - 301_000)),
        ["data from 5 min ago is not read yet (threshold: 5 min)"],
    ),
    ("files wait shortly", job_facts(unread=UnreadFiles(1, 9, NOON_MS - 299_000)), []),
    (
        "files were removed",
        job_facts(unread=UnreadFiles(is_cut=True)),
        ["its table's log was cleaned before it was read: rows are missing, rebuild"],
    ),
    (
        "unreadable rows",
        job_facts(rows_in=1_000, rows_quarantined=11),
        ["1.1 % of its rows were quarantined (threshold: 1 %)"],
    ),
    ("a few unreadable rows", job_facts(rows_in=1_000, rows_quarantined=10), []),
    (
        "late rows",
        job_facts(rows_in=100, rows_late=6),
        ["6 % of its rows were late (threshold: 5 %)"],
    ),
    ("no rows", job_facts(rows_in=0, rows_late=None), []),
    (
        "a receiver that refuses all of a few",
        job_facts(rows_in=10_000, rows_out=0, rows_refused=7),
        ["its receiver refused 100 % of the points sent (threshold: 1 %)"],
    ),
    ("a few refused points", job_facts(rows_out=990, rows_refused=10), []),
)
def test_a_job_past_a_bound_says_which(facts: JobFacts, expected: list[str]) -> None:
    assert list(job_health.job_health(facts, NOON, BOUNDS).problems) == expected


def test_a_result_whose_rule_failed_is_told() -> None:
    failed = JobFacts("job", {"last_trigger": NOON}, CHECKPOINT, not_up_to_date=("traffic is not",))
    assert job_health.job_health(failed, NOON, BOUNDS).problems == ("traffic is not",)
