"""The command capture: which logs it switches on, what it shows, and that it restores."""

import io
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from quotaflow.pipelines.errors import JobError, KafkaError, LockedError
from quotaflow.pipelines.feedback.configs.change import RESTORE, Change
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import DONE, STARTED, YIELDED, Record
from quotaflow.pipelines.feedback.ledger.trust import TrustedLedger
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.change_writer import ChangeWriter
from quotaflow.pipelines.kafka import admin, tail
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.monitoring import log_volume
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...command_line import Command, Printed
from ...rows import at
from ...schemas.views.view_tables import make_tables
from ..feedback.fake_configs import DictConfigs, ListJournal

LOGGER = "kafka.request.logger"
TOPIC = "broker_request_logs"


BEFORE = {"1": "INFO", "2": "DEBUG", "3": "WARN"}
"""Level of each broker's logger."""


def broker(broker_id: int) -> ConfigEntity:
    return ConfigEntity("c1", "broker-logger", str(broker_id))


@dataclass
class Brokers(DictConfigs):
    """Brokers with the levels of their loggers."""

    @property
    def state(self) -> Any:
        ids = [
            int(entity.entity_name or 0) for entity in {**self.configs, **dict.fromkeys(self.away)}
        ]
        brokers = [{"broker_id": broker_id, "is_fenced": False} for broker_id in ids]
        return SimpleNamespace(brokers=lambda: brokers)

    def levels(self) -> dict[str | None, str]:
        return {entity.entity_name: configs[LOGGER] for entity, configs in self.configs.items()}


@dataclass
class Capture:
    """The command on fake brokers; from the section `locked_from` on, the lock is refused."""

    configs: Brokers
    warehouse: Warehouse
    command: Command
    monkeypatch: pytest.MonkeyPatch
    journal: ListJournal = field(default_factory=ListJournal)
    sections: int = 0
    locked_from: int = 99
    locked_by: Exception = field(
        default_factory=lambda: LockedError("the folder is being written by process 7")
    )

    def __post_init__(self) -> None:
        topics = {TOPIC: admin.Topic(TOPIC, "id", 3)}
        described = lambda *_: admin.Cluster("c1", topics)  # noqa: E731
        self.monkeypatch.setattr(admin, "describe", described)
        self.monkeypatch.setattr(exclusive_section, "open_cluster", self.cluster)
        self.monkeypatch.setattr(exclusive_section, "acquired", self.taken)
        self.monkeypatch.setattr(exclusive_section, "warehouse_section", self.taken)
        self.monkeypatch.setattr(journal, "read_ledger", lambda _: self.journal.ledger)

    @contextmanager
    def cluster(self, _: object) -> Iterator[tuple[str, Brokers]]:
        yield "c1", self.configs

    @contextmanager
    def taken(
        self, _: object, __: object, *hooks: Any, purpose: str = RESTORE
    ) -> Iterator[exclusive_section.ExclusiveSection]:
        assert purpose in {RESTORE, "capture"}
        self.sections += 1
        if self.sections >= self.locked_from:
            raise self.locked_by
        stopped = hooks[0] if hooks else lambda: None
        apply = ChangeWriter(
            self.configs,
            self.journal,
            f"r{self.sections}",
            lambda: datetime.now(UTC),
            stop_reason=stopped,
            sleep=lambda _: None,
        )
        apply.finish(self.journal.ledger)
        rows: Any = None
        tables, trust = FolderReader(self.warehouse), TrustedLedger(self.journal.ledger)
        yield exclusive_section.ExclusiveSection("c1", apply, trust, rows, tables, rows)

    def __call__(
        self, *words: str, records: tuple[Any, ...] = (), ends: bool = True, code: int = 0
    ) -> Printed:
        waiting = [list(records)]

        def poll() -> list[Any]:
            if waiting:
                return waiting.pop()
            if not ends:
                raise KafkaError("the topic is gone")
            os.kill(os.getpid(), signal.SIGINT)
            return []

        @contextmanager
        def opened(_: object, partitions: dict[str, int]) -> Iterator[Callable[[], Any]]:
            assert partitions == {TOPIC: 3}
            yield poll

        with self.monkeypatch.context() as patch:
            patch.setattr(tail, "follow", opened)
            printed = self.command("capture", *words, code=code)
        assert "Traceback" not in printed.err
        return printed


