"""Plans and records read back from tables equal those written."""

import pyarrow as pa
import pytest

from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger.journal import to_record, to_row
from quotaflow.pipelines.feedback.runs import frozen_plans
from quotaflow.schemas.tables.declared import CONFIG_CHANGES, PLANS

from ....delta_tables import NOON
from ..fake_configs import DictConfigs, ListJournal, applying, desired, planned

LIST = "leader.replication.throttled.replicas"
ROWS = [
    desired("o'b\x1b[2J"),
    desired("a", entity_client_id="app", prior_value="3000"),
    desired("removed", config_value=None, prior_value="5"),
    desired("t", entity_type="topic", config_key=LIST, config_value="0:1"),
]


@pytest.mark.parametrize("row", ROWS)
def test_a_plan_thawed_is_the_plan_frozen(row: DesiredConfig) -> None:
    made = planned(row)
    kept = pa.Table.from_pylist(list(frozen_plans.to_rows(made, NOON, "me")), schema=PLANS.arrow)
    thawed = Plan(frozen_plans.to_changes(kept.to_pylist()), ())
    assert thawed.plan_id == made.plan_id
    (before,), (after,) = made.changes, thawed.changes
    assert (after.value, after.operation, after.lease_s) == (
        before.value,
        before.operation,
        before.lease_s,
    )
    assert (after.entity, after.command, after.note) == (
        before.entity,
        before.command,
        before.note,
    )


def test_changes_come_back_in_their_order() -> None:
    made = planned(*ROWS)
    rows = list(frozen_plans.to_rows(made, NOON, "me"))
    assert Plan(frozen_plans.to_changes(reversed(rows)), ()).plan_id == made.plan_id


@pytest.mark.parametrize("row", ROWS)
def test_records_come_back_as_they_were(row: DesiredConfig) -> None:
    before = {} if row.prior_value is None else {row.config_key: row.prior_value}
    journal = ListJournal()
    applying(DictConfigs({row.entity: before}), journal).run("p", planned(row).changes)
    rows = [to_row(record, "me") for record in journal.records]
    kept = pa.Table.from_pylist(rows, schema=CONFIG_CHANGES.arrow).to_pylist()
    assert len(kept) == 2
    assert [to_record(each) for each in kept] == journal.records
