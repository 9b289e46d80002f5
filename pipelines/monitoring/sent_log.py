"""What was told already, as a file beside the checkpoints: survives restarts, needs no JVM."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse.warehouse import Warehouse

_NAME = "sent.json"
_FOLDER = "notify"


@dataclass(slots=True)
class SentLog:
    """Keys of what was told, with the times of what they stand for.

    Raises ConfigError where it cannot be written.
    """

    file: Path
    times: dict[str, str] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Whether it was told."""
        return key in self.times

    def add(self, keys: Iterable[tuple[str, datetime]]) -> None:
        """Remember these, before anything else is told: at worst the last one is told again."""
        self.times |= {key: time.isoformat() for key, time in keys}
        self._write()

    def forget(self, before: datetime) -> None:
        """Forget what is so old that it is not told any more; writes, whatever there is.

        Called before anything is told: a log that cannot be kept must end it there.
        """
        kept = {k: t for k, t in self.times.items() if datetime.fromisoformat(t) > before}
        self.times = kept
        self._write()

    def _write(self) -> None:
        new = self.file.with_suffix(".new")
        try:
            new.write_text(json.dumps(self.times), encoding="utf-8")
            os.replace(new, self.file)
        except OSError as error:
            raise ConfigError(_unkept(self.file, error)) from None


def open_log(conf: Conf) -> SentLog:
    """The log of conf's warehouse. Raises ConfigError where it cannot be read or kept."""
    folder = Warehouse(conf.warehouse).checkpoint(_FOLDER)
    file = folder / _NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        times = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return SentLog(file, {str(key): _checked(time) for key, time in times.items()})
    except OSError as error:
        raise ConfigError(_unkept(file, error)) from None
    except (ValueError, AttributeError, TypeError):
        raise ConfigError(
            f"{file} is not what notify wrote: remove it, and what is of late is told again"
        ) from None


def _unkept(file: Path, error: OSError) -> str:
    return (
        f"cannot keep {file}, without which everything would be told again and again: "
        f"{error.strerror}"
    )


def _checked(time: str) -> str:
    datetime.fromisoformat(time)
    return time
