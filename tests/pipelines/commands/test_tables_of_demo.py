"""A command that answers from the tables of a demo says so, unless conf names their place."""

import os
import shlex
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

import pytest

from quotaflow.demo import runs
from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.commands import index, init, options
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...command_line import Command
from ...delta_tables import NOON
from ...rows import used
from ...schemas.views.view_tables import make_tables_and_answers

NAMED_BY = "name your conf by --conf or QUOTAFLOW_CONF"
NO_TABLES = {
    *("completion", "conf", "ddl", "decode", "init", "jobs", "metrics", "parse", "pseudonym"),
}
"""Commands whose first example uses no tables."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, with a space and an umlaut, as a demo leaves it that ended three days ago."""
    home = tmp_path / "höme of a"
    monkeypatch.setenv("QUOTAFLOW_HOME", str(home))
    with runs.new_run(home, NOON) as folder:
        (folder / "warehouse").mkdir()
        assert runs.publish(home, folder / "warehouse")
    ended = (datetime.now(UTC) - timedelta(days=3)).timestamp()
    os.utime(home / "warehouse", (ended, ended), follow_symlinks=False)
    return home


@pytest.mark.parametrize("words", ["tables --json", "describe requests", "ddl --dialect duckdb"])
def test_it_is_one_line_on_stderr(command: Command, home: Path, words: str) -> None:
    printed = command(*words.split())
    assert printed.err == f"tables of the demo that ended 3 days ago; {NAMED_BY}\n"
    named = ["--set", f"warehouse.path={home / 'warehouse'}"]
    assert command(*words.split(), *named) == (printed.out, "")


@cases(
    ("conf", "pairs", "variables", "line"),
    ("nothing named", None, [], {}, NAMED_BY),
    ("another value", None, ["plan.lease_s=60"], {}, NAMED_BY),
    ("a place by --set", None, ["warehouse.path=/x"], {}, None),
    ("a place by a variable", None, [], {"QUOTAFLOW__WAREHOUSE__PATH": "/x"}, None),
    ("a place by a file", "warehouse: {path: /x}", [], {}, None),
    ("a catalog", None, ["warehouse.catalog_schema=a.b"], {}, None),
    ("no place", "plan: {}", [], {}, "{file} names none: set warehouse.path"),
)
@pytest.mark.parametrize("way", ["option", "variable", "user"])
@pytest.mark.usefixtures("home")
def test_it_is_said_unless_conf_names_a_place(
    *,
    way: str,
    conf: str | None,
    pairs: list[str],
    variables: dict[str, str],
    line: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "quotaflow" / "conf.yaml" if way == "user" else tmp_path / "a.yaml"
    if conf is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(conf, encoding="utf-8")
    if conf is not None and way == "variable":
        monkeypatch.setenv("QUOTAFLOW_CONF", str(file))
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    options.ConfOptions(file if conf is not None and way == "option" else None, pairs).of_tables()
    expected = f"tables of the demo that ended 3 days ago; {line}\n" if line else ""
    assert capsys.readouterr() == ("", expected.format(file=file))


def own_folder(home: Path) -> None:
    (home / "warehouse").unlink()
    (home / "warehouse").mkdir()


def own_link(home: Path) -> None:
    (home / "warehouse").unlink()
    (home / "of user").mkdir()
    (home / "warehouse").symlink_to(home / "of user")


@pytest.mark.parametrize("make", [own_folder, own_link, lambda home: (home / "warehouse").unlink()])
def test_tables_of_the_user_s_own_are_no_demo_s(
    home: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None]
) -> None:
    make(home)
    options.ConfOptions(None, None).of_tables()
    assert capsys.readouterr() == ("", "")


def test_status_has_the_time_as_a_field(command: Command, home: Path) -> None:
    (status,) = command("status", "--json", code=1).rows
    ended_at = datetime.fromisoformat(status["demo_ended_at"]).timestamp()
    assert ended_at == pytest.approx((home / "warehouse").lstat().st_mtime)
    named = ["--set", f"warehouse.path={home / 'warehouse'}"]
    (status,) = command("status", "--json", *named, code=1).rows
    assert status["demo_ended_at"] is None


def test_why_over_tables_with_rows_prints_rows_alone_to_stdout(
    command: Command, home: Path, warehouse: Warehouse
) -> None:
    make_tables_and_answers(warehouse, {"quota_usage": [used(0, "producer_byte_rate", 9.0)]})
    (home / "warehouse").resolve().rmdir()
    warehouse.conf.folder.rename((home / "warehouse").resolve())
    printed = command("show", "quota_usage", "--json")
    assert all(printed.rows)
    assert printed.err.splitlines() == [f"tables of the demo that ended 3 days ago; {NAMED_BY}"]


class UsesTablesError(QuotaflowError):
    """In place of the conf of a command."""


@pytest.mark.parametrize("name", index.COMMANDS)
def test_every_command_that_uses_tables_says_it(
    command: Command, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def used(*_: object) -> None:
        raise UsesTablesError("it uses tables")

    example = command(name, "--help").out.split(f"Example: quotaflow {name}")[1]
    words = takewhile(lambda word: word not in "|>", shlex.split(example.split("\n\n")[0]))
    monkeypatch.setattr(options.ConfOptions, "of_tables", used)
    for place in (config, init):
        monkeypatch.setattr(place, "load", stopped)
    execute([name, *words])
    assert ("it uses tables" in capsys.readouterr().err) is (name not in NO_TABLES)


def stopped(*_: object) -> None:
    raise QuotaflowError("it reads conf")
