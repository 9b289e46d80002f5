"""The command line: errors in one line with the nearest right word, and exit codes."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from quotaflow.pipelines.__main__ import app
from quotaflow.pipelines.commands import index
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.terminal import output

from ...cases import cases
from ...command_line import Command
from ...own_process import printed_by, python

QUOTAFLOW = [sys.executable, "-m", "quotaflow.pipelines"]
ROOT = Path(__file__).parents[3]
NO_TOPIC = "ingest_otlp needs ingest.otlp_topic, which conf sets to null"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty home, so that no conf or table of this machine is read."""
    monkeypatch.setenv("QUOTAFLOW_HOME", str(tmp_path))


@cases(
    ("line", "code", "expected"),
    ("a command", "shwo requests", 2, "Did you mean 'show'"),
    ("an option", "show requests --limt 3", 2, "--limit"),
    ("no argument", "show", 2, "Missing argument 'TABLE'"),
    ("a table", "show requets", 2, "did you mean requests?"),
    ("a table of ddl", "ddl requets", 2, "did you mean requests?"),
    (
        "no rows wanted",
        "show requests --limit 0",
        2,
        "Invalid value '0' for '--limit': Input should be greater than or equal to 1",
    ),
    ("no rate", "what-if --producer-ids-rate abc", 2, "'abc' for '--producer-ids-rate'"),
    ("no broker", "capture --broker 1 --broker x", 2, "'x' for '--broker'"),
    ("no time", "show requests --since soon", 2, "--since 'soon'"),
    ("far ago", "show requests --since 999999999d", 2, "is before the year 1"),
    ("two formats", "show requests --json --csv", 2, "exclude each other"),
    ("a view", "show desired_configs --since 1h", 2, "without an event time"),
    ("never made", "show requests", 1, "quotaflow run ingest_request_log --once"),
    ("half a query", "sql select", 2, "error:"),
    ("a table of a query", "sql FROM/**/requets", 2, "did you mean requests?"),
    ("a column of a query", "sql SELECT(nope)", 2, "nope"),
    ("no query", "sql drop", 2, "only queries"),
    ("a command of the shell", "sql \\d", 2, "`quotaflow describe NAME` for"),
    ("how often", "run", 2, "exactly one of --once and --every"),
    ("both", "run --once --every 10s", 2, "exactly one of"),
    ("no duration", "run --every 10", 2, "write 10s, 5m"),
    ("no time at all", "run --every 0s", 2, "write 10s, 5m"),
    ("a job", "run client_metric --once", 2, "did you mean client_metrics?"),
    ("a group of jobs", "run factz --once", 2, "did you mean facts?"),
    ("what groups there are", "run factz --once", 2, "groups are facts, results"),
    ("a job that is off", "run ingest_otlp --once", 2, NO_TOPIC),
    ("a job that is off, of backfill", "backfill ingest_otlp --from 2d", 2, NO_TOPIC),
    ("backfill", "backfill ingest_recever --from 2d", 2, "did you mean ingest_receiver?"),
    ("of no topic", "backfill fetches --from 2d", 2, "no job fetches reads a topic"),
    ("a key", "tables --set warehouse.pth=x", 2, "did you mean path?"),
    ("a file", "tables --conf nowhere.yaml", 2, "cannot read conf nowhere.yaml"),
    ("a capture", "decode nowhere", 2, "cannot read nowhere"),
    ("a codec", "decode nowhere --codec zst", 2, "did you mean zstd?"),
    ("no codec", "decode nowhere --codec 7z", 2, "known: none, gzip, snappy, lz4, zstd"),
)
def test_wrong_use_is_one_line_and_an_exit_code(
    command: Command, line: str, code: int, expected: str
) -> None:
    assert expected in command.error(*line.split(), code=code)


def test_an_error_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.error(str(KafkaError("b\x1b[2J\nc")))
    assert capsys.readouterr().err == "error: b\\x1b[2J c\n"


@pytest.mark.parametrize("name", index.COMMANDS)
def test_every_command_says_what_it_does_and_gives_an_example(command: Command, name: str) -> None:
    assert f"Example: quotaflow {name}" in command(name, "--help").out


