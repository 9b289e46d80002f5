"""Writers at once on an object store: no commit replaces another, and one owns the tables."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.errors import ConfigError, LockedError
from quotaflow.pipelines.warehouse import store_owner
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS as TABLE

from ..schemas.views.view_tables import no_session
from . import careless
from .conftest import Server
from .object_server import ObjectServer
from .writing import COMMITS, OWNER

# The first run builds a server.
pytestmark = [pytest.mark.faults, pytest.mark.timeout(3_600)]

ROOT = Path(__file__).resolve().parents[2]
WRITERS = 3
TIMEOUT_S = 300
ROUNDS, THREADS = 10, 6


def sections(server: Server, prefix: str, folder: Path) -> Sequence[WarehouseSection]:
    made = [server.section(prefix, folder / str(writer)) for writer in range(WRITERS)]
    for section in made:
        section.checkpoint_folder.mkdir()
    return made


def outputs_of(work: str, confs: Sequence[WarehouseSection]) -> list[str]:
    """What processes that do this at the same time print."""
    command = [sys.executable, "-m", "tests.stores.writing", work]
    processes = [
        subprocess.Popen(
            [*command, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for number in range(len(confs))
    ]
    # All wait for their conf, so that they begin at once.
    with ThreadPoolExecutor(len(confs)) as pool:
        texts = [conf.model_dump_json() for conf in confs]
        outputs = list(pool.map(lambda p, text: p.communicate(text, TIMEOUT_S), processes, texts))
    assert [process.returncode for process in processes] == [0] * len(confs)
    return [output.strip() for output, _ in outputs]


def test_no_append_of_three_processes_is_lost(s3: ObjectServer, tmp_path: Path) -> None:
    confs = sections(s3, "appends", tmp_path)
    warehouse = Warehouse(confs[0])
    warehouse.ensure(no_session, [TABLE])
    first = warehouse.place.open(TABLE.name).version()
    outputs_of("append", confs)
    assert warehouse.place.open(TABLE.name).version() == first + WRITERS * COMMITS
    (counted,) = FolderReader(warehouse).rows(
        f"SELECT count(*) AS rows, count(DISTINCT (job, batch_id)) AS commits FROM {TABLE.name}"
    )
    assert counted == {"rows": WRITERS * COMMITS, "commits": WRITERS * COMMITS}


def test_of_first_writers_at_once_one_owns_the_tables(server: Server, tmp_path: Path) -> None:
    confs = sections(server, "claims", tmp_path)
    outcomes = outputs_of("claim", confs)
    assert outcomes.count(OWNER) == 1
    refused = [outcome for outcome in outcomes if outcome != OWNER]
    assert all("name theirs in warehouse.checkpoints" in outcome for outcome in refused)
    with Warehouse(confs[outcomes.index(OWNER)]).lock():
        pass


def test_of_claims_at_the_same_moment_one_is_taken(server: Server, tmp_path: Path) -> None:
    """A table that several make at once gets a commit of each: the first one counts."""
    for round_ in range(ROUNDS):
        place = Place.from_conf(server.section(f"moment-{round_}", tmp_path))
        barrier = Barrier(THREADS)

        def claimed(name: str, at: Barrier = barrier, place: Place = place) -> bool:
            checkpoints = tmp_path / name
            checkpoints.mkdir(exist_ok=True)
            at.wait()
            with suppress(LockedError):
                store_owner.check(place, checkpoints)
                return True
            return False

        with ThreadPoolExecutor(THREADS) as pool:
            owners = list(pool.map(claimed, map(str, range(THREADS))))
        assert owners.count(True) == 1


def test_a_store_that_ignores_the_condition_is_refused(tmp_path: Path) -> None:
    with careless.started() as server:
        place = Place.from_conf(server.section("careless", tmp_path))
        for _ in range(2):
            with pytest.raises(ConfigError, match="overwrites an object that exists"):
                store_owner.check(place, tmp_path)


def test_secrets_are_in_no_text_of_a_place(server: Server, tmp_path: Path) -> None:
    place = Place.from_conf(server.section("secrets", tmp_path))
    assert server.password not in repr(place)
    assert server.password in str(place.storage_options)
