"""Incidents that the tables show only while they are open: their end is where they are no longer.

Of lags, rebalances, replicas and moves tables have what is there now. So notify keeps the open ones
in a file beside the events that it sent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import state_files
from quotaflow.pipelines.warehouse.warehouse import Warehouse

_QUIET = timedelta(minutes=10)
"""An incident can go on within so long of its end, as those of clients can."""
_COLUMNS = ("cluster_id", "symptom", "cause", "origin", "since", "subjects", "names", "confidence")

Row = Mapping[str, Any]


@dataclass(slots=True)
class OpenIncidents:
    """Incidents by their subject, as rows of `incidents`; `until` is when one was missed first."""

    file: Path
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def update(self, shown: Mapping[str, Row], now: datetime) -> set[str]:
        """Take over what the tables show now. Returns the subjects that are open once more."""
        reopened = {each for each in shown if self.rows.get(each, {}).get("state") == "ended"}
        for subject, row in self.rows.items():
            if subject not in shown:
                row["until"] = row["until"] or now
                row["state"] = "ended" if now - row["until"] >= _QUIET else "open"
        self.rows |= {
            subject: {name: row[name] for name in _COLUMNS} | {"until": None, "state": "open"}
            for subject, row in shown.items()
        }
        return reopened

    def ended(self) -> list[Row]:
        """The incidents that ended."""
        return [row for row in self.rows.values() if row["state"] == "ended"]

    def save(self, before: datetime) -> None:
        """Write the file, without incidents that ended before a time. Raises ConfigError."""
        self.rows = {
            subject: row
            for subject, row in self.rows.items()
            if row["until"] is None or row["until"] > before
        }
        try:
            state_files.replace(self.file, json.dumps(self.rows, default=datetime.isoformat))
        except OSError as error:
            raise ConfigError(f"cannot write {self.file}: {error.strerror}") from None


def open_incidents(conf: Conf) -> OpenIncidents:
    """Those of conf's warehouse. Raises ConfigError if the file is not what was written."""
    file = Warehouse(conf.warehouse).checkpoint("notify") / "incidents.json"
    try:
        stored = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return OpenIncidents(file, {subject: _read(row) for subject, row in stored.items()})
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, AttributeError, TypeError, KeyError):
        raise ConfigError(f"{file} is not what notify wrote: remove it") from None


def _read(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: row[name] and datetime.fromisoformat(row[name]) for name in ("since", "until")}
    return {name: row[name] for name in (*_COLUMNS, "state")} | times
