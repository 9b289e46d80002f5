"""What clients and topics cost in the time of a report: each place that shows it reads this."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.warehouse.sql_literals import like_pattern, literal

if TYPE_CHECKING:
    from quotaflow.pipelines.config.cluster import Team

ITEMS = {
    "produced": "produced",
    "consumed": "consumed",
    "cross_rack": "between racks",
    "remote_read": "read from remote storage",
    "stored": "kept on disks",
}
"""The items, in words."""

COST_ITEMS = """
    SELECT
        clients.cluster_id,
        hour,
        topic,
        principal,
        client_id,
        direction AS item,
        bytes / 1073741824e0 AS amount,
        'GiB' AS unit,
        CAST(NULL AS DOUBLE) AS unknown_amount,
        CAST(NULL AS DOUBLE) AS known_s,
        bytes / 1073741824e0
            * CASE direction WHEN 'produced' THEN produced_per_gib ELSE consumed_per_gib END
            AS cost,
        currency
    FROM traffic_of_clients AS clients
    LEFT JOIN current_prices AS prices ON clients.cluster_id = prices.cluster_id
    UNION ALL
    SELECT
        clients.cluster_id, hour, topic, principal, client_id, 'cross_rack',
        cross_rack_bytes / 1073741824e0, 'GiB', unknown_rack_bytes / 1073741824e0,
        CAST(NULL AS DOUBLE), cross_rack_bytes / 1073741824e0 * cross_rack_per_gib, currency
    FROM traffic_of_clients AS clients
    LEFT JOIN current_prices AS prices ON clients.cluster_id = prices.cluster_id
    UNION ALL
    SELECT
        cluster_id, hour, topic, principal, client_id, 'remote_read', bytes / 1073741824e0, 'GiB',
        CAST(NULL AS DOUBLE), CAST(NULL AS DOUBLE), remote_read_cost, currency
    FROM remote_reads_by_hour
    UNION ALL
    SELECT
        cluster_id, hour, topic, CAST(NULL AS STRING), CAST(NULL AS STRING), 'stored',
        byte_hours / 1073741824e0 / 730e0, 'GiB-month', CAST(NULL AS DOUBLE), known_s,
        storage_cost, currency
    FROM storage_by_hour
"""
"""Rows of SQL of both engines, whose costs add up. `stored` has no client, and a GiB-month is a GiB
on one disk for 730 hours. A null amount is not known. Of `cross_rack`, `unknown_amount` are GiB for
which one of the racks is not known: above 0, the amount is a least value. Of `stored`, `known_s`
are the seconds of the hour that snapshots know."""

VIEWS = ("traffic_of_clients", "current_prices", "remote_reads_by_hour", "storage_by_hour")
"""The views that it reads."""


_IN_TIME = "cluster_id = {cluster} AND hour >= date_trunc('hour', {since})"
_BYTES = "* 1073741824e0"
_ITEM_COSTS = ", ".join(
    f"sum(CASE WHEN item = '{item}' THEN cost END) AS {item}_cost" for item in ITEMS
)
# Sizes of all replicas take long to read, so one query has every sum.
_OWNED = f"""
SELECT
    grouping(team) AS is_total,
    grouping(topic) AS is_team,
    team,
    topic,
    min(hour) AS first_hour,
    max(hour) AS last_hour,
    sum(CASE WHEN item = 'produced' THEN amount END) {_BYTES} AS produced,
    sum(CASE WHEN item = 'consumed' THEN amount END) {_BYTES} AS consumed,
    sum(CASE WHEN item = 'cross_rack' THEN amount END) {_BYTES} AS cross_rack_bytes,
    sum(unknown_amount) {_BYTES} AS unknown_rack_bytes,
    sum(CASE WHEN item = 'remote_read' THEN amount END) {_BYTES} AS remote_bytes,
    sum(CASE WHEN item = 'stored' THEN amount END) * 730 {_BYTES} AS byte_hours,
    count(DISTINCT CASE WHEN item = 'stored' AND amount IS NULL THEN topic END) AS unsized_topics,
    sum(CASE WHEN nth_of_hour = 1 THEN known_s END) AS known_s,
    {_ITEM_COSTS},
    sum(cost) AS cost,
    max(currency) AS currency