@pytest.mark.parametrize(("name", "summary"), index.COMMANDS.items())
def test_the_summary_of_a_command_begins_its_help(name: str, summary: str) -> None:
    commands: Any = typer.main.get_command(app())
    assert commands.commands[name].help.split("\n\n")[0].replace("\n", " ") == summary


def test_nothing_asked_shows_the_help(command: Command) -> None:
    printed = command()
    assert "Usage: quotaflow" in printed.out
    assert printed.err == ""


def test_it_says_its_version(command: Command) -> None:
    assert command("--version").out == f"quotaflow {version('quotaflow')}\n"


def test_the_help_has_every_exit_code_the_docs_have(command: Command) -> None:
    printed = " ".join(command("--help").out.split())
    docs = " ".join((ROOT / "docs" / "commands.md").read_text("utf-8").split())
    documented = docs[docs.index("Exit codes: ") :].partition(". ")[0]
    assert documented.endswith("130 Ctrl-C")
    assert documented in printed


def test_jobs_are_listed_with_what_they_read_and_fill(command: Command) -> None:
    lines = command("jobs", "--csv").out.splitlines()
    assert lines[0] == "name,meaning,reads,fills"
    assert any(line.startswith("request_results,") for line in lines)


def test_ctrl_c_ends_cleanly(tmp_path: Path) -> None:
    pipe = tmp_path / "payload"
    os.mkfifo(pipe)
    words = [*QUOTAFLOW, "decode", str(pipe)]
    # The other end opens once the command opens its own, and so waits for its input.
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process, pipe.open("wb"):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines() == [b"stopped"]


def test_ctrl_c_ends_a_query_that_gives_no_rows_yet(tmp_path: Path) -> None:
    query = "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000) c"
    words = [*QUOTAFLOW, "sql", query, "--set", f"warehouse.path={tmp_path}"]
    mine, theirs = pty.openpty()
    with (
        open(mine, "rb", buffering=0) as errors,
        subprocess.Popen(words, stderr=theirs) as process,
    ):
        os.close(theirs)
        shown = b""
        while b"computing ... 2 s" not in shown:
            shown += errors.read(1_024)
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # its end, on Linux
            while more := errors.read(1_024):
                shown += more
    assert process.returncode == 130
    assert shown.endswith(b"\r\x1b[Kstopped\r\n")


@pytest.mark.parametrize(("name", "extra"), [("jobs", "local"), ("demo", "demo")])
def test_a_package_of_an_extra_that_is_missing_is_named(name: str, extra: str) -> None:
    code = (
        "import sys\nfrom quotaflow.pipelines.__main__ import execute\n"
        "sys.modules['pyspark'] = None\n"
        f"sys.exit(10 + execute([{name!r}]))"
    )
    process = python(code)
    assert process.returncode == 11
    assert process.stderr.startswith("error: pyspark")
    assert f"-py3-none-any.whl[{extra}]'" in process.stderr


def test_the_help_does_without_what_another_command_lacks() -> None:
    code = (
        "import sys\nfrom quotaflow.pipelines.__main__ import execute\n"
        "sys.modules['pyspark'] = None\nsys.exit(execute(['--help']))"
    )
    process = python(code)
    assert (process.returncode, process.stderr) == (0, "")
    assert "show" in process.stdout


@pytest.mark.parametrize("name", ["C", "POSIX", "C.UTF-8", "no_such.UTF-8"])
def test_java_reads_names_of_files_as_python_does_in_any_locale(name: str) -> None:
    code = (
        "import subprocess, sys\nfrom quotaflow.pipelines.__main__ import main\n"
        "from quotaflow.pipelines.spark.java import java\n"
        "sys.argv = ['quotaflow', '--version']\nmain()\n"
        "command = [java(), '-XshowSettings:properties', '-version']\n"
        "print(subprocess.run(command, stderr=subprocess.PIPE, text=True).stderr)"
    )
    assert "sun.jnu.encoding = UTF-8" in printed_by(code, env={**os.environ, "LC_ALL": name})
