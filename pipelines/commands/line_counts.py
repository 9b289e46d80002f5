"""Counts lines of the request log as they reach their topic, by broker and API, unparsed."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# The envelope starts with the broker; in the line itself, quotes of a client are escaped.
_HEAD_BYTES = 120
_BROKER = re.compile(rb'"broker":(\d{1,9})\b')
_API = re.compile(rb'"requestApiKeyName":"([A-Z_]{1,60})"')
_NUMBER = re.compile(rb"\d{1,9}")
_HEADER = "broker_id"
_MAX_APIS = 5


@dataclass(slots=True)
class LineCounts:
    """Counts of these brokers and, unless empty, these APIs: in all, and since the last `rates`.

    A line that does not name its broker counts for broker None.
    """

    broker_ids: frozenset[int]
    apis: frozenset[str]
    lines: Counter[int | None] = field(default_factory=Counter)
    bytes: Counter[int | None] = field(default_factory=Counter)
    by_api: Counter[str] = field(default_factory=Counter)
    others: int = 0
    _reported: dict[int | None, tuple[int, int]] = field(default_factory=dict)

    def add(self, record: Any) -> None:
        """Count one record of the topic."""
        value = record.value or b""
        broker_id, match = _broker_id(record, value), _API.search(value)
        api = match[1].decode() if match else "unknown"
        is_selected = broker_id is None or broker_id in self.broker_ids
        if not is_selected or (self.apis and api not in self.apis):
            self.others += 1
            return
        self.lines[broker_id] += 1
        self.bytes[broker_id] += len(value)
        self.by_api[api] += 1

    def rates(self, duration_s: float) -> Iterator[dict[str, Any]]:
        """A row per broker: lines and bytes per second since the last call, duration_s ago."""
        for broker_id in self._brokers():
            lines, size = self.lines[broker_id], self.bytes[broker_id]
            lines_before, size_before = self._reported.get(broker_id, (0, 0))
            self._reported[broker_id] = (lines, size)
            yield {
                "broker_id": broker_id,
                "lines_per_s": round((lines - lines_before) / duration_s, 1),
                "bytes_per_s": round((size - size_before) / duration_s),
                "lines": lines,
                "bytes": size,
            }

    def summary(self, duration_s: float) -> Iterator[str]:
        """All that was counted, as lines of text."""
        for broker_id in self._brokers():
            lines, size = self.lines[broker_id], self.bytes[broker_id]
            if not lines:
                yield f"broker {broker_id}: no line came: is its shipper running?"
            else:
                rate, kilobytes = lines / duration_s, size / duration_s / 1_000
                name = _broker_text(broker_id)
                yield f"{name}: {lines} lines, {rate:.1f}/s, {kilobytes:.1f} kB/s"
        if self.by_api:
            top = self.by_api.most_common(_MAX_APIS)
            yield "most lines: " + ", ".join(f"{api} {count}" for api, count in top)
        if self.others:
            yield f"{self.others} lines of other brokers or APIs came too"

    def _brokers(self) -> list[int | None]:
        unnamed: list[int | None] = [None] if self.lines[None] else []
        return [*sorted(self.broker_ids), *unnamed]


def line(rates: list[Mapping[str, Any]]) -> str:
    """The rates of all brokers as one line of text."""
    return "  ".join(
        f"{_broker_text(row['broker_id'])}: {row['lines_per_s']:.1f} lines/s "
        f"{row['bytes_per_s'] / 1_000:.1f} kB/s"
        for row in rates
    )


def _broker_text(broker_id: int | None) -> str:
    return "unnamed broker" if broker_id is None else f"broker {broker_id}"


def _broker_id(record: Any, value: bytes) -> int | None:
    """From the envelope, else the record's header, else its key, as ingest reads it."""
    match = _BROKER.search(value[:_HEAD_BYTES])
    carried = [match[1]] if match else [v for k, v in record.headers if k == _HEADER]
    text = (carried or [record.key])[0] or b""
    return int(text) if _NUMBER.fullmatch(text) else None
