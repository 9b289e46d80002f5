"""The time zone of the machine changes nothing that a command prints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_tables

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati")
FAILED = 1


@pytest.mark.parametrize(
    "zones",
    [("America/St_Johns",), pytest.param(ZONES, marks=pytest.mark.faults)],
    ids=["one of half an hour", "others"],
)
def test_reading_commands_print_the_same_bytes_in_any_zone(
    warehouse: Warehouse, tmp_path: Path, zones: tuple[str, ...]
) -> None:
    make_tables(warehouse, FILLED)
    program = [sys.executable, "-m", "tests.pipelines.commands.zone_answers"]
    words = [str(warehouse.conf.path), str(tmp_path), "UTC", *zones]
    subprocess.run([*program, *words], check=True)
    in_utc, *elsewhere = (
        json.loads((tmp_path / f"{n}.json").read_text(encoding="utf-8"))
        for n in range(len(zones) + 1)
    )
    for command, (code, printed) in in_utc.items():
        assert code != FAILED or command.startswith("status"), (command, printed)
        assert printed
    for zone, answers in zip(zones, elsewhere, strict=True):
        differing = [command for command in in_utc if answers[command] != in_utc[command]]
        assert not differing, f"{zone}: {differing}"