@pytest.fixture
def run(warehouse: Warehouse, table_command: Command, monkeypatch: pytest.MonkeyPatch) -> Capture:
    configs = Brokers({broker(int(number)): {LOGGER: level} for number, level in BEFORE.items()})
    return Capture(configs, warehouse, table_command, monkeypatch)


def record(text: str, **others: Any) -> Any:
    place = {"topic": TOPIC, "partition": 0, "offset": 0, "timestamp": 1_795_168_800_000}
    given = place | {"value": text.encode(), "headers": [], "key": None} | others
    return SimpleNamespace(**given)


def line(broker_id: int, api: str) -> str:
    return json.dumps(
        {"ts": 1, "broker": broker_id, "r": {"requestHeader": {"requestApiKeyName": api}}}
    )


def test_without_yes_it_only_says_what_it_would_set(run: Capture) -> None:
    out, err = run()
    assert "INFO, DEBUG for the capture, INFO again at its end" in out
    assert "DEBUG: it logs already, and stays so" in out
    assert "unknown: no line of it was ingested yet" in out
    assert (
        "--entity-type broker-loggers --entity-name 1 --add-config kafka.request.logger=DEBUG"
        in out
    )
    assert "--entity-name 3 --add-config kafka.request.logger=WARN" in out
    assert "Nothing was written" in err
    assert run.configs.writes == 0


def test_what_is_to_be_expected_is_what_was_logged_last(run: Capture) -> None:
    kept = [{"cluster_id": "c1", "event_time": at(9), "broker_id": 1, "api": "FETCH"}] * 30
    later = [{"cluster_id": "c1", "event_time": at(12), "broker_id": 3, "api": "FETCH"}] * 3
    make_tables(run.warehouse, {"requests": [*kept, *later]})
    objects = {row["broker_id"]: row for row in run("--json").rows}
    elapsed_s = (at(12) - at(9)).total_seconds()
    assert objects[1]["expected_lines_per_s"] == round(30 / elapsed_s, 1)
    assert objects[1]["expected_bytes_per_s"] == round(30 / elapsed_s * 1_100)
    assert (objects[2]["expected_lines_per_s"], objects[2]["command"]) == (None, None)
    assert objects[1]["level_then"] == "DEBUG"
    lines = run("--csv").csv_rows
    assert [(row["broker_id"], row["level_then"]) for row in lines] == [
        (str(broker_id), row["level_then"]) for broker_id, row in objects.items()
    ]


def test_levels_come_back_at_ctrl_c_and_lines_are_counted_by_broker(run: Capture) -> None:
    came = [record(line(1, "PRODUCE")), record(line(3, "FETCH")), record(line(2, "FETCH"))]
    bare = record('{"requestHeader":{"requestApiKeyName":"FETCH"}}', key=b"3")
    header = '{"requestHeader":{"requestApiKeyName":"FETCH"}}'
    stock = record(f"[x] DEBUG Completed request:{header}", headers=[("broker_id", b"kafka-1")])
    odd = [record("\x1b[2J"), record(""), record(line(9, "FETCH")), record("", key=b"\xff")]
    err = run("--yes", records=(*came, bare, stock, *odd), code=130).err
    assert "broker 1: 2 lines" in err
    assert "broker 3: 2 lines" in err
    assert "unnamed broker: 3 lines" in err
    assert "1 line of other brokers or APIs came too" in err
    assert "most lines: FETCH 4, unreadable 3, PRODUCE 1" in err
    assert "3 lines cannot be read: 2 empty_line, 1 not_json" in err
    assert run.configs.levels() == BEFORE
    steps = [(r.entity.entity_name, r.step, r.config_value) for r in run.journal.records]
    assert steps == [
        *(("1", STARTED, "DEBUG"), ("3", STARTED, "DEBUG")),
        *(("1", DONE, "DEBUG"), ("3", DONE, "DEBUG")),
        *(("1", STARTED, "INFO"), ("3", STARTED, "WARN")),
        *(("1", DONE, "INFO"), ("3", DONE, "WARN")),
    ]
    assert run.journal.ledger.owned == {}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    measured = log_volume.load(run.warehouse.conf, "c1")
    assert measured is not None
    assert measured.lines == {"1": 2, "2": 1, "3": 2, "None": 3}
    assert measured.bytes["1"] == len(came[0].value) + len(stock.value)


