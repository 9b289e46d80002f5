"""All answers, each after those it reads."""

from collections.abc import Mapping
from datetime import timedelta
from importlib.resources import files

from quotaflow.pipelines.results.answers import lag_causes
from quotaflow.pipelines.results.answers.answer import Answer, Derivation, Lookback
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.answers import (
    group_lag,
    groups,
    producer_ids,
    quotas,
    reads,
    replication,
    telemetry,
    throttles,
)

_DAYS = timedelta(days=1)
_TEN_MINUTES, _HOUR = Lookback(timedelta(minutes=10)), Lookback(timedelta(hours=1))
_A_DAY, _TWO_DAYS = Lookback(_DAYS), Lookback(2 * _DAYS)
_A_WEEK, _TWO_WEEKS = Lookback(7 * _DAYS), Lookback(14 * _DAYS)
_ADVICE_DAYS = Lookback(7 * _DAYS, "quotas.advice_days", _DAYS)
# Twice the history that is needed: whether all of it is there shows only by what came before.
_ADDRESSES = Lookback(14 * _DAYS, "plan.address_history_s", timedelta(seconds=2))
_PRODUCER_SNAPSHOTS = {
    "active_producers": _TWO_WEEKS,
    "producer_id_uses": _TWO_WEEKS,
    "pipeline_progress": _TWO_WEEKS,
}
"""Inputs of the view producer_id_heap: ids that nobody writes with are gone by then."""
_POSITIONS = {"replica_offsets": _A_DAY, "group_commits": _A_DAY, "pipeline_progress": _A_WEEK}
"""Inputs of the views partition_ends and group_positions."""
_VIOLATIONS = Lookback(timedelta(hours=1), "plan.violation_lookback_s")
_STALE_THROTTLES = Lookback(timedelta(minutes=10), "replication.stale_throttle_s")


def _answer(
    table: Table,
    lookbacks: Mapping[str, Lookback] | None = None,
    expiry: str | None = None,
    derive: Derivation | None = None,
) -> Answer:
    text = (
        files("quotaflow.pipelines.results.answers")
        .joinpath(f"{table.name}.sql")
        .read_text(encoding="utf-8")
    )
    return Answer(table, text, lookbacks or {}, expiry, derive)


ANSWERS: tuple[Answer, ...] = (
    # Bursts of a week. A burst's begin and earlier use of its transactional ids are further back.
    _answer(producer_ids.PRODUCER_ID_BURSTS, {"producer_id_uses": _TWO_WEEKS}),
    _answer(
        producer_ids.RECENT_VIOLATIONS,
        {
            "producer_id_rates": _VIOLATIONS,
            "pipeline_progress": _A_WEEK,
            "fetch_sizes": _A_WEEK,
        },
    ),
    # A day more than a week, because a client without usage for some hours has a week of history.
    _answer(quotas.QUOTA_BASELINES, {"quota_usage": Lookback(8 * _DAYS)}),
    _answer(quotas.QUOTA_ADVICE, {"quota_usage": _ADVICE_DAYS, "fetch_sizes": _A_WEEK}),
    _answer(quotas.QUOTA_PROPOSALS),
    _answer(
        replication.PARTITION_WRITE_RATES,
        {"replication_traffic": _TEN_MINUTES, "replication_throttles": _TEN_MINUTES},
    ),
    _answer(
        replication.BROKER_DEGRADATION,
        {"requests": _HOUR, "replication_traffic": _HOUR, "replication_throttles": _HOUR},
    ),
    _answer(
        throttles.THROTTLE_CHECKS,
        {"replication_traffic": _STALE_THROTTLES, "replication_throttles": _STALE_THROTTLES},
    ),
    _answer(
        throttles.THROTTLED_REPLICA_PROPOSALS,
        {"replication_traffic": _HOUR, "replication_throttles": _HOUR},
    ),
    _answer(
        replication.REPLICATION_DEMAND,
        {
            "replication_traffic": _A_WEEK,
            "rack_traffic": _A_WEEK,
            "preferred_replicas": _TEN_MINUTES,
            "replication_throttles": _HOUR,
        },
    ),
    _answer(
        throttles.REPLICATION_PROPOSALS,
        {"replication_traffic": _TEN_MINUTES, "replication_throttles": _TEN_MINUTES},
    ),
    _answer(replication.REASSIGNMENTS, {"traffic": _HOUR, "replica_lag": _A_WEEK}),
    _answer(
        telemetry.CLIENT_COVERAGE,
        {
            "telemetry_pushes": _A_WEEK,
            "telemetry_subscriptions": _A_WEEK,
            "pipeline_progress": _TWO_WEEKS,
        },
    ),
    _answer(
        telemetry.SUBSCRIPTION_PROPOSALS,
        {"telemetry_pushes": _A_WEEK},
        # An alert that will be stale when nothing more comes is closed ahead of time.
        expiry="""
            SELECT min(event_time) AS expires_at
            FROM metric_alert_events
            WHERE state = 'closed' AND event_time > current_timestamp()
        """,
    ),
    _answer(reads.RACK_PAIRS, {"rack_traffic": _TWO_DAYS, "preferred_replicas": _TWO_DAYS}),
    _answer(
        reads.PRODUCER_RACK_ADVICE,
        {"traffic": _TWO_DAYS, "client_metrics": _TWO_DAYS, "fetch_sizes": _A_WEEK},
    ),
    _answer(
        reads.REMOTE_READ_ADVICE,
        {
            "remote_reads": _A_DAY,
            "traffic": _A_DAY,
            # What it reads of their views comes from snapshots.
            "replica_offsets": _TEN_MINUTES,
            "fetch_sizes": _A_WEEK,
            "pipeline_progress": _TWO_WEEKS,
        },
    ),
    _answer(
        reads.READ_PROBLEMS,
        {"fetch_faults": _TWO_DAYS, "offset_lookups": _TWO_DAYS, "preferred_replicas": _A_DAY},
    ),
    _answer(
        groups.REBALANCES,
        {"group_member_events": _TWO_DAYS, "group_members": _TWO_DAYS},
    ),
    # After broker_degradation, which it reads.
    _answer(
        producer_ids.PRODUCER_ID_OFFENDERS,
        {"address_clients": _ADDRESSES, "fetch_sizes": _A_WEEK, **_PRODUCER_SNAPSHOTS},
    ),
    _answer(producer_ids.DEFAULT_QUOTA_PROPOSALS, {"producer_id_rates": _ADDRESSES}),
    _answer(producer_ids.EXPIRATION_PROPOSALS, _PRODUCER_SNAPSHOTS),
    _answer(throttles.LEFTOVER_PROPOSALS, {"pipeline_progress": _A_WEEK}),
    _answer(group_lag.GROUP_LAG, _POSITIONS),
    # After group_lag and rebalances, which it reads.
    _answer(
        group_lag.WHY_GROUPS_LAG,
        {
            **_POSITIONS,
            **dict.fromkeys(("requests", "client_metrics", "traffic", "fetch_sizes"), _HOUR),
            **dict.fromkeys(("quota_usage", "fetch_faults", "group_members"), _HOUR),
            **dict.fromkeys(("group_member_events", "share_fetches"), _HOUR),
        },
        derive=lag_causes.DERIVATION,
    ),
    _answer(quotas.TOP_TALKERS, {"traffic": Lookback(8 * _DAYS), "fetch_sizes": _A_WEEK}),
)
