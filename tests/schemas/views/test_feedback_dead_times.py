"""How long a write takes to show in results."""

from typing import Any

from ...rows import Row, at, batch, counted
from .view_tables import Tables, assert_outcomes

JOB = "request_results"


def written(second: float, **others: Any) -> Row:
    row = {"event_time": at(second), "run_id": f"r{second}", "change_id": "c", "number": 1}
    row |= {"step": "done", "purpose": "apply", "operation": "SET"}
    return row | {"entity_type": "user", "config_key": "producer_byte_rate"} | others


def batches(period_s: int, count: int, behind_s: int = 60) -> Tables:
    """Batches that take 2 s, and have what is older than `behind_s` at their start."""
    starts = [(nth, nth * period_s) for nth in range(count)]
    return {
        "query_progress": [batch(start, nth, JOB) for nth, start in starts],
        "pipeline_progress": [
            counted(start - behind_s, nth, "out", 1, job=JOB, query_id="q-" + JOB)
            for nth, start in starts
        ],
    }


def after(changes: list[Row], progress: Tables | None = None) -> Tables:
    """What was written, with batches of ten minutes unless others are given."""
    return (progress or batches(600, 40)) | {"config_changes": changes}


CASES: dict[tuple[Any, ...], dict[str, Tables]] = {
    (): {
        "nothing was written": after([]),
        "renewals, restores and open writes change nothing": after(
            [
                *(written(600 * n, operation="RENEW") for n in range(1, 9)),
                *(written(601 * n, purpose="restore") for n in range(1, 9)),
                *(written(602 * n, step="begun") for n in range(1, 9)),
            ]
        ),
    },
    (4, 602.0, 600.0, None): {
        "four changes say too little": after([written(600 * n) for n in range(1, 5)])
    },
    (5, 602.0, 600.0, 1_200.0): {
        "five do: two job periods at least": after([written(600 * n) for n in range(1, 6)])
    },
    (5, 1_802.0, 600.0, 1_802.0): {
        "a slow result is longer": after(
            [written(600 * n) for n in range(1, 6)], batches(600, 40, behind_s=1_500)
        )
    },
    (20, 62.0, 60.0, 120.0): {
        "of the last twenty": after(
            [written(second) for second in (*range(1, 6), *range(600, 1_800, 60))],
            batches(60, 400, behind_s=40),
        )
    },
}


def test_a_dead_time_is_from_a_write_to_its_effect() -> None:
    """A query has the id of its case, as in reality."""
    cases = {
        row: {
            case: {
                table: [row | ({"query_id": case} if "query_id" in row else {}) for row in rows]
                for table, rows in tables.items()
            }
            for case, tables in alike.items()
        }
        for row, alike in CASES.items()
    }
    columns = ("changes", "p95_delay_s", "job_period_s", "dead_time_s")
    assert_outcomes(cases, "feedback_dead_times", *columns)