FROM (
    SELECT
        *,
        coalesce({{client_team}}, {{topic_team}}) AS team,
        row_number() OVER (PARTITION BY hour ORDER BY known_s DESC NULLS LAST) AS nth_of_hour
    FROM ({COST_ITEMS}) AS items
    WHERE {_IN_TIME}
) AS owned
GROUP BY GROUPING SETS ((team, topic), (team), ())
ORDER BY
    cost DESC NULLS LAST, coalesce(produced, 0) + coalesce(consumed, 0) DESC, team, topic
"""
BY_HOUR = Question(
    f"""
SELECT cluster_id, hour, item, sum(cost) AS cost
FROM ({COST_ITEMS}) AS costs
WHERE {{of_cluster}} AND {{within:hour}}
GROUP BY cluster_id, hour, item
""",
    "hour",
)
OF_TOPICS = Question(
    f"""
SELECT cluster_id, topic, item, sum(amount) AS amount, unit, sum(cost) AS cost,
    max(currency) AS currency
FROM ({COST_ITEMS}) AS costs
WHERE {{of_cluster}} AND {{within:hour}}
GROUP BY cluster_id, topic, item, unit
""",
    "cost DESC NULLS LAST, amount DESC NULLS LAST",
)
_OF_NAME = f"""
SELECT item, unit, sum(amount) AS amount, sum(cost) AS cost, max(currency) AS currency,
    count(*) OVER () AS of_all
FROM ({COST_ITEMS}) AS items
WHERE {_IN_TIME} AND {{condition}}
GROUP BY item, unit
ORDER BY cost DESC NULLS LAST, item
"""


@dataclass(frozen=True, slots=True)
class Costs:
    """Amounts and costs: of all, by team, and by team and topic, the greatest cost first.

    Amounts are in bytes, and `byte_hours` of storage in bytes times hours. `known_s` of the total
    is the time in which snapshots know what is on disks, in seconds. A cost is null without a
    price or an amount.
    """

    total: Row
    teams: list[Row]
    topics: list[Row]


def costs_of(scope: Scope) -> Costs:
    """The costs of a scope; a table that was never made has no rows."""
    owners = scope.conf.teams
    rows = _with_all_tables(scope).rows(
        _OWNED,
        client_team=team_sql(owners, principals="principal", clients="client_id"),
        topic_team=team_sql(owners, topics="topic"),
    )
    (total,) = [row for row in rows if row["is_total"]]
    teams = [row for row in rows if row["is_team"] and not row["is_total"]]
    return Costs(total, teams, [row for row in rows if not row["is_team"]])


def costs_of_name(scope: Scope, condition: str) -> list[Row]:
    """The amount and the cost of each item of rows for which a condition is true."""
    return _with_all_tables(scope).rows(_OF_NAME, condition=condition)


def _with_all_tables(scope: Scope) -> Scope:
    from quotaflow.pipelines.warehouse import views  # noqa: PLC0415  imports pyarrow

    reader = scope.reader
    unmade = frozenset(name for name in views.required(VIEWS) if not reader.is_made(name))
    return replace(scope, reader=reader.with_empty(unmade)) if unmade else scope


def team_sql(teams: Sequence["Team"], **columns: str) -> str:
    """SQL of the first team that owns a name; `columns` are the names' columns by kind of pattern.

    A pattern becomes a LIKE, whose cost is bounded; the text of it is a literal.
    """
    cases = []
    for team in teams:
        tests = [
            f"{column} LIKE {literal(like_pattern(pattern))} ESCAPE '!'"
            for kind, column in columns.items()
            for pattern in getattr(team, kind)
        ]
        if tests:
            cases.append(f"WHEN {' OR '.join(tests)} THEN {literal(team.team)}")
    return f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"
