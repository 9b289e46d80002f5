"""The lines on stderr, of one logger: text, or JSON with the job and batch of each line."""

import json
import logging
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Self

from quotaflow.pipelines.terminal import progress, values

Format = Literal["text", "json"]
_RED_ERROR = "\x1b[31m\x1b[1merror:\x1b[0m"


class LogLine(str):
    """A line that says which job and batch it is about, and how severe it is."""

    job: str | None
    batch: int | None
    level: int

    def __new__(
        cls,
        text: str,
        *,
        job: str | None = None,
        batch: int | None = None,
        level: int = logging.INFO,
    ) -> Self:
        """The text behind the name of the job, with its fields."""
        line = super().__new__(cls, f"{job}: {text}" if job else text)
        line.job, line.batch, line.level = job, batch, level
        return line


def warning(text: str, job: str | None = None) -> LogLine:
    """A line that says what did not work, and that the job goes on."""
    return LogLine(text, job=job, level=logging.WARNING)


@dataclass
class _Lines(logging.Handler):
    """Writes lines to the stderr of the moment. `command` is the job of a line that names none."""

    form: Format = "text"
    command: str | None = None
    cluster: str | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def __hash__(self) -> int:
        return id(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line. A closed terminal is no error: work goes on, restores above all."""
        progress.clear()
        with suppress(OSError):
            line = self._json(record) if self.form == "json" else _text(record)
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def _json(self, record: logging.LogRecord) -> str:
        fields = {
            "time": f"{_time(record):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
            "level": record.levelname.lower(),
            "job": getattr(record, "job", None) or self.command,
            "batch": getattr(record, "batch", None),
            "cluster": self.cluster,
            "message": _message(record),
        }
        return json.dumps({name: value for name, value in fields.items() if value is not None})


def _text(record: logging.LogRecord) -> str:
    message = _message(record)
    if record.levelno >= logging.ERROR:
        return f"{_RED_ERROR if sys.stderr.isatty() else 'error:'} {message}"
    if getattr(record, "is_answer", False):
        return message
    return f"{_time(record):%Y-%m-%dT%H:%M:%SZ} {record.levelname.lower()} {message}"


def _message(record: logging.LogRecord) -> str:
    """What a client named can neither end the line nor change the terminal."""
    return values.visible(record.getMessage())


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


_logger = logging.getLogger("quotaflow")
_logger.setLevel(logging.INFO)
# Libraries log secrets, so theirs goes nowhere; and ours is not printed twice in a notebook.
_logger.propagate = False
_lines = _Lines()
_logger.addHandler(_lines)


def start(form: Format) -> None:
    """Write lines in this form from now on."""
    _lines.form, _lines.command, _lines.cluster = form, None, None


def of_command(name: str | None, level: int) -> None:
    """Name the command that runs: the job of a line that names none. Less severe lines go."""
    _lines.command = name
    _logger.setLevel(level)
    progress.show(_lines.form == "text" and level <= logging.INFO)


def command() -> str | None:
    """The command that runs."""
    return _lines.command


def of_cluster(cluster_id: str | None) -> None:
    """Name the cluster that the lines are about from now on."""
    _lines.cluster = cluster_id


def report(text: str) -> None:
    """Log what a job does. A `LogLine` has the job, the batch and the level."""
    level = getattr(text, "level", logging.INFO)
    about = {"job": getattr(text, "job", None), "batch": getattr(text, "batch", None)}
    _logger.log(level, "%s", text, extra=about)


def note(text: str) -> None:
    """Log a remark on what a command prints: as text it has neither time nor level."""
    _logger.info("%s", text, extra={"is_answer": True})


def detail(text: str) -> None:
    """Log what -v shows."""
    _logger.debug("%s", text)


def error(text: str) -> None:
    """Log why a command failed, as one line."""
    _logger.error("%s", " ".join(text.split()))
