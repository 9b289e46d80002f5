"""Each query of a person ends within its time and memory, and leaves nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from operator import methodcaller
from pathlib import Path
from threading import Timer

import psutil
import pytest

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, NeverMadeError, QueryError, WrongQueryError
from quotaflow.pipelines.warehouse import query_process

from ...cases import cases
from ...own_process import quotaflow, working

_LIMIT_S, _LONG_S, _MEMORY_MB = 2, 60, 256
# Each part has twice the columns of the one before: to bind them takes longer than anybody waits.
_SQUARES = (
    "WITH a0 AS (SELECT 1 AS x)"
    + "".join(f", a{n} AS (SELECT * FROM a{n - 1} a, a{n - 1} b)" for n in range(1, 25))
    + " SELECT 1 FROM a24"
)
_BRACKETS = "repeat('[', 200000) || repeat(']', 200000)"


def answered(folder: Path, text: str, **bounds: int) -> list[dict[str, object]]:
    conf = Conf.model_validate({"warehouse": {"path": str(folder), **bounds}})
    return query_process.batches(conf, methodcaller("query", text)).read_all().to_pylist()


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True) if is_query(child)}


def is_query(child: psutil.Process) -> bool:
    try:
        return "forkserver" in " ".join(child.cmdline()) and child.parent() != psutil.Process()
    except psutil.ZombieProcess:
        return False


def test_it_answers_in_batches_as_the_reader_does(tmp_path: Path) -> None:
    rows = answered(tmp_path, "SELECT range AS n, 'a' AS t, [1.5] AS x FROM range(200000)")
    assert len(rows) == 200_000
    assert rows[-1] == {"n": 199_999, "t": "a", "x": [1.5]}


@cases(
    ("text", "message"),
    ("a list", "SELECT range(200000000)", "memory"),
    ("a cross join", "SELECT count(*) FROM range(10000000) a, range(10000000) b", "stopped after"),
    ("deep JSON", f"SELECT json_contains({_BRACKETS}, '1')", "ended its process .signal 11"),
    ("900 brackets", f"SELECT {'[' * 900}1{']' * 900}", "nested too deep"),
    ("a division", "SELECT 1 % 0", r"Division by zero in expression \(1 % 0\).$"),
    more=[
        ("the length of a list", "SELECT len(range(300000000))", "memory"),
        ("two lists", "SELECT list_distance(range(100000000), range(100000000))", "memory"),
        ("a wide number", "SELECT printf('%2000000000d', 1)", "memory"),
        ("bits", "SELECT repeat('1', 800000000)::BIT", "memory"),
        ("two texts", "SELECT repeat('x', 2000000000) || repeat('y', 2000000000)", "memory"),
        (
            "a square",
            "SELECT damerau_levenshtein(repeat('ab', 40000), repeat('ba', 40000))",
            "memory|stopped after",
        ),
        ("a long pad", "SELECT length(lpad('', 2000000000, 'x'))", "stopped after 2 s"),
        ("squares of columns", _SQUARES, "stopped after 2 s|memory"),
        ("900 CASE", f"SELECT {'CASE WHEN true THEN ' * 900}1{' END' * 900}", "nested too deep"),
    ],
)
def test_what_takes_too_much_is_one_error(text: str, message: str, tmp_path: Path) -> None:
    before, started = children(), time.monotonic()
    limit_s = _LIMIT_S if "stopped" in message else _LONG_S
    with pytest.raises(QueryError, match=message) as raised:
        answered(tmp_path, text, query_timeout_s=limit_s, query_memory_mb=_MEMORY_MB)
    assert "\n" not in str(raised.value)
    assert "SET " not in str(raised.value)
    # Also on a machine that is busy.
    assert time.monotonic() - started < limit_s + 20
    assert children() <= before


@cases(
    ("text", "kind", "message"),
    ("a wrong column", "SELECT x FROM (SELECT 1 AS y)", WrongQueryError, "no column x"),
    ("no query", "DROP TABLE requests", ConfigError, "only queries are run here"),
    ("no table yet", "SELECT * FROM requests", NeverMadeError, "requests was never made in"),
)
def test_errors_are_those_of_the_reader(
    text: str, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message) as raised:
        answered(tmp_path, text)
    if isinstance(raised.value, NeverMadeError):
        assert raised.value.table == "requests"


def test_who_reads_slowly_is_not_stopped_and_who_stops_leaves_nothing(tmp_path: Path) -> None:
    before = children()
    conf = Conf.model_validate({"warehouse": {"path": str(tmp_path), "query_timeout_s": 4}})
    text = "SELECT range AS n FROM range(100000000)"
    batches = query_process.batches(conf, methodcaller("query", text))
    for _ in range(3):
        time.sleep(1.5)
        assert batches.read_next_batch().num_rows
    del batches
    assert children() <= before


def test_who_reads_nothing_leaves_nothing(tmp_path: Path) -> None:
    before = children()
    conf = Conf.model_validate({"warehouse": {"path": str(tmp_path)}})
    text = "SELECT range AS n FROM range(100000000)"
    batches = query_process.batches(conf, methodcaller("query", text))
    assert children() > before
    del batches
    assert children() <= before


def test_a_process_that_ends_by_itself_is_no_matter_of_memory(tmp_path: Path) -> None:
    conf = Conf.model_validate({"warehouse": {"path": str(tmp_path)}})
    # sys.exit takes the reader for a message.
    with pytest.raises(QueryError, match=r"ended without an answer \(exit code 1\)"):
        query_process.batches(conf, sys.exit)


def test_a_process_that_does_not_start_is_not_a_late_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_process, "_START_S", 0)
    with pytest.raises(QueryError, match="did not start within"):
        answered(tmp_path, "SELECT 1")


_BESIDE_DELTA = """
import deltalake, sys
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.warehouse import query_process
conf = Conf.model_validate({"warehouse": {"path": sys.argv[1]}})
query_process.batches(conf, print)
"""


def test_a_process_that_cannot_start_is_one_error(tmp_path: Path) -> None:
    place = tmp_path / ("x" * 100)
    place.mkdir()
    command = [sys.executable, "-c", _BESIDE_DELTA, tmp_path]
    environment = {**os.environ, "TMPDIR": str(place)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert f"no process for the query: AF_UNIX path too long (TMPDIR is {place})" in ended.stderr


def test_another_thread_ends_a_query(tmp_path: Path) -> None:
    before, started = children(), time.monotonic()
    conf = Conf.model_validate({"warehouse": {"path": str(tmp_path)}})
    ask = methodcaller("query", "SELECT count(*) FROM range(10000000) a, range(10000000) b")
    timers = list[Timer]()

    def begins(end: Callable[[], None]) -> None:
        timers.append(Timer(1, end))
        timers[0].start()

    with pytest.raises(QueryError, match=r"^stopped$"):
        query_process.batches(conf, ask, begins).read_all()
    assert time.monotonic() - started < 30
    assert children() <= before


@pytest.fixture
def endless(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that does not listen to an interrupt of DuckDB."""
    text = "SELECT length(lpad('', 2000000000, 'x'))"
    words = quotaflow("sql", text, "--set", f"warehouse.path={tmp_path}")
    with subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_one_signal_ends_the_command_and_its_query(
    ending: signal.Signals, endless: "subprocess.Popen[bytes]"
) -> None:
    child = working(endless)
    endless.send_signal(ending)
    code = endless.wait(timeout=5)
    assert code == (130 if ending == signal.SIGINT else -signal.SIGKILL)
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running()
