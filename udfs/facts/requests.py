"""Records of the request log to rows of all its tables, each line read once."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import STRING
from quotaflow.schemas.tables.declared import (
    QUARANTINE,
    REQUESTS,
    TELEMETRY_PUSHES,
    TELEMETRY_SUBSCRIPTIONS,
)
from quotaflow.udfs.facts import quarantine, telemetry_pushes, telemetry_subscriptions
from quotaflow.udfs.facts.facts import Facts, Outcome
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.request_log.columns import DOUBTFUL
from quotaflow.udfs.request_log.options import LineOptions
from quotaflow.udfs.request_log.parser import LineParser, ParsedRecords
from quotaflow.udfs.rules.pseudonym import Pseudonyms


@dataclass(frozen=True, slots=True)
class RequestLog:
    """How the lines of one cluster are read. With pseudonyms no row names a client."""

    cluster_id: str
    options: LineOptions
    limits: Limits
    pseudonyms: Pseudonyms | None

    def with_brokers(self, brokers: tuple[int, ...]) -> "RequestLog":
        """The same; the numbers of names are these brokers or none."""
        return replace(self, options=replace(self.options, brokers=brokers))

    def open(self) -> "RequestLogReader":
        """A reader for one task."""
        return RequestLogReader(self)


@dataclass(slots=True)
class RequestLogReader:
    """Reads batches of records, one after the other."""

    log: RequestLog
    _parser: LineParser = field(init=False)

    def __post_init__(self) -> None:
        """Open the parser's database."""
        self._parser = LineParser(self.log.options)

    def read(self, records: pa.RecordBatch, now: datetime) -> Facts:
        """Rows of `requests` and of the tables of telemetry, and what is in quarantine and why."""
        parsed = self._parser.parse(records)
        lines = parsed.lines
        is_kept = pc.and_(pc.is_null(lines["reason"]), pc.is_null(lines["left_out"]))
        requests = self._requests(lines, is_kept)
        telemetry = _of_rows(parsed, is_kept)
        sent = telemetry_pushes.from_lines(requests, telemetry)
        opened = telemetry_pushes.opened(sent, self.log.limits, self.log.pseudonyms)
        values, places = records.column("value"), pa.array(parsed.places)
        has_heads = self.log.pseudonyms is None
        bad = quarantine.of_lines(lines, values, places, now, with_heads=has_heads)
        bad = bad.set_column(0, "cluster_id", self._cluster(bad.num_rows))
        tables = {
            REQUESTS.name: requests,
            TELEMETRY_PUSHES.name: opened.select(TELEMETRY_PUSHES.column_names),
            TELEMETRY_SUBSCRIPTIONS.name: telemetry_subscriptions.from_lines(requests, telemetry),
            QUARANTINE.name: pa.concat_tables([bad, quarantine.of_pushes(opened, now)]),
        }
        counts = line_counts(lines)
        counts[Outcome("out", REQUESTS.name)] = requests.num_rows
        counts[Outcome("out", TELEMETRY_PUSHES.name)] = opened.num_rows
        counts[Outcome("out", TELEMETRY_SUBSCRIPTIONS.name)] = tables[
            TELEMETRY_SUBSCRIPTIONS.name
        ].num_rows
        counts += unreadable_counts(opened)
        return Facts(tables, counts, pc.max(lines["record_time"]).as_py())

    def _requests(self, lines: pa.Table, is_kept: pa.ChunkedArray) -> pa.Table:
        kept = lines.filter(is_kept)
        cluster = self._cluster(kept.num_rows)
        arrays = [cluster if f.name == "cluster_id" else kept[f.name] for f in REQUESTS.arrow]
        rows = pa.Table.from_arrays(arrays, schema=REQUESTS.arrow)
        return telemetry_pushes.with_hidden_columns(rows, self.log.pseudonyms)

    def _cluster(self, rows: int) -> pa.Array:
        return pa.repeat(pa.scalar(self.log.cluster_id, STRING), rows)


def line_counts(lines: pa.Table) -> Counter[Outcome]:
    """The number of lines by outcome, except of rows that were kept."""
    counts = Counter({Outcome("in"): lines.num_rows})
    for column, outcome, target in (
        ("left_out", "left_out", None),
        ("reason", "quarantined", REQUESTS.name),
    ):
        for value in pc.value_counts(lines[column]).to_pylist():
            if value["values"] is not None:
                counts[Outcome(outcome, target, value["values"])] = value["counts"]
    is_kept = pc.and_(pc.is_null(lines["reason"]), pc.is_null(lines["left_out"]))
    for name in DOUBTFUL:
        doubtful = pc.sum(pc.and_(is_kept, pc.fill_null(lines[name], False))).as_py()
        counts[Outcome("doubtful", REQUESTS.name, name)] = doubtful or 0
    return counts


def unreadable_counts(opened: pa.Table) -> Counter[Outcome]:
    """The number of pushes that cannot be read, or metrics of them, by reason."""
    reasons = quarantine.reasons_of(opened).drop_null().to_pylist()
    return Counter(Outcome("quarantined", "client_metrics", reason) for reason in reasons)


def _of_rows(parsed: ParsedRecords, is_kept: pa.ChunkedArray) -> pa.Table:
    """What telemetry APIs say, of kept lines only: `line` is the row in `requests`."""
    kept = is_kept.to_numpy()
    row_of = np.where(kept, np.cumsum(kept) - 1, -1)
    telemetry = parsed.telemetry
    rows = row_of[telemetry["line"].to_numpy()]
    numbered = telemetry.set_column(0, "line", pa.array(rows, pa.int32()))
    return numbered.filter(pa.array(rows >= 0))
