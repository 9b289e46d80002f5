"""The time zone of the machine changes nothing that a command prints."""

import json
import subprocess
import sys
from pathlib import Path

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_tables

ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York"),
    *("America/St_Johns", "Asia/Kolkata", "Pacific/Kiritimati"),
)
FAILED = 1


def test_reading_commands_print_the_same_bytes_in_six_zones(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    make_tables(warehouse, FILLED)
    program = [sys.executable, "-m", "tests.pipelines.commands.zone_answers"]
    subprocess.run([*program, str(warehouse.conf.path), str(tmp_path), *ZONES], check=True)
    in_utc, *elsewhere = (
        json.loads((tmp_path / f"{n}.json").read_text(encoding="utf-8")) for n in range(len(ZONES))
    )
    for command, (code, printed) in in_utc.items():
        assert code != FAILED or command.startswith("status"), (command, printed)
        assert printed
    for zone, answers in zip(ZONES[1:], elsewhere, strict=True):
        differing = [command for command in in_utc if answers[command] != in_utc[command]]
        assert not differing, f"{zone}: {differing}"
