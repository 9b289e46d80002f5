"""What clients and topics cost in the time of a report: each place that shows it reads this."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quotaflow.pipelines.report.scope import Scope
from quotaflow.pipelines.report.section import Row
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.cost_items import COST_ITEMS, ITEMS, VIEWS

_IN_TIME = "cluster_id = {cluster} AND hour >= date_trunc('hour', {since})"
_HOURS = (
    f"SELECT min(hour) AS first, max(hour) AS last FROM ({COST_ITEMS}) AS costs WHERE {_IN_TIME}"
)
_KNOWN_HOURS = f"""
SELECT sum(known_s) / 3600 AS hours
FROM (
    SELECT hour, max(known_s) AS known_s FROM storage_by_hour WHERE {_IN_TIME} GROUP BY hour
) AS known_hours
"""
_ITEM_COSTS = ", ".join(
    f"sum(CASE WHEN item = '{item}' THEN cost END) AS {item}_cost" for item in ITEMS
)
_TOTALS = f"""
SELECT {_ITEM_COSTS}, sum(cost) AS cost, max(currency) AS currency
FROM ({COST_ITEMS}) AS costs
WHERE {_IN_TIME}
"""
_OF_NAME = f"""
SELECT item, unit, sum(amount) AS amount, sum(cost) AS cost, max(currency) AS currency,
    count(*) OVER () AS of_all
FROM ({COST_ITEMS}) AS costs
WHERE {_IN_TIME} AND {{condition}}
GROUP BY item, unit
ORDER BY cost DESC NULLS LAST, item
"""
_BYTES = "* 1073741824e0"
_OWNED = f"""
SELECT *, count(*) OVER () AS of_all
FROM (
    SELECT
        {{keys}},
        sum(CASE WHEN item = 'produced' THEN amount END) {_BYTES} AS produced,
        sum(CASE WHEN item = 'consumed' THEN amount END) {_BYTES} AS consumed,
        sum(CASE WHEN item = 'cross_rack' THEN amount END) {_BYTES} AS cross_rack_bytes,
        sum(unknown_amount) {_BYTES} AS unknown_rack_bytes,
        sum(CASE WHEN item = 'remote_read' THEN amount END) {_BYTES} AS remote_bytes,
        sum(CASE WHEN item = 'stored' THEN amount END) * 730 {_BYTES} AS byte_hours,
        count(DISTINCT CASE WHEN item = 'stored' AND amount IS NULL THEN topic END)
            AS unsized_topics,
        {_ITEM_COSTS},
        sum(cost) AS cost,
        max(currency) AS currency
    FROM (
        SELECT *, coalesce({{client_team}}, {{topic_team}}) AS team
        FROM ({COST_ITEMS}) AS costs
        WHERE {_IN_TIME}
    ) AS owned
    GROUP BY {{keys}}
) AS sums
ORDER BY cost DESC NULLS LAST, coalesce(produced, 0) + coalesce(consumed, 0) DESC, {{keys}}
"""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one scope, by the prices of conf that the last snapshot stored."""

    scope: Scope

    @classmethod
    def of_scope(cls, scope: Scope) -> "Costs":
        """The costs of a scope; a table that was never made has no rows."""
        reader = scope.reader
        unmade = frozenset(name for name in views.required(VIEWS) if not reader.is_made(name))
        return cls(replace(scope, reader=reader.with_empty(unmade)) if unmade else scope)

    def hours(self) -> Row:
        """The `first` and `last` hour with a cost or an amount; null without any."""
        return self.scope.rows(_HOURS)[0]

    def totals(self) -> Row:
        """The cost of all and of each item (`produced_cost`); null: no price, or no amount."""
        return self.scope.rows(_TOTALS)[0]

    def of_name(self, condition: str) -> list[Row]:
        """The amount and the cost of each item of rows for which a condition is true."""
        return self.scope.rows(_OF_NAME, condition=condition)

    def known_hours(self) -> float | None:
        """How many hours of the time snapshots know what is on disks; None: none."""
        hours: float | None = self.scope.rows(_KNOWN_HOURS)[0]["hours"]
        return hours

    def owned(self, keys: Sequence[str], client_team: str, topic_team: str) -> list[Row]:
        """Amounts in bytes (of storage in bytes times hours) and costs, by team and topic.

        `client_team` and `topic_team` are SQL of the team that owns a client or a topic.
        """
        parts = {"client_team": client_team, "topic_team": topic_team, "keys": ", ".join(keys)}
        return self.scope.rows(_OWNED, **parts)
