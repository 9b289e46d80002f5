"""The shell of `quotaflow sql`, on a terminal as a person uses it."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...delta_tables import NOON, Fill

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000) c;"


_WHERE_AM_I = "\x1b[6n"
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[=>])")


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, warehouse: Warehouse, home: Path) -> None:
        self._unread = ""
        self._mine, theirs = pty.openpty()
        place = ["--set", f"warehouse.path={warehouse.conf.folder}"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "quotaflow.pipelines", "sql", *place],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "QUOTAFLOW_HOME": str(home), "TERM": "xterm", "PAGER": "cat"},
            start_new_session=True,
        )
        os.close(theirs)

    def types(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def shows(self, text: str) -> str:
        """What came up to and with `text`; what is behind it stays for the next call."""
        deadline = time.monotonic() + 60
        while text not in self._unread:
            assert time.monotonic() < deadline, self._unread
            if select.select([self._mine], [], [], 1)[0]:
                read = os.read(self._mine, 65536).decode(errors="replace")
                if _WHERE_AM_I in read:
                    os.write(self._mine, b"\x1b[1;1R")
                self._unread += _CONTROL.sub("", read)
        shown, _, self._unread = self._unread.partition(text)
        return shown + text

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)


@pytest.fixture
def terminal(warehouse: Warehouse, fill: Fill, tmp_path: Path) -> Iterator[Terminal]:
    fill("requests", [{"event_time": NOON, "api": "FETCH"}, {"event_time": NOON, "api": "FETCH"}])
    opened = Terminal(warehouse, tmp_path / "home")
    yield opened
    opened.close()


def test_a_shell_answers_cancels_and_ends(terminal: Terminal, tmp_path: Path) -> None:
    terminal.shows("quotaflow>")
    terminal.types("SELECT api, count(*) AS n\r")
    terminal.shows("...>")
    terminal.types("FROM requests GROUP BY api;\r")
    terminal.shows("FETCH  2")
    terminal.types("SELECT nope FROM requests;\r")
    terminal.shows("no column nope (known: ")
    terminal.types("SELECT * FROM traffic;\r")
    terminal.shows("run request_results --once")
    terminal.types(f"{ENDLESS}\r")
    terminal.shows("computing ... 2 s")
    os.kill(terminal.process.pid, 2)
    terminal.shows("cancelled")
    terminal.types("\\x\r\\s throttle time\r\\d quota_usage\rSELECT 7 AS after;\r")
    shown = terminal.shows("after  7")
    assert "filled by" in shown
    # Tab completes a name.
    terminal.types("SELECT count(*) AS n FROM requests WHERE correlation_i\t IS NULL;\r")
    terminal.shows("n  2")
    terminal.types("\\p\rSELECT repeat('x', 300) AS wide;\r")
    terminal.shows("x" * 300)
    # Before the prompt the terminal, not the shell, would take the key.
    terminal.shows("quotaflow>")
    terminal.types("\x04")
    assert terminal.process.wait(timeout=30) == 0
    history = tmp_path / "home" / "sql_history"
    assert ENDLESS in history.read_text(encoding="utf-8")
    assert history.stat().st_mode & 0o077 == 0
