"""How long a write takes to show in results."""

from typing import Any

import pytest

from ...rows import Row, at, batch, counted
from .view_tables import by_case

JOB = "request_results"


def written(second: float, **others: Any) -> Row:
    row = {"event_time": at(second), "run_id": f"r{second}", "change_id": "c", "number": 1}
    row |= {"step": "done", "purpose": "apply", "operation": "SET"}
    return row | {"entity_type": "user", "config_key": "producer_byte_rate"} | others


def batches(period_s: int, count: int, behind_s: int = 60) -> dict[str, list[Row]]:
    """Batches that take 2 s, and have what is older than `behind_s` at their start."""
    starts = [(nth, nth * period_s) for nth in range(count)]
    return {
        "query_progress": [batch(start, nth, JOB) for nth, start in starts],
        "pipeline_progress": [
            counted(start - behind_s, nth, "out", 1, job=JOB, query_id="q-" + JOB)
            for nth, start in starts
        ],
    }


TEN = batches(600, 40)
CASES: dict[str, tuple[dict[str, list[Row]], list[tuple[Any, ...]]]] = {
    "nothing was written": (TEN, []),
    "four changes say too little": (
        {**TEN, "config_changes": [written(600 * n) for n in range(1, 5)]},
        [(4, 602.0, 600.0, None)],
    ),
    "five do: two job periods at least": (
        {**TEN, "config_changes": [written(600 * n) for n in range(1, 6)]},
        [(5, 602.0, 600.0, 1_200.0)],
    ),
    "a slow result is longer": (
        {
            **batches(600, 40, behind_s=1_500),
            "config_changes": [written(600 * n) for n in range(1, 6)],
        },
        [(5, 1_802.0, 600.0, 1_802.0)],
    ),
    "of the last twenty": (
        {
            **batches(60, 400, behind_s=40),
            "config_changes": [written(1 + n) for n in range(5)]
            + [written(600 + 60 * n) for n in range(20)],
        },
        [(20, 62.0, 60.0, 120.0)],
    ),
    "renewals, restores and open writes change nothing": (
        {
            **TEN,
            "config_changes": [
                *(written(600 * n, operation="RENEW") for n in range(1, 9)),
                *(written(601 * n, purpose="restore") for n in range(1, 9)),
                *(written(602 * n, step="begun") for n in range(1, 9)),
            ],
        },
        [],
    ),
}


@pytest.fixture(scope="module")
def dead_times() -> dict[str, list[Row]]:
    """The dead times of each case: a query has the id of its case, as in reality."""
    cases = {
        case: {
            table: [row | ({"query_id": case} if "query_id" in row else {}) for row in rows]
            for table, rows in content.items()
        }
        for case, (content, _) in CASES.items()
    }
    return by_case(cases, "SELECT * FROM feedback_dead_times")


@pytest.mark.parametrize("case", CASES)
def test_a_dead_time_is_from_a_write_to_its_effect(
    dead_times: dict[str, list[Row]], case: str
) -> None:
    columns = ("changes", "p95_delay_s", "job_period_s", "dead_time_s")
    assert [tuple(row[name] for name in columns) for row in dead_times[case]] == CASES[case][1]
