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
        *("default_quota_proposals", "feedback_locks", "log_start_divergence"),
        "leftover_proposals",
        # The demo has no remote storage.
        *("remote_reads", "remote_reads_by_hour", "remote_read_advice"),
        # Its clients name their racks, or none is known, and no rack that brokers do not have.
        *("producer_rack_advice", "unknown_racks"),
        # It cordons no log dir.
        "cordoned_brokers",
        # The demo has no application of Kafka Streams: the live tests have.
        "streams_applications",
        # No group of the demo is behind for a minute: the simulator of groups has those.
        "why_groups_lag",
    }
