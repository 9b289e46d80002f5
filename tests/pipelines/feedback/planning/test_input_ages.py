"""How old inputs are by what jobs wrote, and how old they may be by what was measured."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.compute import result_state
from quotaflow.pipelines.compute.result_state import ResultState
from quotaflow.pipelines.feedback.planning import evidence_checks, input_ages
from quotaflow.pipelines.feedback.planning.guards import REQUESTS, RESULTS, SNAPSHOT, TELEMETRY
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ....cases import cases
from ....delta_tables import NOON
from ....rows import Row
from ....schemas.views.view_tables import make_tables

MINUTE = timedelta(minutes=1)
RATES = "producer_id_rates"


def counts(job: str, target: str | None, **minutes: float) -> dict[str, Any]:
    """A row of the query: the newest minute of each outcome."""
    times = {f"{name}_at": NOON + at * MINUTE for name, at in minutes.items()}
    return (
        {"job": job, "target": target}
        | dict.fromkeys(("counted_at", "written_at", "failed_at"))
        | times
    )


def of_results(**minutes: float) -> list[dict[str, Any]]:
    return [
        counts("request_results", "traffic", counted=10, written=10),
        counts("request_results", RATES, **minutes),
    ]


@cases(
    ("rows", "results", "rates"),
    ("written", of_results(counted=10, written=10), 10, 10),
    ("nothing for it since", of_results(counted=3, written=3), 10, 10),
    ("never but failed", of_results(counted=10, failed=10), 10, None),
    ("fails now", of_results(counted=10, written=4, failed=10), 10, 4),
    ("failed once", of_results(counted=9, written=9, failed=5), 10, 10),
    ("well, without rows", of_results(counted=9, written=3, failed=5), 10, 10),
    ("failed alone", [counts("request_results", RATES, failed=10)], None, None),
    ("nothing", [], None, None),
)
def test_a_failed_result_is_not_new(
    rows: list[dict[str, Any]], results: float | None, rates: float | None
) -> None:
    ages = input_ages.newest_of(rows)
    expected = [None if at is None else NOON + at * MINUTE for at in (results, rates)]
    assert [ages[RESULTS], ages[RATES]] == expected


@cases(
    ("rows", "at"),
    ("both", {"configs": 5, "client_quotas": 7}, 5),
    ("one alone", {"configs": 5}, None),
    ("others", {"topics": 5}, None),
)
def test_a_snapshot_is_as_old_as_its_older_half(rows: dict[str, float], at: float | None) -> None:
    ages = input_ages.newest_of(counts("snapshot", name, counted=n) for name, n in rows.items())
    assert ages[SNAPSHOT] == (None if at is None else NOON + at * MINUTE)
    assert ages[REQUESTS] is ages[TELEMETRY] is None


def batches(gap_s: float, count: int, late_s: float = 0) -> dict[str, list[Row]]:
    """Batches of results, each so many seconds after the one before; they end so much later."""
    newest = [NOON - timedelta(seconds=gap_s * n) for n in range(count)]
    fixed = {"cluster_id": "c1", "job": "request_results", "query_id": "q"}
    progress = [
        fixed | {"event_time": at, "batch_id": n, "target": RATES, "outcome": "in", "row_count": 1}
        for n, at in enumerate(newest)
    ]
    ends = [
        fixed | {"event_time": at, "batch_id": n, "duration_ms": int(late_s * 1000)}
        for n, at in enumerate(newest)
    ]
    return {"pipeline_progress": progress} | ({"query_progress": ends} if late_s else {})


def lag(warehouse: Warehouse, content: dict[str, list[Row]]) -> dict[str, timedelta]:
    make_tables(warehouse, content)
    tables = open_reader(config.Conf(warehouse=warehouse.conf))
    return input_ages.lags(tables, "cluster_id = 'c1'", NOON + MINUTE)


@cases(
    ("content", "lag_s"),
    ("by the job's period", batches(600, 20), 600),
    ("and by how late its batches end", batches(300, 20, late_s=600), 900),
    ("two batches show too little", batches(600, 2), None),
    ("of a day", batches(86_400, 5), None),
)
def test_the_lag_is_measured(
    warehouse: Warehouse, content: dict[str, list[Row]], lag_s: float | None
) -> None:
    expected = None if lag_s is None else timedelta(seconds=lag_s)
    measured = lag(warehouse, content)
    assert (measured.get(RESULTS), measured.get(RATES)) == (expected, expected)


@cases(
    ("lag_s", "allowed_s"),
    ("never less", 10, 900),
    ("twice the lag", 900, 1_800),
    ("never more", 3_000, 3_600),
)
def test_inputs_may_be_as_old_as_their_job_lets_them(lag_s: float, allowed_s: float) -> None:
    allowed = input_ages.allowed({RESULTS: timedelta(seconds=lag_s)}, timedelta(minutes=15))
    assert allowed == {RESULTS: timedelta(seconds=allowed_s)}


def since(conf: config.Conf, job: str, name: str, at: datetime) -> None:
    checkpoint = Warehouse(conf.warehouse).checkpoint(job)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    result_state.save(checkpoint, {name: ResultState(at, "RuleError: x")})


@pytest.mark.parametrize(
    ("dirty", "evidence", "is_blocked"),
    [
        (RATES, RATES, True),
        ("quota_usage", "quota_advice", True),
        ("quota_usage", RATES, False),
        ("traffic", RATES, False),
    ],
)
def test_a_dirty_result_blocks_what_rests_on_it(
    warehouse: Warehouse, dirty: str, evidence: str, is_blocked: bool
) -> None:
    conf = config.Conf(warehouse=warehouse.conf)
    since(conf, "request_results", dirty, NOON)
    problems = context.of_plans(conf).evidence.dirty_results({evidence})
    assert (evidence in problems) is is_blocked
    if is_blocked:
        assert (
            f"it rests on {dirty}, which is not up to date since 2026-11-21" in problems[evidence]
        )


def test_the_jobs_of_results_are_those_of_the_registry() -> None:
    assert set(evidence_checks._RESULT_JOBS) == {name for name, job in JOBS.items() if job.results}