@pytest.mark.parametrize(
    ("name", "api"),
    [("produce", "PRODUCE"), ("ListOffsets", "LIST_OFFSETS"), ("LIST_OFFSETS", "LIST_OFFSETS")],
)
def test_one_broker_and_one_api(run: Capture, name: str, api: str) -> None:
    came = (record(line(1, api)), record(line(1, "FETCH")), record(line(3, api)))
    err = run("--broker", "1", "--api", name, "--yes", records=came, code=130).err
    assert "broker 1: 1 line" in err
    assert "2 lines of other brokers or APIs came too" in err
    assert [r.entity.entity_name for r in run.journal.records if r.step == DONE] == ["1", "1"]
    # A part of the APIs says nothing of the whole log.
    assert log_volume.load(run.warehouse.conf, "c1") is None


def test_a_failure_while_it_follows_gives_back(run: Capture) -> None:
    assert "error: the topic is gone" in run("--yes", ends=False, code=1).err
    assert run.configs.levels() == BEFORE


def test_a_broker_that_restarted_meanwhile_is_left_as_it_is(run: Capture) -> None:
    reads = run.configs.read

    def read(entity: ConfigEntity) -> dict[str, str]:
        if run.sections == 2:
            run.configs.configs[broker(3)] = {LOGGER: "WARN"}
        return reads(entity)

    run.monkeypatch.setattr(run.configs, "read", read)
    assert "it is WARN now, and we wrote DEBUG" in run("--yes", code=130).err
    assert [r.step for r in run.journal.records if r.step == YIELDED] == [YIELDED]
    assert run.journal.ledger.owned == {}


@cases(
    "error",
    ("another process", LockedError("the folder is being written by process 7")),
    ("a JVM that ended", Py4JNetworkError("Answer from Java side is empty")),
    ("a full disk", OSError(28, "No space left on device")),
    ("a table that cannot be written", JobError("config_changes: cannot write: Permission denied")),
)
def test_what_cannot_be_recorded_is_given_back_all_the_same(run: Capture, error: Exception) -> None:
    run.locked_from, run.locked_by = 2, error
    assert "restored without a record" in run("--yes", code=130).err
    assert run.configs.levels() == BEFORE
    # The journal still has it, and the next restore finds the level restored.
    assert {key[0] for key in run.journal.ledger.owned} == {broker(1), broker(3)}


@pytest.mark.parametrize("later", ["the disk has room again", "the disk stays full"])
def test_what_was_written_and_not_recorded_is_given_back(run: Capture, later: str) -> None:
    full = JobError("config_changes: cannot write: no space left on device: free some")
    adds = run.journal.add
    if later == "the disk stays full":
        run.locked_from, run.locked_by = 2, full

    def add(records: Sequence[Record]) -> None:
        if run.sections == 1 and any(record.step == DONE for record in records):
            raise full
        adds(records)

    run.monkeypatch.setattr(run.journal, "add", add)
    errors = run("--yes", code=1).err
    assert "no space left on device" in errors.lower()
    assert "not every level was restored" not in errors
    assert run.configs.writes == 4, "both were switched on, and back"
    assert run.configs.levels() == BEFORE


def test_levels_come_back_when_nobody_can_be_told(run: Capture) -> None:
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    run.monkeypatch.setattr("sys.stderr", Closed())
    run("--yes", code=130)
    assert run.configs.levels() == BEFORE


