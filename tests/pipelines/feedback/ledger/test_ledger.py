"""The ledger of records: however long a lease is renewed, and for as long as it is needed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines.feedback.configs.change import RENEW, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.configs.live_configs import LiveConfigs
from quotaflow.pipelines.feedback.ledger.journal import read_ledger, to_row
from quotaflow.pipelines.feedback.ledger.ledger import Ledger, Record
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.runs import frozen_plans
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table

from ....cases import cases
from ....delta_tables import Fill
from ...kafka.fake_cluster import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC, MadeCluster
from ..fake_configs import DictConfigs, ListJournal, applying, desired, planned

NOW = datetime.now(UTC)


def set_at(days_ago: int, value: str = "1000", prior: str | None = None) -> Record:
    """The record of a write that was done."""
    row = desired(config_value=value, prior_value=prior)
    journal = ListJournal()
    configs = DictConfigs({row.entity: {} if prior is None else {row.config_key: prior}})
    applying(configs, journal, run_id=f"set{days_ago}").run("p", made(row).changes)
    return at(days_ago, journal.records[-1])


def at(days_ago: int, record: Record) -> Record:
    time = NOW - timedelta(days=days_ago)
    return replace(record, event_time=time, expires_at=time + timedelta(days=30))


def renewed(record: Record, days_ago: int) -> Record:
    renewal = replace(
        record, operation=RENEW, run_id=f"renew{days_ago}", prior_value=record.config_value
    )
    return at(days_ago, renewal)


def made(*rows: Any) -> Plan:
    return planned(*rows, bounds=PlanPolicy(lease_s=3_600), now=NOW)


def test_a_lease_renewed_for_years_is_still_held_on_what_stood_before(
    warehouse: Warehouse, fill: Fill
) -> None:
    first = set_at(800, "1000", prior="700")
    raised = set_at(790, "2000", prior="1000")
    renewals = [renewed(raised, days_ago) for days_ago in range(770, 0, -20)]
    fill("config_changes", [to_row(r, "me") for r in (first, raised, *renewals)])
    (owned,) = read_ledger(FolderReader(warehouse)).owned.values()
    assert (owned.prior_value, owned.value) == ("700", "2000")
    assert owned.expires_at == renewals[-1].expires_at
    assert owned.first_recorded_at == first.event_time


@cases(
    ("records", "days_ago"),
    ("nothing", [], None),
    ("owned", [set_at(90)], 90),
    ("raised by ourselves", [set_at(90), set_at(80, "2000", "1000")], 90),
    ("on somebody else's value", [set_at(90), set_at(80, "2000", "1500")], 80),
    ("given back", [set_at(90), replace(set_at(80), purpose="restore")], None),
    ("open", [replace(set_at(90), step="begun")], 90),
)
def test_records_are_needed_while_they_tell_what_is_held(
    records: list[Record], days_ago: int | None
) -> None:
    since = Ledger.from_records(records).needed_since
    assert since == (None if days_ago is None else NOW - timedelta(days=days_ago))


class Appended:
    """Rows by table, as `Rows` appends them to a warehouse."""

    def __init__(self, fill: Fill) -> None:
        self.fill = fill
        self.freezes = 0

    def append(self, table: Table, rows: list[dict[str, Any]]) -> None:
        self.freezes += 1
        self.fill(table.name, rows)


def test_a_plan_used_up_or_too_old_is_frozen_anew_and_one_that_waits_is_not(
    warehouse: Warehouse, fill: Fill
) -> None:
    rows, frozen, max_age = Appended(fill), made(desired(), desired("eve")), timedelta(hours=24)
    fill("plans", [])

    def keep(now: datetime, ledger: Ledger = Ledger()) -> datetime:  # noqa: B008  frozen
        frozen_plans.refreeze(FolderReader(warehouse), rows, ledger, frozen, now, max_age=max_age)  # type: ignore[arg-type]
        return frozen_plans.load(FolderReader(warehouse), frozen.plan_id).frozen_at

    assert keep(NOW) == NOW
    assert keep(NOW + timedelta(minutes=10)) == NOW
    assert rows.freezes == 1
    too_late = NOW + max_age + timedelta(seconds=1)
    assert keep(too_late) == too_late

    journal = ListJournal()
    applied_at = too_late + timedelta(minutes=1)
    applying(DictConfigs(), journal, clock=lambda: applied_at).run(frozen.plan_id, frozen.changes)
    assert frozen_plans.done_since(journal.ledger, frozen, too_late) == {
        change.change_id for change in frozen.changes
    }
    # A clock a little behind the records' does not freeze it before them.
    again = keep(too_late + timedelta(seconds=30), journal.ledger)
    assert again > applied_at
    assert keep(again + timedelta(minutes=1), journal.ledger) == again
    assert rows.freezes == 3
    thawed = frozen_plans.load(FolderReader(warehouse), frozen.plan_id).plan
    assert [c.change_id for c in thawed.changes] == [c.change_id for c in frozen.changes]


def test_plans_of_one_freeze_come_back_alone(warehouse: Warehouse, fill: Fill) -> None:
    frozen = made(desired())
    for minutes in (0, 5):
        fill("plans", list(frozen_plans.to_rows(frozen, NOW + timedelta(minutes=minutes), "me")))
    assert len(frozen_plans.load(FolderReader(warehouse), frozen.plan_id).plan.changes) == 1


def test_what_is_no_more_has_no_configs() -> None:
    refused = {
        ("DescribeConfigs", "gone"): UNKNOWN_TOPIC,
        ("DescribeConfigs", "hidden"): TOPIC_AUTHORIZATION_FAILED,
    }
    cluster = MadeCluster(refused=refused, unreachable={3, 9}, fenced={3})
    configs = LiveConfigs(ClusterState(cluster))
    assert configs.read(ConfigEntity("c", "topic", "gone")) == {}
    assert configs.read(ConfigEntity("c", "broker", "9")) == {}
    assert configs.read(ConfigEntity("c", "broker-logger", "9")) == {}
    with pytest.raises(UnansweredError, match="TOPIC_AUTHORIZATION_FAILED"):
        configs.read(ConfigEntity("c", "topic", "hidden"))
    with pytest.raises(UnansweredError, match="KafkaConnectionError"):
        configs.read(ConfigEntity("c", "broker", "3"))
