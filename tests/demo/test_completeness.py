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
    with pytest.raises(JobError, match=r"^no row came into quarantine, batches$"):
        completeness.check(tmp_path, SOME, lines.append, must_be_complete=True)
    assert lines[:3] == [
        "1 of 4 tables and views have rows",
        "quarantine has none",
        "batches has none",
    ]
    assert lines[3].startswith("feedback_locks has none: it is empty while nobody writes configs")


def test_a_short_demo_only_reports_what_is_missing(tmp_path: Path) -> None:
    lines: list[str] = []
    completeness.check(tmp_path, SOME, lines.append, must_be_complete=False)
    assert "quarantine has none" in lines


def test_few_objects_may_be_empty() -> None:
    # Each more is something that the demo does not show.
    rightly_empty = {name for name, head in HEADS.items() if head.empty}
    assert rightly_empty == {
        *("default_quota_proposals", "feedback_locks", "log_start_divergence"),
        # A snapshot must fall into a move.
        *("moving_replicas", "ongoing_moves", "throttle_leftovers"),
    }
