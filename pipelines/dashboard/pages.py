"""The pages of the dashboard: the widgets for each question of `quotaflow report`."""

from quotaflow.pipelines.dashboard.lakeview import (
    CATEGORICAL,
    QUANTITATIVE,
    TEMPORAL,
    Page,
    Widget,
    axis,
    counter,
    plot,
    table,
    text,
)
from quotaflow.pipelines.dashboard.questions import QUESTIONS

_HALF = 3


def _table(title: str, question: str, width: int = 6, height: int = 7) -> Widget:
    return table(title, QUESTIONS[question], width, height)


def _over_time(title: str, question: str, time: str, value: str, color: str) -> Widget:
    x, y = axis(time, TEMPORAL, time), axis(value, QUANTITATIVE)
    return plot("line", title, question, x, y, axis(color, CATEGORICAL, color))


def _bars(title: str, question: str, value: str, category: str, color: str) -> Widget:
    x, y = axis(value, QUANTITATIVE), axis(category, CATEGORICAL, category)
    return plot("bar", title, question, x, y, axis(color, CATEGORICAL))


def _page(title: str, *rows: tuple[Widget, ...]) -> Page:
    return Page(title, rows)


PAGES = (
    _page(
        "Overview",
        (
            text(
                "Bytes are those of records, times are UTC. `Filters` choose a cluster and days. "
                "The chosen days do not change these, which show the present: the cluster, quotas, "
                "current throttles, settings to change, changes that wait, jobs and checks."
            ),
        ),
        (
            counter("Brokers", "cluster", "brokers"),
            counter("Racks", "cluster", "racks"),
            counter("Topics", "cluster", "topics"),
            _table("What needs attention", "attention", _HALF, 6),
        ),
        (_table("Configs that results ask for; quotaflow plan decides", "changes_that_wait"),),
        (
            _over_time(
                "What clients produced and consumed", "traffic", "hour", "bytes", "direction"
            ),
        ),
    ),
    _page(
        "Costs",
        (
            _over_time(
                "What it costs, by item, at the prices of conf today",
                "costs",
                "hour",
                "cost",
                "item",
            ),
        ),
        (_table("What topics and their clients cost, the greatest first", "costs_of_topics"),),
    ),
    _page(
        "Producer ids",
        (
            _over_time(
                "New producer ids per second, the highest of each minute",
                "producer_id_rates_by_minute",
                "minute",
                "rate_per_s",
                "principal",
            ),
        ),
        (_table("Who took new producer ids, offenders first", "producer_id_offenders"),),
    ),
    _page(
        "Client quotas",
        (
            _bars(
                "How long clients were throttled, by the quota that likely did",
                "throttled",
                "throttled_s",
                "client_id",
                "throttled_by",
            ),
        ),
        (_table("Who was throttled", "throttled"),),
        (_table("How full quotas were in the last hour with requests", "headroom"),),
    ),
    _page(
        "Replication",
        (
            _over_time(
                "Throttled replication of leaders, bytes/s",
                "throttled_replication",
                "minute",
                "rate",
                "broker_id",
            ),
        ),
        (_table("What is wrong with throttles that stand", "replication_throttles_that_stand"),),
        (_table("Moves of replicas", "moves"),),
        (_table("Who altered throttles and moves when", "steps_of_throttles_and_moves"),),
    ),
    _page(
        "Racks",
        (
            plot(
                "heatmap",
                "Bytes consumers read in the last day, by rack",
                "racks",
                axis("broker_rack", CATEGORICAL, "rack of the broker"),
                axis("client_rack", CATEGORICAL, "rack of the client"),
                axis("bytes", QUANTITATIVE, "bytes"),
            ),
        ),
        (_table("What would keep bytes in their rack", "steps_that_keep_bytes_in_their_rack"),),
    ),
    _page(
        "Fetches",
        (_table("Settings to change", "fetch_settings"),),
        (_table("Reads that go wrong", "reads_that_fail"),),
    ),
    _page(
        "Groups",
        (_bars("Records left, by group", "groups_behind", "lag", "group_id", "topic"),),
        (_table("Why groups lag, the surest cause first", "why_groups_lag"),),
        (_table("How far groups are behind", "groups_behind"),),
    ),
    _page(
        "Telemetry",
        (
            _bars(
                "How client instances ended, by their software",
                "telemetry_coverage",
                "instances",
                "software",
                "state",
            ),
        ),
        (_table("Alerts, open ones first", "alerts"),),
    ),
    _page(
        "Changes",
        (_table("What results ask to change", "changes_that_wait"),),
        (_table("What was written and restored", "changes_that_were_made"),),
    ),
    _page(
        "Pipeline",
        (_table("Jobs, the furthest behind first", "jobs"),),
        (_table("Checks of the tables that fail", "checks_that_fail"),),
        (_table("Rows that were not used", "rows_that_were_not_used"),),
    ),
)
