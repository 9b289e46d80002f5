"""Counts lines of the request log as they reach their topic, by broker and API."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quotaflow.pipelines.kafka import record_batches
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted
from quotaflow.udfs.request_log.options import LineOptions
from quotaflow.udfs.request_log.parser import LineParser

COLUMNS = ("broker_id", "lines_per_s", "bytes_per_s", "lines", "bytes")
"""Columns of `LineCounts.rates`."""

_MAX_APIS = 5


@dataclass(slots=True)
class LineCounts:
    """Counts of these brokers and, unless empty, these APIs: in all, and since the last `rates`.

    Lines are read as ingest reads them. One that does not name its broker, or cannot be read,
    counts for broker None.
    """

    options: LineOptions
    broker_ids: frozenset[int]
    apis: frozenset[str]
    lines: Counter[int | None] = field(default_factory=Counter)
    bytes: Counter[int | None] = field(default_factory=Counter)
    by_api: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    others: int = 0
    _reported: dict[int | None, tuple[int, int]] = field(default_factory=dict)
    _parser: LineParser = field(init=False)

    def __post_init__(self) -> None:
        """Open the parser."""
        self._parser = LineParser(self.options)

    def add(self, records: Sequence[Any]) -> None:
        """Count records of the topic, as kafka-python has them."""
        parsed = self._parser.parse(record_batches.of_records(records))
        rows = parsed.lines.select(["broker_id", "api", "reason"]).to_pylist()
        places = parsed.places.tolist()
        several = Counter(places)
        for place, row in zip(places, rows, strict=True):
            self._count(row, len(records[place].value or b"") // several[place])

    def _count(self, row: Mapping[str, Any], size: int) -> None:
        broker_id, api = row["broker_id"], row["api"] or "unknown"
        if row["reason"] is not None:
            self.unreadable[row["reason"]] += 1
            broker_id, api = None, "unreadable"
        is_selected = broker_id is None or broker_id in self.broker_ids
        if not is_selected or (self.apis and api not in self.apis):
            self.others += 1
            return
        self.lines[broker_id] += 1
        self.bytes[broker_id] += size
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
                rate = f"{texts.number(lines / duration_s)}/s, {texts.rate(size / duration_s)}"
                name = _broker_text(broker_id)
                yield f"{name}: {counted(lines, 'line')}, {rate}"
        if self.by_api:
            top = self.by_api.most_common(_MAX_APIS)
            yield "most lines: " + ", ".join(f"{api} {count}" for api, count in top)
        if self.unreadable:
            reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(self.unreadable.items()))
            yield f"{counted(self.unreadable.total(), 'line')} cannot be read: {reasons}"
        if self.others:
            yield f"{counted(self.others, 'line')} of other brokers or APIs came too"

    def _brokers(self) -> list[int | None]:
        unnamed: list[int | None] = [None] if self.lines[None] else []
        return [*sorted(self.broker_ids), *unnamed]


def line(rates: Sequence[Mapping[str, Any]]) -> str:
    """The rates of all brokers as one line of text."""
    return "  ".join(
        f"{_broker_text(row['broker_id'])}: {texts.number(row['lines_per_s'])} lines/s "
        f"{texts.rate(row['bytes_per_s'])}"
        for row in rates
    )


def _broker_text(broker_id: int | None) -> str:
    return "unnamed broker" if broker_id is None else f"broker {broker_id}"
