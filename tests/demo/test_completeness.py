"""The demo's last step: an object without rows has its reason, or the demo fails."""

from pathlib import Path

import pytest

from quotaflow.demo import completeness
from quotaflow.pipelines.errors import JobError

HEADS = completeness.heads_of_all()
# A view of values alone; tables that nobody made; one of them is rightly empty.
SOME = {name: HEADS[name] for name in ("error_names", "quarantine", "batches", "feedback_locks")}


def test_what_has_no_rows_fails_the_demo_unless_its_head_has_a_reason(tmp_path: Path) -> None:
    lines: list[str] = []
    empty = completeness.without_rows(tmp_path, SOME)
    with pytest.raises(JobError, match=r"^no row came into quarantine, batches: on a busy"):
        completeness.report(empty, len(SOME), lines.append, must_be_complete=True)
    assert lines[:3] == [
        "1 of 4 tables and views have rows",
        "quarantine has none",
        "batches has none",
    ]
    assert lines[3].startswith("feedback_locks has none: it is empty while nobody writes configs")


def test_a_short_demo_only_reports_what_is_missing() -> None:
    lines: list[str] = []
    completeness.report({"quarantine": None}, 2, lines.append, must_be_complete=False)
    assert lines == ["1 of 2 tables and views have rows", "quarantine has none"]


def test_what_the_demo_fills_may_not_be_empty_though_its_head_has_a_reason() -> None:
    empty = {name: HEADS[name].empty for name in completeness.FILLED}
    assert all(empty.values())
    with pytest.raises(JobError, match=r"^no row came into ongoing_moves: "):
        completeness.report(
            {"ongoing_moves": empty["ongoing_moves"]}, 2, lambda _: None, must_be_complete=True
        )


def test_few_objects_may_be_empty() -> None:
    # Each more is something that the demo does not show.
    rightly_empty = {name for name, head in HEADS.items() if head.empty}
    assert rightly_empty - completeness.FILLED == {
        # Stock Kafka does not take producer_ids_rate, and a folder has a lock file.
        *("default_quota_proposals", "feedback_locks"),
        # Brokers of the demo are fast, and its groups and replicas are well.
        "cluster_symptoms",
        # Its plan takes away what was left over.
        "throttle_leftovers",
        # Only where no request log comes.
        "leftover_proposals",
        # A throttle of the leader limits its move.
        "throttled_replica_proposals",
    }
