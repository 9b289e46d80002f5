"""The line of a command that works for long."""

import io
import threading

import pytest

from quotaflow.pipelines.terminal import output, progress


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.has_line = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        self.has_line.set()
        return written


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0.0)


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not a fixture: pytest replaces stderr after its set-up."""
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    return stderr


def test_a_long_block_says_what_it_does_and_leaves_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch)
    with progress.shown("asking"):
        stderr.has_line.wait()
    assert "asking ... 0 s" in stderr.getvalue()
    assert stderr.getvalue().endswith("\r\x1b[K")


def test_a_note_comes_on_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch)
    with progress.shown("asking"):
        stderr.has_line.wait()
        output.note("a note")
    assert "\r\x1b[Ka note\n" in stderr.getvalue()


def test_a_short_block_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch)
    monkeypatch.setattr(progress, "SILENT_S", 900.0)
    with progress.shown("asking"):
        pass
    assert stderr.getvalue() == ""


def test_a_file_gets_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    threads = threading.active_count()
    with progress.shown("asking"):
        assert threading.active_count() == threads
    assert capsys.readouterr().err == ""