def test_a_broker_that_never_answered_is_told_with_its_command(run: Capture) -> None:
    writes = run.configs.write

    def write(changes: Sequence[Change]) -> str | None:
        refusal = writes(changes)
        if changes[0].entity == broker(1):
            run.configs.away = {broker(1)}
            raise UnansweredError("[Error 7] RequestTimedOutError")
        return refusal

    run.monkeypatch.setattr(run.configs, "write", write)
    err = run("--yes", code=1).err
    assert "--entity-name 1 --add-config kafka.request.logger=INFO" in err
    assert "not every level was restored" in err
    assert run.configs.levels() == {"1": "DEBUG", "2": "DEBUG", "3": "WARN"}


def test_a_broker_that_refuses_ends_it_and_the_others_go_back(run: Capture) -> None:
    run.configs.refuses = {broker(3): "29 CLUSTER_AUTHORIZATION_FAILED"}
    err = run("--yes", code=1).err
    assert "29 CLUSTER_AUTHORIZATION_FAILED" in err
    assert "not every request log was switched on" in err
    assert run.configs.levels() == BEFORE


def test_what_cannot_be_given_back_is_told_with_its_command(run: Capture) -> None:
    reads = run.configs.read
    removed = broker(1)

    def read(entity: ConfigEntity) -> dict[str, str]:
        if run.sections == 2:
            run.configs.away = {removed}
        return reads(entity)

    run.monkeypatch.setattr(run.configs, "read", read)
    err = run("--yes", code=1).err
    assert "kafka.request.logger=INFO" in err
    assert {key[0] for key in run.journal.ledger.owned} == {removed}


@pytest.mark.parametrize("level", ["OFF", "AUDIT"], ids=["off", "one of log4j2's own making"])
def test_a_level_that_kafka_takes_from_nobody_is_left_as_it_is(run: Capture, level: str) -> None:
    run.configs.configs[broker(1)] = {LOGGER: level}
    reason = f"{level}, which Kafka does not let anyone set: it could not be restored"
    remedy = "--entity-name 1 --add-config kafka.request.logger=FATAL"
    out = run().out
    assert reason in out
    assert remedy in out
    assert "--entity-name 1 --add-config kafka.request.logger=DEBUG" not in out
    assert f"kafka.request.logger={level}" not in out
    first = run("--json").rows[0]
    assert (first["level"], first["level_then"], first["command"]) == (level, level, None)
    assert first["take_back_command"] is None
    assert remedy in first["remedy_command"]
    err = run("--yes", code=130).err
    assert reason in err
    assert remedy in err
    assert run.configs.levels() == {"1": level, "2": "DEBUG", "3": "WARN"}
    assert {r.entity for r in run.journal.records} == {broker(3)}


def test_where_no_broker_can_be_switched_nothing_is_followed(run: Capture) -> None:
    run.configs.configs[broker(1)] = {LOGGER: "OFF"}
    err = run("--broker", "1", "--yes", code=1).err
    assert "not every request log was switched on: the lines above have the reasons" in err
    assert "following" not in err
    assert run.configs.writes == 0


def test_a_level_of_everything_logs_already(run: Capture) -> None:
    run.configs.configs[broker(1)] = {LOGGER: "ALL"}
    assert "ALL: it logs already, and stays so" in run().out
    printed = run("--broker", "1", "--yes", records=(record(line(1, "FETCH")),), code=130)
    assert "broker 1: 1 line" in printed.err
    assert run.configs.writes == 0


@cases(
    ("words", "code", "expected"),
    ("too short", ["--for", "9s"], 2, "--for 9s must be 10 to 86400 s"),
    ("too long", ["--for", "2d"], 2, "10 to 86400 s"),
    ("who", ["--broker", "7"], 2, "no broker 7 is up: those that are: 1, 2, 3"),
    ("no such API", ["--api", "PRODUC"], 2, "did you mean PRODUCE?"),
    ("no topic", ["--yes", "--set", "ingest.request_log_topic=null"], 2, "is null"),
)
def test_what_cannot_be_is_one_error(
    run: Capture, words: list[str], code: int, expected: str
) -> None:
    assert expected in run(*words, code=code).err
    assert run.configs.writes == 0
