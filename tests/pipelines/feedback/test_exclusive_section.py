"""Clock and stop file: when nothing may be written."""

from datetime import timedelta
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback import exclusive_section
from quotaflow.pipelines.feedback.ledger import Ledger

from .fake_configs import NOON


@pytest.mark.parametrize("after_s", [-3_600, 0, 59])
def test_a_clock_may_differ_a_little(after_s: int) -> None:
    exclusive_section.check_clock(Ledger(newest_at=NOON + timedelta(seconds=after_s)), NOON)
    exclusive_section.check_clock(Ledger(), NOON)


@pytest.mark.parametrize("behind_s", [-20, 0, 20])
def test_what_follows_is_later_than_what_was(behind_s: int) -> None:
    now = NOON - timedelta(seconds=behind_s)
    assert exclusive_section.next_record_time(NOON, now) >= now
    assert exclusive_section.next_record_time(NOON, now) > NOON


def test_a_clock_that_went_back_stops_it() -> None:
    with pytest.raises(FeedbackError, match="set the clock"):
        exclusive_section.check_clock(Ledger(newest_at=NOON + timedelta(seconds=61)), NOON)


@pytest.mark.parametrize("named", [True, False])
def test_a_stop_file_is_where_conf_says_or_beside_the_tables(tmp_path: Path, named: bool) -> None:
    file = tmp_path / "halt" if named else tmp_path / "warehouse" / "STOP"
    overrides = [f"warehouse.path={tmp_path / 'warehouse'}"]
    conf = config.load(overrides=[*overrides, *([f"plan.stop_file={file}"] if named else [])])
    assert exclusive_section.stop_file_reason(conf) is None
    file.parent.mkdir(exist_ok=True)
    file.touch()
    reason = f"{file} is there, nothing is written: remove it to go on"
    assert exclusive_section.stop_file_reason(conf) == reason


def test_a_catalog_s_stop_file_is_beside_the_checkpoints(tmp_path: Path) -> None:
    section = {"catalog_schema": "main.quotaflow", "checkpoints": str(tmp_path)}
    conf = config.Conf(warehouse=config.WarehouseSection(**section))  # type: ignore[arg-type]
    assert exclusive_section.stop_file(conf) == tmp_path / "STOP"
