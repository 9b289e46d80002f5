"""The health of one job: its tables and checkpoint compared with conf's bounds. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.streaming.checkpoints import Checkpoint
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.delta_log import UnreadFiles

SNAPSHOT = "snapshot"
UPKEEP = "upkeep"
_MAX_UPKEEP_AGE_S = 2 * 86_400
"""It is due once a day (conf/systemd)."""
_GAPS = 3
_MIN_SILENCE_S = 120
"""Longer than a run needs to start, and than its progress waits to be written."""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is known about a job: its row of job_health, its checkpoint, and unread files.

    `not_up_to_date` are messages about results whose rule failed. `usual_gap_s` is the time between
    two triggers that nine of ten did not exceed in the last day; None if it had not two.
    `is_out_of_reach`: whether there is a checkpoint cannot be seen from here.
    """

    job: str
    row: Mapping[str, Any]
    checkpoint: Checkpoint | None = None
    unread: UnreadFiles | None = None
    not_up_to_date: tuple[str, ...] = ()
    usual_gap_s: float | None = None
    is_out_of_reach: bool = False


@dataclass(frozen=True, slots=True)
class JobHealth:
    """The health of one job. Row counts are those of its last hour of work.

    `silent_s` is the time since its last trigger, if that is longer than it usually is, or
    for upkeep than two days; else None.
    """

    job: str
    last_trigger: datetime | None
    last_batch: datetime | None
    duration_ms: int | None
    batch_id: int | None
    rows_per_s: float | None
    newest_event: datetime | None
    behind_offsets: int | None
    behind_bytes: int | None
    behind_s: float | None
    rows_in: int | None
    rows_late: int | None
    rows_duplicate: int | None
    rows_quarantined: int | None
    rows_refused: int | None
    state_rows: int | None
    state_bytes: int | None
    problems: tuple[str, ...]
    silent_s: float | None = None


def job_health(facts: JobFacts, now: datetime, bounds: HealthSection) -> JobHealth:
    """The health of a job at a time."""
    row = facts.row
    behind_s = _behind_s(facts, now)
    return JobHealth(
        job=facts.job,
        last_trigger=_utc(row.get("last_trigger")),
        last_batch=_utc(row.get("last_batch")),
        duration_ms=row.get("duration_ms"),
        batch_id=facts.checkpoint.batch_id if facts.checkpoint else row.get("batch_id"),
        rows_per_s=row.get("processed_rows_per_s"),
        newest_event=_utc(row.get("newest_event_time")),
        behind_offsets=row.get("behind_offsets"),
        behind_bytes=facts.unread.bytes if facts.unread else None,
        behind_s=behind_s,
        rows_in=row.get("rows_in"),
        rows_late=row.get("rows_late"),
        rows_duplicate=row.get("rows_duplicate"),
        rows_quarantined=row.get("rows_quarantined"),
        rows_refused=row.get("rows_refused"),
        state_rows=row.get("state_rows"),
        state_bytes=row.get("state_bytes"),
        problems=tuple(_problems(facts, behind_s, now, bounds)),
        silent_s=_silent_s(facts, now),
    )


def _behind_s(facts: JobFacts, now: datetime) -> float | None:
    """For how long data waits: since the oldest unread file, or since the newest event read."""
    newest = _utc(facts.row.get("newest_event_time"))
    if facts.unread is not None:
        oldest_ms = facts.unread.oldest_ms
        return max(now.timestamp() - oldest_ms / 1_000, 0.0) if oldest_ms else 0.0
    behind = facts.row.get("behind_offsets")
    if behind is None or newest is None:
        return None
    return max((now - newest).total_seconds(), 0.0) if behind else 0.0


def _problems(
    facts: JobFacts, behind_s: float | None, now: datetime, bounds: HealthSection
) -> Iterator[str]:
    yield from _silence(facts, now, bounds.max_silence_s)
    if behind_s is not None and behind_s > bounds.max_behind_s:
        behind, limit = (texts.duration(s * 1e3) for s in (behind_s, bounds.max_behind_s))
        yield f"data from {behind} ago is not read yet (threshold: {limit})"
    if facts.unread is not None and facts.unread.is_cut:
        yield "its table's log was cleaned before it was read: rows are missing, rebuild"
    rows = facts.row.get("rows_in") or 0
    for name, bound in (
        ("quarantined", bounds.max_quarantined_share),
        ("late", bounds.max_late_share),
    ):
        share = (facts.row.get(f"rows_{name}") or 0) / rows if rows else 0
        if share > bound:
            yield f"{texts.share(share)} of its rows were {name} (threshold: {texts.share(bound)})"
    refused = facts.row.get("rows_refused") or 0
    share = refused / (refused + (facts.row.get("rows_out") or 0)) if refused else 0
    if share > bounds.max_quarantined_share:
        limit = texts.share(bounds.max_quarantined_share)
        yield f"its receiver refused {texts.share(share)} of the points sent (threshold: {limit})"
    yield from facts.not_up_to_date


def _silent_s(facts: JobFacts, now: datetime) -> float | None:
    last = _utc(facts.row.get("last_trigger"))
    if last is None:
        return None
    silent_s = (now - last).total_seconds()
    if facts.job == UPKEEP:
        return silent_s if silent_s > _MAX_UPKEEP_AGE_S else None
    if not _is_scheduled(facts) or facts.usual_gap_s is None:
        return None
    return silent_s if silent_s > max(_GAPS * facts.usual_gap_s, _MIN_SILENCE_S) else None


def _is_scheduled(facts: JobFacts) -> bool:
    """Only queries and snapshots run on a schedule; other commands run by hand."""
    is_query = facts.checkpoint is not None
    if facts.is_out_of_reach:
        is_query = facts.row.get("batch_id") is not None
    return is_query or facts.job == SNAPSHOT


def _silence(facts: JobFacts, now: datetime, max_s: int) -> Iterator[str]:
    if not _is_scheduled(facts):
        return
    last = _utc(facts.row.get("last_trigger"))
    if last is None:
        yield "it never reported a batch"
    elif now - last > timedelta(seconds=max_s):
        silent = texts.age(last, now)
        yield f"no trigger for {silent} (threshold: {texts.duration(max_s * 1e3)})"


def _utc(time: datetime | None) -> datetime | None:
    return time.astimezone(UTC) if time else None
