"""The shipper on real lines: rotation loses and doubles nothing, own lines stay out."""

import json
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotaflow.demo import shipper as own
from quotaflow.demo.line_filter import CLIENT_ID, OwnLines, holds_secret
from quotaflow.demo.rotated_log import RotatedLog
from quotaflow.demo.shipper import Settled, Shipper, ShipperCounts

from .. import case_tables
from ..cases import cases

LIMIT_BYTES = 64
KEEP = 4


class Writer:
    """log4j2's RollingFile: `requests.1.jsonl` is the oldest of at most four rotated parts."""

    def __init__(self, folder: Path, keep: int = KEEP) -> None:
        self.path = folder / "requests.jsonl"
        self._keep = keep

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def rotate(self) -> None:
        if not self.path.exists():
            return
        rotated = [self.path.with_name(f"requests.{n}.jsonl") for n in range(1, self._keep + 1)]
        if rotated[-1].exists():
            rotated[0].unlink()
            for older, newer in pairwise(rotated):
                newer.rename(older)
        self.path.rename(next(path for path in rotated if not path.exists()))


class Memory:
    """A sink that keeps what it got, and settles it when flushed."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, bytes]] = []
        self._open: list[Settled] = []
        self.is_stuck = False
        self.is_closed = False

    def send(self, broker_id: int, line: bytes, settled: Settled) -> None:
        self.lines.append((broker_id, line))
        self._open.append(settled)

    def flush(self, timeout_s: float) -> int:  # noqa: ARG002
        while self._open and not self.is_stuck:
            self._open.pop()("acked")
        return len(self._open)

    def give_up(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def follow(path: Path) -> RotatedLog:
    return RotatedLog(path, LIMIT_BYTES)


Steps = list[bytes | str]


def read(steps: Steps, writer: Writer) -> list[bytes | None]:
    """Write, rotate or look, in this order; a last look ends it."""
    log = follow(writer.path)
    seen: list[bytes | None] = []
    for step in [*steps, "look"]:
        if isinstance(step, bytes):
            writer.write(step)
        elif step == "rotate":
            writer.rotate()
        else:
            seen += log.lines()
    log.close()
    return seen


@cases(
    ("steps", "expected"),
    ("a missing file is waited for", [], []),
    ("a file that appears later is read", ["look", b"a\n"], [b"a"]),
    ("reading starts at the beginning", [b"a\nb\n"], [b"a", b"b"]),
    ("a partial last line is not yet a line", [b"a\nb"], [b"a"]),
    ("a partial line is completed", [b"a\nb", "look", b"c\n"], [b"a", b"bc"]),
    ("nothing new is nothing", [b"a\n", "look", "look"], [b"a"]),
    ("an empty line is a line", [b"\n"], [b""]),
    ("a part rotated before the first look", [b"a\n", "rotate", b"b\n"], [b"a", b"b"]),
    (
        "the rest of the old part comes before the new one",
        [b"a\n", "look", b"b\n", "rotate", b"c\n"],
        [b"a", b"b", b"c"],
    ),
    (
        "three rotations between two looks",
        [b"a\n", "look", b"b\n", "rotate", b"c\n", "rotate", b"d\n", "rotate", b"e\n"],
        [b"a", b"b", b"c", b"d", b"e"],
    ),
    (
        "deleted parts and inodes given out again",
        ["look", b"a\n", "look", *["rotate", b"b\n", "look"] * 7],
        [b"a", *[b"b"] * 7],
    ),
    (
        "a look in the gap between rename and the new file",
        [b"a\n", "look", "rotate", "look", b"b\n"],
        [b"a", b"b"],
    ),
    (
        "a torn last line of a rotated part is shipped as it is",
        [b"a\nto", "look", "rotate", b"b\n", "look"],
        [b"a", b"to", b"b"],
    ),
    ("a line over the limit is reported, not kept", [b"x" * 65 + b"\na\n"], [None, b"a"]),
    ("a line at the limit is kept", [b"x" * 64 + b"\n"], [b"x" * 64]),
    (
        "a line over the limit in pieces is reported once",
        [b"x" * 40, "look", b"x" * 40, "look", b"x" * 9, "look", b"\na\n"],
        [None, b"a"],
    ),
)
def test_every_line_of_every_part_comes_once(
    steps: Steps, expected: list[bytes | None], writer: Writer
) -> None:
    assert read(steps, writer) == expected


def test_a_file_cut_short_is_read_again(writer: Writer) -> None:
    log = follow(writer.path)
    writer.write(b"a\nb\nrest")
    assert list(log.lines()) == [b"a", b"b"]
    writer.path.write_bytes(b"c\n")
    assert list(log.lines()) == [b"c"]
    log.close()


def test_lines_longer_than_a_read_are_whole(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(b"x" * 3_000_000 + b"\n" + b"y\n")
    log = RotatedLog(writer.path, 4_000_000)
    assert [len(line or b"") for line in log.lines()] == [3_000_000, 1]
    log.close()


def test_other_files_of_the_folder_are_left_alone(writer: Writer, tmp_path: Path) -> None:
    for name in ("server.log", "requests.1.jsonl.gz", "requests.old.jsonl", "requestsX1.jsonl"):
        (tmp_path / name).write_bytes(b"other\n")
    assert read([b"a\n"], writer) == [b"a"]


def test_deleted_parts_are_let_go(writer: Writer) -> None:
    log = follow(writer.path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3 * KEEP):
        writer.write(b"a\n")
        assert list(log.lines()) == [b"a"]
        writer.rotate()
    assert len(os.listdir("/proc/self/fd")) <= before + KEEP + 1
    log.close()
    assert len(os.listdir("/proc/self/fd")) == before


actions = st.lists(st.sampled_from(["write", "half", "rotate", "look"]), max_size=40)


@given(actions)
@settings(max_examples=100, deadline=None)
def test_whatever_the_order_no_line_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    writer = Writer(tmp_path_factory.mktemp("log"), keep=50)
    log = follow(writer.path)
    written: list[bytes] = []
    seen: list[bytes | None] = []
    for n, step in enumerate(steps):
        line = b"line %d" % n
        if step == "look":
            seen += log.lines()
        elif step == "rotate":
            writer.rotate()
        else:
            written.append(line)
            writer.write(line[:4])
            if step == "half":
                seen += log.lines()
            writer.write(line[4:] + b"\n")
    seen += log.lines()
    log.close()
    assert sorted(seen, key=str) == sorted(written, key=str)


def request_line(
    client_id: str, principal: str = "User:shipper", body: object = None, api_key: int = 0
) -> bytes:
    """A line as RequestConvertToJson writes it, in the envelope of broker/log4j2.yaml."""
    request = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": api_key,
            "requestApiVersion": 10,
            "correlationId": 7,
            "clientId": client_id,
            "requestApiKeyName": "PRODUCE",
        },
        "request": body,
        "response": {},
        "connection": "127.0.0.1:39092-127.0.0.1:51666-1-2",
        "totalTimeMs": 1.2,
        "securityProtocol": "SASL_PLAINTEXT",
        "principal": principal,
        "listener": "SASL_PLAINTEXT",
        "clientInformation": {"softwareName": "librdkafka", "softwareVersion": "2.16.0"},
    }
    return json.dumps({"ts": 1, "broker": 1, "r": request}, separators=(",", ":")).encode()


BORROWED = f'x","clientId":"{CLIENT_ID}'
HEADER = f'"requestHeader":{{"requestApiKey":0,"requestApiVersion":1,"correlationId":1,{BORROWED}"'


@cases(
    ("line", "is_own"),
    *case_tables.rows(
        __file__,
        "own_lines_cannot_be_forged",
        request_line,
        CLIENT_ID=CLIENT_ID,
        BORROWED=BORROWED,
        HEADER=HEADER,
    ),
    ("a client id that begins the same", request_line(CLIENT_ID + "x"), False),
    ("an empty line", b"", False),
    ("no request at all", b"not a request", False),
)
def test_own_lines_cannot_be_forged(line: bytes, is_own: bool) -> None:
    assert OwnLines(principal="User:shipper")(line) is is_own


@given(st.text(), st.text())
def test_no_client_id_passes_for_the_shipper(prefix: str, suffix: str) -> None:
    client_id = f"{prefix}{CLIENT_ID}{suffix}"
    assert OwnLines()(request_line(client_id)) is (client_id == CLIENT_ID)


@cases(
    ("line", "is_secret"),
    ("a SCRAM credential", request_line("a", api_key=51), True),
    ("a new delegation token", request_line("a", api_key=38), True),
    ("an api key that begins like one", request_line("a", api_key=5), False),
    ("an api key that holds one", request_line("a", api_key=510), False),
    ("a client that says so", request_line('"requestHeader":{"requestApiKey":51,'), False),
    ("an empty line", b"", False),
)
def test_lines_with_secrets_are_told_by_their_api(line: bytes, is_secret: bool) -> None:
    assert holds_secret(line) is is_secret


def shipper(writer: Writer, sink: Memory, drop: Callable[[bytes], bool]) -> Shipper:
    properties = {"sasl.username": "shipper"}
    return Shipper(
        properties, "t", {1: writer.path}, max_line_bytes=2048, is_filtered=drop, sink=sink
    )


def test_every_line_is_counted_once_by_what_became_of_it(writer: Writer) -> None:
    sink = Memory()
    secret = request_line("rdk-alice", body={"saltedPassword": "s"}, api_key=51)
    lines = [request_line("rdk-alice"), request_line(CLIENT_ID), secret, b"raft", b"x" * 3_000]
    with shipper(writer, sink, lambda line: line == b"raft") as ship:
        writer.write(b"".join(line + b"\n" for line in lines))
        counts = ship.drain(5)
    assert sink.lines == [(1, lines[0])]
    assert sink.is_closed
    assert counts == ship.counts
    assert counts == ShipperCounts(read=5, acked=1, own=1, secret=1, filtered=1, too_long=1)


def test_a_drain_covers_what_was_written_before_it(writer: Writer) -> None:
    with shipper(writer, Memory(), lambda _: False) as ship:
        for n in range(1, 20):
            writer.write(b"line\n")
            if n % 5 == 0:
                writer.rotate()
            assert ship.drain(5).acked == n


def test_a_drain_that_cannot_end_says_so(writer: Writer) -> None:
    sink = Memory()
    sink.is_stuck = True
    writer.write(b"line\n")
    with (
        shipper(writer, sink, lambda _: False) as ship,
        pytest.raises(TimeoutError, match="not shipped in 5 s"),
    ):
        ship.drain(5)


def test_it_ends_when_brokers_are_gone_and_no_line_has_room(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_CLOSE_TIMEOUT_S", 0.3)
    line = json.dumps({"r": {"x": "y" * (3 << 20)}}).encode() + b"\n"
    for _ in range(30):
        writer.write(line)
    nobody = {"bootstrap.servers": "127.0.0.1:1"}
    with Shipper(nobody, "log", {1: writer.path}) as shipper:
        while shipper.counts.read < 20:
            time.sleep(0.05)
    counts = shipper.counts
    assert counts.read == counts.acked + counts.failed == counts.failed


def test_a_log_that_cannot_be_read_ends_the_shipper_aloud(tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").mkdir()
    ship = Shipper({}, "t", {1: tmp_path / "requests.jsonl"}, sink=Memory())
    with pytest.raises(IsADirectoryError), ship:
        ship.drain(5)
