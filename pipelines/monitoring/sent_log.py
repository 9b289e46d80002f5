"""The events that were sent, in a file beside the checkpoints: survives restarts, needs no JVM.

Of what is open at a receiver it has the beginning, because its end must be recognized there.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import state_files
from quotaflow.pipelines.warehouse.warehouse import Warehouse

_NAME = "sent.json"
_FOLDER = "notify"
_OPENINGS = "openings"
"""What the file has beside keys, which have a space."""
_REMEMBERED = timedelta(days=30)
"""How long a beginning is remembered if its end does not come."""


@dataclass(slots=True)
class SentLog:
    """Keys of the events that were sent, with their times, and the beginnings by their subject.

    Raises ConfigError if the file cannot be written.
    """

    file: Path
    times: dict[str, str] = field(default_factory=dict)
    openings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Whether the event was sent."""
        return key in self.times

    def opening(self, subject: str) -> Mapping[str, Any] | None:
        """What was sent when it began, while it has not ended."""
        return self.openings.get(subject)

    def begin(self, subject: str, time: datetime, sent: Mapping[str, Any]) -> None:
        """Remember what began, until its end. `add` writes it."""
        self.openings[subject] = {**sent, "time": time.isoformat()}

    def end(self, subject: str) -> None:
        """Forget a beginning. `add` writes it."""
        self.openings.pop(subject, None)

    def add(self, keys: Iterable[tuple[str, datetime]]) -> None:
        """Record sent events at once: after a crash, at most the last one is sent again."""
        self.times |= {key: time.isoformat() for key, time in keys}
        self._write()

    def forget(self, before: datetime) -> None:
        """Drop events older than a time, and write the file in any case.

        Called before anything is sent: if the file cannot be written, nothing may be sent.
        """
        long_before = before - _REMEMBERED
        self.times = {k: t for k, t in self.times.items() if datetime.fromisoformat(t) > before}
        self.openings = {
            subject: opening
            for subject, opening in self.openings.items()
            if datetime.fromisoformat(opening["time"]) > long_before
        }
        self._write()

    def _write(self) -> None:
        try:
            state_files.replace(self.file, json.dumps(self.times | {_OPENINGS: self.openings}))
        except OSError as error:
            raise ConfigError(_unwritable(self.file, error)) from None


def open_log(conf: Conf) -> SentLog:
    """The log of conf's warehouse. Raises ConfigError if it cannot be read or written."""
    folder = Warehouse(conf.warehouse).checkpoint(_FOLDER)
    file = folder / _NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        times = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        openings = dict(times.pop(_OPENINGS, {}))
        for opening in openings.values():
            _checked(opening["time"])
        return SentLog(file, {str(key): _checked(time) for key, time in times.items()}, openings)
    except OSError as error:
        raise ConfigError(_unwritable(file, error)) from None
    except (ValueError, AttributeError, TypeError, LookupError):
        raise ConfigError(
            f"{file} is not what notify wrote: remove it, and recent events are sent again"
        ) from None


def _unwritable(file: Path, error: OSError) -> str:
    return (
        f"cannot write {file}, without which all events would be sent again and again: "
        f"{error.strerror}"
    )


def _checked(time: str) -> str:
    datetime.fromisoformat(time)
    return time
