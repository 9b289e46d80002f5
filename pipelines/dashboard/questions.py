"""The questions of the dashboard: those of areas, one dataset each."""

from quotaflow.pipelines.areas import (
    changes,
    costs,
    fetches,
    groups,
    pipeline,
    problems,
    producer_ids,
    quotas,
    racks,
    reads,
    replication,
    telemetry,
    traffic,
)
from quotaflow.pipelines.areas.question import NO_NAME, Question, filled
from quotaflow.pipelines.dashboard.lakeview import CLUSTER, TIME_RANGE, Dataset, overlaps

_MAX_ROWS = 200
# One filter of the dashboard chooses clusters, so each question is about all.
_PARTS = NO_NAME | {
    "of_cluster": "true",
    "without_log": pipeline.WITHOUT_LOG,
    "since": f":{TIME_RANGE}.min",
    "limit": str(_MAX_ROWS),
}


def _of_days(sql: str) -> str:
    return filled(sql, _PARTS, lambda _, first, last: f"({overlaps(first, last)})")


def _chart(name: str, question: Question) -> Dataset:
    """All rows of a question."""
    return Dataset(name, _of_days(f"{question.sql.strip()}\nORDER BY {question.order}\n"))


def _rows(name: str, question: Question, columns: str) -> Dataset:
    """The first rows of a question."""
    names = tuple(columns.split())
    sql = question.select((CLUSTER, *names))
    return Dataset(name, _of_days(sql), names)


_ATTENTION = Question(
    "\nUNION ALL\n".join(problem.count for problem in problems.PROBLEMS), "found DESC, code"
)
_EVERY = (
    _chart("cluster", traffic.CLUSTERS),
    _rows("attention", _ATTENTION, "what found code"),
    _chart("traffic", traffic.BY_HOUR),
    _chart("costs", costs.BY_HOUR),
    _rows("costs_of_topics", costs.OF_TOPICS, "topic item amount unit cost currency"),
    _rows(
        "producer_id_offenders",
        producer_ids.BY_ADVICE,
        "principal cause is_accused source new_ids max_rate_per_s quota_per_s "
        "recommended_rate_per_s recommended_by max_throttle_time_ms ids clients source_ids "
        "median_gap_ms requests_per_id",
    ),
    _chart("producer_id_rates_by_minute", producer_ids.RATES_BY_MINUTE),
    _rows(
        "throttled",
        quotas.THROTTLES,
        "principal client_id throttled_by throttled_requests throttled_s",
    ),
    _rows(
        "headroom",
        quotas.HEADROOM,
        "quota_bucket_user quota_bucket_client_id broker_id quota_type quota peak_usage "
        "peak_percent windows_over windows_throttled state",
    ),
    _rows(
        "replication_throttles_that_stand",
        replication.THROTTLE_WRONG.question,
        "finding topic side broker_id rate age_s set_by replicas malformed_entries "
        "response_max_bytes largest_response_max_bytes",
    ),
    _rows(
        "moves",
        replication.MOVES,
        "topic partition replica_id state requested_time requested_by bytes_left bytes_per_s eta_s",
    ),
    _rows(
        "steps_of_throttles_and_moves",
        replication.TIMELINE,
        "event_time entity_type entity_name config_key change value principal is_done",
    ),
    _chart("throttled_replication", replication.THROTTLED_BY_MINUTE),
    _chart("racks", racks.OF_LAST_DAY),
    _rows(
        "steps_that_keep_bytes_in_their_rack",
        racks.STEPS,
        "advice client_rack client_id topic broker_id saved_bytes_per_hour replica_bytes_per_hour",
    ),
    _rows(
        "fetch_settings",
        fetches.SETTINGS,
        "principal client_id replica_id advice setting current_value recommended_value trade_off "
        "fetches_per_s expected_fetches_per_s",
    ),
    _rows(
        "reads_that_fail",
        reads.READS,
        "principal client_id topic advice too_small_answers redirect_loop_answers resets "
        "lagging_minutes last_seen",
    ),
    _rows(
        "why_groups_lag",
        groups.CAUSES,
        "group_id topic lag lag_s trend rank cause confidence detail caught_up_in_s",
    ),
    _rows(
        "groups_behind",
        groups.LAGS,
        "group_id topic lag lag_s records_in_per_s records_out_per_s",
    ),
    _chart("telemetry_coverage", telemetry.BY_END),
    _rows(
        "alerts",
        telemetry.EVERY_ALERT.where("is_open OR {within:first_breach}"),
        "is_open rule client_id principal metric bound peak_value unit first_breach duration_ms",
    ),
    _rows(
        "changes_that_wait",
        changes.DESIRED,
        "priority entity_type entity_name config_key prior_value config_value reason_code "
        "blocked_reason evidence subject",
    ),
    _rows(
        "changes_that_were_made",
        changes.EVERY_STEP,
        "event_time purpose step entity_type entity_name config_key prior_value config_value "
        "expires_at reason run_by",
    ),
    _rows(
        "jobs",
        pipeline.JOBS,
        "job last_trigger newest_event_time processed_rows_per_s behind_offsets behind_bytes "
        "rows_in rows_out rows_left_out rows_quarantined rows_late rows_failed",
    ),
    _rows(
        "checks_that_fail",
        pipeline.CHECKS.where("NOT success"),
        "suite severity expectation column_name failed_rows checked_rows details event_time",
    ),
    _rows("rows_that_were_not_used", pipeline.UNUSED, "outcome reason job target row_count"),
)
QUESTIONS = {dataset.name: dataset for dataset in _EVERY}
"""Every dataset by its name; each has the column cluster_id."""
