"""A disk that fills up under a job: one line says so, no table is torn, and space ends it."""

import shlex
import subprocess
from pathlib import Path

import pytest

from quotaflow.pipelines.jobs.registry import JOBS

from ...live.tables_read import contents
from . import recorded
from .command import command, conf_file, copied
from .conftest import Made, Topic

pytestmark = [pytest.mark.spark, pytest.mark.faults]

JOB = "fetches"
# A file system of its own for one process and its children; without root, in its own name space.
OWN_MOUNTS = ["unshare", "--mount", "--map-root-user", "--user"]
SCRIPT = """
mount -t tmpfs -o size={size} tmpfs {disk}
cp -a {filled}/. {disk}
{run} > {folder}/full 2>&1 && echo 0 >> {folder}/full || echo $? >> {folder}/full
mount -o remount,size=64m {disk}
{run} > {folder}/again 2>&1 && echo 0 >> {folder}/again || echo $? >> {folder}/again
cp -a {disk}/. {folder}/found
"""


def size_of(folder: Path) -> int:
    """Bytes a folder takes on a tmpfs, whose pages are of 4 KiB."""
    files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(-(-size // 4_096) * 4_096 for size in files)


@pytest.fixture
def filled(made: Made, topic: Topic) -> Path:
    """A warehouse after ingest, and after the job in question: the tables as they should be."""
    topic(recorded.dealt(recorded.golden_lines(), 1))
    setting = made("calm", "ingest_request_log", JOB)
    recorded.run(setting, "ingest_request_log")
    return setting.warehouse.conf.folder


@pytest.mark.timeout(1_800)
def test_a_full_disk_is_told_and_space_makes_it_good(
    filled: Path, made: Made, tmp_path: Path
) -> None:
    before = copied(filled, tmp_path / "before")
    recorded.run(made("calm", JOB), JOB)
    names = {table.name for table in JOBS[JOB].fills}
    expected = contents(filled, names)
    for free_bytes in (0, 40_000):
        folder = tmp_path / f"free-{free_bytes}"
        conf = conf_file(folder)
        disk, size = folder / "warehouse", size_of(before) + free_bytes
        disk.mkdir()
        script = SCRIPT.format(
            size=size, disk=disk, filled=before, folder=folder, run=shlex.join(command(conf, JOB))
        )
        subprocess.run([*OWN_MOUNTS, "sh", "-ec", script], check=True, timeout=600)
        *_, message, code = (folder / "full").read_text().splitlines()
        assert message.startswith("error: ")
        assert "no space left on device: free some where the tables are" in message.lower()
        assert (code, "Traceback" in (folder / "full").read_text()) == ("1", False)
        assert (folder / "again").read_text().splitlines()[-1] == "0"
        assert contents(folder / "found", names) == expected
