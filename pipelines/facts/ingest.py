"""The ingest queries: each reads a topic once per micro-batch and fills all it feeds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.config import Conf, Ingest
from quotaflow.pipelines.facts import (
    privacy,
    quarantine,
    requests,
    telemetry_pushes,
    telemetry_subscriptions,
)
from quotaflow.pipelines.held import held
from quotaflow.pipelines.sinks import Batch, Count
from quotaflow.schemas import tables
from quotaflow.udfs.codecs import Limits
from quotaflow.udfs.rules.pseudonym import Pseudonyms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

ReadPushes = Callable[["DataFrame", Ingest, str], "DataFrame"]


@dataclass(frozen=True, slots=True)
class RequestLog:
    """Request-log topic -> requests, telemetry_pushes, telemetry_subscriptions, quarantine."""

    conf: Conf
    cluster_id: str
    _pseudonyms: Pseudonyms | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Look the key up here, beside the session: batches may run where no secret is at hand."""
        object.__setattr__(self, "_pseudonyms", self.conf.privacy.pseudonyms())

    def write(self, records: "DataFrame", batch: Batch) -> None:
        """Parse every line once, and append each row where it belongs."""
        whole = requests.parse(records, self.conf.ingest, self.cluster_id)
        hidden = privacy.with_pseudonyms(_without_what_no_table_takes(whole), self._pseudonyms)
        with held(hidden) as parsed:
            sizes = [F.count(F.lit(1)).alias("rows"), F.max("record_time").alias("latest")]
            groups = parsed.groupBy("reason", "left_out", _routed()).agg(*sizes).collect()
            batch.append(requests.select_requests(parsed), tables.REQUESTS)
            if any(g["api"] == "GET_TELEMETRY_SUBSCRIPTIONS" for g in groups):
                answers = telemetry_subscriptions.from_requests(parsed)
                batch.append(answers, tables.TELEMETRY_SUBSCRIPTIONS)
            counts = _line_counts(groups)
            bad_lines = quarantine.from_lines(parsed) if _rows(counts, "quarantined") else None
            if bad_lines is not None and self._pseudonyms:
                bad_lines = privacy.without_heads(bad_lines)
            if any(g["api"] == "PUSH_TELEMETRY" for g in groups):
                pushes = telemetry_pushes.from_requests(parsed)
                counts += write_pushes(pushes, batch, self.conf, self._pseudonyms, bad_lines)
            elif bad_lines is not None:
                batch.append(bad_lines, tables.QUARANTINE)
            if groups:
                latest = max(g["latest"] for g in groups)
                batch.report(parsed.sparkSession, counts, self.cluster_id, latest)


@dataclass(frozen=True, slots=True)
class Pushes:
    """A topic whose records hold one payload each -> telemetry_pushes, quarantine.

    `read` shapes its records: telemetry_pushes.from_receiver or from_collector.
    """

    conf: Conf
    cluster_id: str
    read: "ReadPushes"
    _pseudonyms: Pseudonyms | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Look the key up here, beside the session: batches may run where no secret is at hand."""
        object.__setattr__(self, "_pseudonyms", self.conf.privacy.pseudonyms())

    def write(self, records: "DataFrame", batch: Batch) -> None:
        """Append every push, and what cannot be opened to quarantine too."""
        pushes = self.read(records, self.conf.ingest, self.cluster_id)
        hidden = privacy.with_pseudonyms(pushes, self._pseudonyms)
        counts = write_pushes(hidden, batch, self.conf, self._pseudonyms, None)
        rows = _rows(counts, "out")
        if rows:
            latest = records.agg(F.max("timestamp")).collect()[0][0]
            batch.report(
                records.sparkSession, [Count("in", rows), *counts], self.cluster_id, latest
            )


def payload_limits(conf: Conf) -> Limits:
    """Conf's bounds on a payload, as the decoder takes them."""
    bounds = conf.payloads
    return Limits(
        decoded_bytes=bounds.max_decoded_bytes,
        ratio=bounds.max_ratio,
        points=bounds.max_points,
        attributes=bounds.max_attributes,
        string_chars=bounds.max_string_chars,
    )


def write_pushes(
    pushes: "DataFrame",
    batch: Batch,
    conf: Conf,
    pseudonyms: Pseudonyms | None,
    bad_lines: "DataFrame | None",
) -> list[Count]:
    """Append pushes, and quarantine what cannot be opened together with `bad_lines`.

    One append per table and batch: a second one would carry the same transaction and be skipped.
    """
    limits = payload_limits(conf)
    inspected = telemetry_pushes.inspected(pushes, limits)
    with held(privacy.with_hidden_payloads(inspected, pseudonyms, limits)) as opened:
        batch.append(opened, tables.TELEMETRY_PUSHES)
        groups = opened.groupBy("unreadable_reason").count().collect()
        bad = {g["unreadable_reason"]: g["count"] for g in groups if g["unreadable_reason"]}
        quarantined = [bad_lines] if bad_lines is not None else []
        quarantined += [quarantine.from_pushes(opened)] if bad else []
        if quarantined:
            rows = (
                quarantined[0]
                if len(quarantined) == 1
                else quarantined[0].unionByName(quarantined[1])
            )
            batch.append(rows, tables.QUARANTINE)
        out = Count("out", sum(g["count"] for g in groups), "telemetry_pushes")
        return [out, *(Count("quarantined", n, "client_metrics", r) for r, n in bad.items())]


def _without_what_no_table_takes(parsed: "DataFrame") -> "DataFrame":
    """Lines and texts only where another table than requests needs them: caching all costs more
    than parsing does.
    """
    return parsed.select(
        *tables.REQUESTS.column_names,
        "reason",
        "left_out",
        F.when(_routed().isNotNull(), F.col("line")).alias("line"),
        F.when(F.col("reason").isNotNull(), F.col("value")).alias("value"),
    )


def _routed() -> "Column":
    routed = F.col("api").isin("PUSH_TELEMETRY", "GET_TELEMETRY_SUBSCRIPTIONS")
    kept = F.col("reason").isNull() & F.col("left_out").isNull()
    return F.when(routed & kept, F.col("api")).alias("api")


def _line_counts(groups: "list[Row]") -> list[Count]:
    def total(rows: "list[Row]") -> int:
        return sum(row["rows"] for row in rows)

    kept = [g for g in groups if g["reason"] is None and g["left_out"] is None]
    answers = [g for g in kept if g["api"] == "GET_TELEMETRY_SUBSCRIPTIONS"]
    bad = [Count("quarantined", g["rows"], "requests", g["reason"]) for g in groups if g["reason"]]
    left = [Count("left_out", g["rows"], None, g["left_out"]) for g in groups if g["left_out"]]
    out = [
        Count("out", total(kept), "requests"),
        Count("out", total(answers), "telemetry_subscriptions"),
    ]
    return [Count("in", total(groups)), *out, *left, *bad]


def _rows(counts: list[Count], outcome: str) -> int:
    return sum(count.rows for count in counts if count.outcome == outcome)
