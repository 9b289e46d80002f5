"""The ingest queries: each reads a topic once per micro-batch and fills all its tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F

from quotaflow.pipelines.config import Conf, IngestSection
from quotaflow.pipelines.facts import (
    lines,
    privacy,
    quarantine,
    requests,
    telemetry_pushes,
    telemetry_subscriptions,
)
from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.schemas.tables.control import QUARANTINE
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.telemetry import TELEMETRY_PUSHES, TELEMETRY_SUBSCRIPTIONS
from quotaflow.udfs.rules.pseudonym import Pseudonyms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROUTED = ("PUSH_TELEMETRY", "GET_TELEMETRY_SUBSCRIPTIONS")
ReadPushes = Callable[["DataFrame", IngestSection, str], "DataFrame"]


@dataclass(frozen=True, slots=True)
class RequestLogIngest:
    """Request-log topic -> requests, telemetry_pushes, telemetry_subscriptions, quarantine."""

    conf: Conf
    cluster_id: str
    _pseudonyms: Pseudonyms | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Look up the key here, beside the session: batches may run without access to secrets."""
        object.__setattr__(self, "_pseudonyms", self.conf.privacy.pseudonyms())

    def write(self, records: "DataFrame", batch: Batch) -> None:
        """Append each line to its tables, and count what is quarantined or left out."""
        # Raw: parsed rows take more memory than it costs to parse a few of them again.
        with cached(records) as kept:
            self._write(kept, batch)

    def _write(self, records: "DataFrame", batch: Batch) -> None:
        parsed = self._parsed(records)
        counted = _appended(parsed, batch)
        counts = _line_counts(counted)
        bad_lines = quarantine.from_lines(parsed) if _rows(counts, "quarantined") else None
        if bad_lines is not None and self._pseudonyms:
            bad_lines = privacy.without_heads(bad_lines)
        routed = self._parsed(records.where(_may_be_routed()))
        if counted["GET_TELEMETRY_SUBSCRIPTIONS"]:
            answers = telemetry_subscriptions.from_requests(routed)
            batch.append(answers, TELEMETRY_SUBSCRIPTIONS)
        if counted["PUSH_TELEMETRY"]:
            pushes = telemetry_pushes.from_requests(routed)
            counts += write_pushes(pushes, batch, self.conf, self._pseudonyms, bad_lines)
        elif bad_lines is not None:
            batch.append(bad_lines, QUARANTINE)
        if counted["in"]:
            batch.report(lambda: records.sparkSession, counts, self.cluster_id, counted["latest"])

    def _parsed(self, records: "DataFrame") -> "DataFrame":
        whole = requests.parse(records, self.conf.ingest, self.cluster_id)
        return privacy.with_pseudonyms(_without_what_no_table_takes(whole), self._pseudonyms)


