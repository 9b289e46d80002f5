"""Tables that every job filled from a real cluster are as they should be, all of them."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.quality.check import CheckRequest, check


@pytest.mark.faults
@pytest.mark.shows("declares and checks the quality of each table")
def test_nothing_is_amiss_and_a_second_check_finds_nothing_new(
    filled: Path, login: list[str], tmp_path: Path
) -> None:
    shutil.copytree(filled, tmp_path / "warehouse")
    conf = config.load(overrides=[*login, f"warehouse.path={tmp_path / 'warehouse'}"])
    lines: list[str] = []
    report = check(conf, CheckRequest(), datetime.now(UTC), lines.append)
    assert [(row["suite"], row["expectation"]) for row in report.failed] == []
    assert len({row["suite"] for row in report.rows}) > 30
    assert check(conf, CheckRequest(), datetime.now(UTC), lines.append).rows == []
