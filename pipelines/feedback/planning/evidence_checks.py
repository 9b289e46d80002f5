"""Whether what a desired config rests on is up to date, and passed its data-quality checks.

A row rests on the answers that propose it, on the tables of its evidence, on the tables they are
computed from, and on pipeline_progress, which shows that nothing was lost on the way.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from quotaflow.pipelines.compute import result_state
from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.results.answers import refresh
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS, QUALITY_RESULTS

CURRENT_CHECKS = """
    SELECT suite, expectation, severity = 'critical' AND NOT success AS is_failing, event_time
    FROM current_quality
    ORDER BY suite, expectation
"""


_RESULT_JOBS = ("request_results", "fetch_results", "active_producer_results", "metric_alerts")
"""The jobs that compute results: a test compares them with the registry, which needs pyspark."""

PROPOSED_BY = {
    "producer_id_offenders": "offender_proposals",
    "default_quota_proposals": "default_quota_proposals",
    "producer_id_heap": "expiration_proposals",
    "metric_alerts": "subscription_proposals",
    "current_configs": "subscription_proposals",
    "quota_advice": "quota_proposals",
    "replication_rate_advice": "replication_proposals",
    "throttle_checks": "replication_proposals",
    "throttle_leftovers": "leftover_proposals",
}
"""The answer that desired_configs reads for rows with this evidence."""


@dataclass(frozen=True, slots=True)
class EvidenceChecks:
    """How the evidence of plans is checked, as conf says.

    `max_age`: of answers. `are_required`: evidence that was never checked is unusable, too.
    `reads`: the tables that each table is computed from; it is called only where a check failed.
    """

    warehouse: WarehouseSection
    open_session: OpenSession
    max_age: timedelta
    are_required: bool
    reads: Callable[[], Mapping[str, set[str]]]

    def unusable(self, tables: Reader, evidence: Collection[str], now: datetime) -> dict[str, str]:
        """Tables and views of evidence that a plan must not use, each with the reason."""
        return (
            self.dirty_results(evidence)
            | self._not_up_to_date(evidence, now)
            | self.failed(tables, evidence)
        )

    def dirty_results(self, evidence: Collection[str]) -> dict[str, str]:
        """Evidence that rests on a result whose rule failed, by the state beside its checkpoint."""
        warehouse = Warehouse(self.warehouse)
        dirty = {
            name: state
            for job in _RESULT_JOBS
            for name, state in result_state.load(warehouse.checkpoint(job)).items()
            if state.dirty_since is not None
        }
        if not dirty:
            return {}
        reads = self.reads()
        inputs = {name: (_inputs(name, reads) | {name}) & dirty.keys() for name in evidence}
        return {
            name: f"it rests on {min(bad)}, which is not up to date since "
            f"{dirty[min(bad)].dirty_since:%Y-%m-%d %H:%M:%S} UTC: {dirty[min(bad)].failure}"
            for name, bad in inputs.items()
            if bad
        }

    def _not_up_to_date(self, evidence: Collection[str], now: datetime) -> dict[str, str]:
        answers = {name: PROPOSED_BY[name] for name in evidence if name in PROPOSED_BY}
        problems = refresh.not_up_to_date(
            self.warehouse, self.open_session, now, self.max_age, set(answers.values())
        )
        return {name: problems[answer] for name, answer in answers.items() if answer in problems}

    def failed(self, tables: Reader, evidence: Collection[str]) -> dict[str, str]:
        """The same for failed checks alone, or missing ones where conf requires them."""
        checks = tables.rows(CURRENT_CHECKS) if tables.is_made(QUALITY_RESULTS.name) else []
        failing = {row["suite"]: row for row in reversed(checks) if row["is_failing"]}
        checked = {row["suite"] for row in checks}
        if not failing and not self.are_required:
            return {}
        reads = self.reads()
        reasons = {name: _why(_inputs(name, reads), failing) for name in evidence}
        if self.are_required:
            reasons = {
                name: why or _why_unchecked(name, reads, checked) for name, why in reasons.items()
            }
        return {name: why for name, why in reasons.items() if why}


def _why(inputs: Iterable[str], failing: Mapping[str, dict[str, Any]]) -> str | None:
    bad = next((failing[name] for name in sorted(inputs) if name in failing), None)
    if bad is None:
        return None
    return (
        f"it rests on {bad['suite']}, whose check {bad['expectation']} failed at "
        f"{bad['event_time']:%Y-%m-%d %H:%M:%S} UTC: fix that, and run quotaflow check"
    )


def _why_unchecked(
    name: str, reads: Mapping[str, set[str]], checked: Collection[str]
) -> str | None:
    missing = sorted(_inputs(name, reads) - set(checked))
    if not missing:
        return None
    return (
        f"it rests on {missing[0]}, which was never checked, and quality.required is true: "
        "run quotaflow check"
    )


def _inputs(name: str, reads: Mapping[str, set[str]]) -> frozenset[str]:
    inputs: set[str] = {PIPELINE_PROGRESS.name}
    left = set(views.dependencies(name)[0])
    while left:
        table = left.pop()
        inputs.add(table)
        left |= reads.get(table, set()) - inputs
    return frozenset(inputs)