@dataclass(frozen=True, slots=True)
class PushIngest:
    """A topic whose records hold one payload each -> telemetry_pushes, quarantine.

    `read` shapes its records: telemetry_pushes.from_receiver or from_collector.
    """

    conf: Conf
    cluster_id: str
    read: "ReadPushes"
    _pseudonyms: Pseudonyms | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Look up the key here, beside the session: batches may run without access to secrets."""
        object.__setattr__(self, "_pseudonyms", self.conf.privacy.pseudonyms())

    def write(self, records: "DataFrame", batch: Batch) -> None:
        """Append every push, and those that cannot be opened to quarantine too."""
        pushes = self.read(records, self.conf.ingest, self.cluster_id)
        hidden = privacy.with_pseudonyms(pushes, self._pseudonyms)
        counts = write_pushes(hidden, batch, self.conf, self._pseudonyms, None)
        rows = _rows(counts, "out")
        if rows:
            latest = records.agg(F.max("timestamp")).collect()[0][0]
            batch.report(
                lambda: records.sparkSession, [Count("in", rows), *counts], self.cluster_id, latest
            )


def write_pushes(
    pushes: "DataFrame",
    batch: Batch,
    conf: Conf,
    pseudonyms: Pseudonyms | None,
    bad_lines: "DataFrame | None",
) -> list[Count]:
    """Append pushes, and quarantine those that cannot be opened together with `bad_lines`.

    One append per table and batch: a second one would have the same transaction and be skipped.
    """
    limits = conf.payloads.limits
    inspected = telemetry_pushes.inspected(pushes, limits)
    with cached(privacy.with_hidden_payloads(inspected, pseudonyms, limits)) as opened:
        batch.append(opened, TELEMETRY_PUSHES)
        groups = opened.groupBy(quarantine.reason_of_push().alias("reason")).count().collect()
        bad = {g["reason"]: g["count"] for g in groups if g["reason"]}
        quarantined = [bad_lines] if bad_lines is not None else []
        quarantined += [quarantine.from_pushes(opened)] if bad else []
        if quarantined:
            rows = (
                quarantined[0]
                if len(quarantined) == 1
                else quarantined[0].unionByName(quarantined[1])
            )
            batch.append(rows, QUARANTINE)
        out = Count("out", sum(g["count"] for g in groups), "telemetry_pushes")
        return [out, *(Count("quarantined", n, "client_metrics", r) for r, n in bad.items())]


def _without_what_no_table_takes(parsed: "DataFrame") -> "DataFrame":
    """Lines and texts only where a table other than requests needs them: pseudonyms are made in
    Python, and sending these there would cost more than all the rest.
    """
    routed = _kept() & F.col("api").isin(*_ROUTED)
    return parsed.select(
        *REQUESTS.column_names,
        "reason",
        "left_out",
        F.when(routed, F.col("line")).alias("line"),
        F.when(F.col("reason").isNotNull(), F.col("value")).alias("value"),
    )


def _kept() -> "Column":
    return F.col("reason").isNull() & F.col("left_out").isNull()


def _appended(parsed: "DataFrame", batch: Batch) -> dict[str, Any]:
    """Append the rows of requests. Returns counts of records by outcome, from the same pass.

    The few lines of other tables are parsed a second time.
    """
    if batch.replayed:
        # Delta may skip the append, and then there is nothing to observe.
        batch.append(requests.select_requests(parsed), REQUESTS)
        return parsed.agg(*_reported()).collect()[0].asDict()
    seen = Observation()
    # All observed columns are computed, so those of other tables are dropped here.
    observed = parsed.drop("line", "value").observe(seen, *_reported())
    batch.append(requests.select_requests(observed), REQUESTS)
    return seen.get


def _reported() -> "list[Column]":
    counted = {"in": F.lit(True), "kept": _kept()}
    counted |= {reason: F.col("reason") == reason for reason in lines.REASONS}
    counted |= {reason: F.col("left_out") == reason for reason in requests.LEFT_OUT}
    counted |= {api: _kept() & (F.col("api") == api) for api in _ROUTED}
    latest = F.max("record_time").alias("latest")
    return [latest, *(F.count_if(is_in).alias(name) for name, is_in in counted.items())]


def _may_be_routed() -> "Column":
    # Both names hold this, and few lines do. An escape could spell any name.
    text = F.col("value").cast("string")
    return text.contains("_TELEMETRY") | text.contains("\\u")


def _line_counts(counted: Mapping[str, Any]) -> list[Count]:
    answers = counted["GET_TELEMETRY_SUBSCRIPTIONS"]
    return [
        Count("in", counted["in"]),
        Count("out", counted["kept"], "requests"),
        Count("out", answers, "telemetry_subscriptions"),
        *(Count("left_out", counted[reason], None, reason) for reason in requests.LEFT_OUT),
        *(Count("quarantined", counted[reason], "requests", reason) for reason in lines.REASONS),
    ]


def _rows(counts: list[Count], outcome: str) -> int:
    return sum(count.rows for count in counts if count.outcome == outcome)
