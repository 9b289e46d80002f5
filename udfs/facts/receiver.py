"""Records that hold one payload of telemetry each, to rows of `telemetry_pushes`."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import STRING
from quotaflow.schemas.tables.declared import QUARANTINE, TELEMETRY_PUSHES
from quotaflow.udfs.facts import quarantine, telemetry_pushes
from quotaflow.udfs.facts.facts import Facts, Outcome
from quotaflow.udfs.facts.requests import unreadable_counts
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.rules.pseudonym import Pseudonyms

ReadPushes = Callable[[pa.RecordBatch, int, datetime], pa.Table]


@dataclass(frozen=True, slots=True)
class PushLog:
    """How the records of a topic are read: `unopened` is a function of `telemetry_pushes`."""

    cluster_id: str
    unopened: ReadPushes
    max_bytes: int
    limits: Limits
    pseudonyms: Pseudonyms | None

    def open(self) -> "PushLog":
        """A reader for one task: this, because it keeps nothing between batches."""
        return self

    def read(self, records: pa.RecordBatch, now: datetime) -> Facts:
        """Every record as a push; one whose payload cannot be opened is in quarantine too."""
        sent = self.unopened(records, self.max_bytes, now)
        cluster = pa.repeat(pa.scalar(self.cluster_id, STRING), sent.num_rows)
        at = sent.schema.get_field_index("cluster_id")
        named = sent.set_column(at, "cluster_id", cluster)
        hidden = telemetry_pushes.with_hidden_columns(named, self.pseudonyms)
        opened = telemetry_pushes.opened(hidden, self.limits, self.pseudonyms)
        counts = Counter(
            {
                Outcome("in"): records.num_rows,
                Outcome("out", TELEMETRY_PUSHES.name): opened.num_rows,
            }
        )
        tables = {
            TELEMETRY_PUSHES.name: opened.select(TELEMETRY_PUSHES.column_names),
            QUARANTINE.name: quarantine.of_pushes(opened, now),
        }
        newest = pc.max(opened["record_time"]).as_py()
        return Facts(tables, counts + unreadable_counts(opened), newest)
