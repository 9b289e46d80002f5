"""Clock and stop file: when nothing may be written."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.ledger.ledger import DONE, REFUSED, STARTED, Ledger
from quotaflow.pipelines.feedback.writing import exclusive_section, stop_file

from ....delta_tables import NOON
from ..fake_configs import desired, forged


def leased(after_s: float, step: str = DONE) -> Ledger:
    """A ledger whose newest record is a lease of this long after noon."""
    record = forged(desired().entity, "producer_byte_rate", "2000", None)
    at = NOON + timedelta(seconds=after_s)
    return Ledger.from_records([replace(record, event_time=at, step=step)])


@pytest.mark.parametrize("after_s", [-3_600, 0, 59])
def test_a_clock_may_differ_a_little(after_s: int) -> None:
    exclusive_section.check_clock(leased(after_s), NOON)
    exclusive_section.check_clock(Ledger(), NOON)


@pytest.mark.parametrize("behind_s", [-20, 0, 20])
def test_what_follows_is_later_than_what_was(behind_s: int) -> None:
    now = NOON - timedelta(seconds=behind_s)
    assert exclusive_section.next_record_time(NOON, now) >= now
    assert exclusive_section.next_record_time(NOON, now) > NOON


@pytest.mark.parametrize("step", [DONE, STARTED])
def test_no_lease_begins_before_one_of_a_time_to_come_is_given_back(step: str) -> None:
    with pytest.raises(FeedbackError, match=r"set the clock, or, .* quotaflow restore --all --yes"):
        exclusive_section.check_clock(leased(61, step), NOON)


def test_a_record_of_a_time_to_come_that_leases_nothing_stops_nothing() -> None:
    """One refused write by a wrong clock must not lock apply and restore out until then."""
    ahead = leased(400 * 86_400, REFUSED)
    exclusive_section.check_clock(ahead, NOON)
    assert exclusive_section.next_record_time(ahead.newest_at, NOON) == NOON


@pytest.mark.parametrize("named", [True, False])
def test_a_stop_file_is_where_conf_says_or_beside_the_tables(tmp_path: Path, named: bool) -> None:
    file = tmp_path / "halt" if named else tmp_path / "warehouse" / "STOP"
    overrides = [f"warehouse.path={tmp_path / 'warehouse'}"]
    conf = config.load(overrides=[*overrides, *([f"plan.stop_file={file}"] if named else [])])
    assert stop_file.reason(stop_file.path(conf.plan, conf.warehouse)) is None
    file.parent.mkdir(exist_ok=True)
    file.touch()
    reason = f"{file} is there, nothing is written: remove it to go on"
    assert stop_file.reason(stop_file.path(conf.plan, conf.warehouse)) == reason


def test_a_catalog_s_stop_file_is_beside_the_checkpoints(tmp_path: Path) -> None:
    section = {"catalog_schema": "main.quotaflow", "checkpoints": str(tmp_path)}
    conf = config.Conf(warehouse=config.WarehouseSection(**section))  # type: ignore[arg-type]
    assert stop_file.path(conf.plan, conf.warehouse) == tmp_path / "STOP"
