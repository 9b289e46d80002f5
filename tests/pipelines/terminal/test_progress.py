"""The line of a command that works for long."""

import io
import time

import pytest

from quotaflow.pipelines.terminal import output, progress


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not a fixture: pytest replaces stderr after its set-up."""
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(progress, "SILENT_S", 0.05)
    return stderr


def test_a_long_block_says_what_it_does_and_leaves_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch)
    with progress.shown("asking"):
        time.sleep(0.3)
    assert "asking ... 0 s" in stderr.getvalue()
    assert stderr.getvalue().endswith("\r\x1b[K")


def test_a_note_comes_on_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch)
    with progress.shown("asking"):
        time.sleep(0.3)
        output.note("a note")
    assert "\r\x1b[Ka note\n" in stderr.getvalue()


def test_a_short_block_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch)
    with progress.shown("asking"):
        pass
    assert stderr.getvalue() == ""


def test_a_file_gets_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.shown("asking"):
        time.sleep(0.3)
    assert capsys.readouterr().err == ""
