"""Request-log lines in any of three envelopes -> one parsed struct, or the reason it is unreadable.

The forms: the envelope {"ts":..,"broker":..,"r":{..}}; the bare line; and
Kafka's stock layout `[date] DEBUG Completed request:{..} (kafka.request.logger)`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quotaflow.pipelines.config import IngestSection
from quotaflow.schemas import events

REASONS = ("empty_line", "line_too_long", "not_json", "not_a_request_line", "unexpected_shape")
"""Why a record is no request line."""


def with_line(records: DataFrame, ingest: IngestSection) -> DataFrame:
    """Add `line`, the parsed envelope, and `reason`: one of REASONS, or null for a request line."""
    text = F.when(F.length("value") <= ingest.max_line_bytes, F.col("value").cast("string"))
    options = {"columnNameOfCorruptRecord": events.CORRUPT}
    return (
        records.withColumn("text", text)
        .withColumn(
            "wrapped", F.from_json(_wrapped(envelope(F.col("text"))), events.WRAPPED, options)
        )
        .withColumns({"line": F.col("wrapped.line"), "api": _api(), "reason": _reason(ingest)})
    )


def event_time(ingest: IngestSection) -> Column:
    """When the broker completed the request, by its clock: at most the record's time plus a bound.

    Without a `ts`, in bare and stock lines, it is the record's timestamp: the date of a stock line
    has no time zone.
    """
    ts = F.col("line.ts")
    sane = F.when(ts.between(0, events.YEAR_2100_MS), F.timestamp_millis(ts))
    # In microseconds: adding an interval goes through the calendar.
    latest_us = F.unix_micros("timestamp") + ingest.max_clock_skew_s * 1_000_000
    latest = F.timestamp_micros(latest_us)
    return F.least(F.coalesce(sane, F.col("timestamp")), latest)


def broker_id() -> Column:
    """Node id of the envelope, else of the record's header, else of its key."""
    header = F.expr("get(filter(headers, h -> h.key = 'broker_id'), 0).value")
    carried = [F.expr("try_cast(string(key) as int)"), header.cast("string").try_cast("int")]
    return F.coalesce(F.col("line.broker"), carried[1], carried[0])


def envelope(text: Column) -> Column:
    """Any of the three forms as an envelope."""
    stock = F.regexp_extract(text, events.STOCK_PATTERN, 1)
    bare = F.when(F.ltrim(text).startswith("{"), text).otherwise(stock)
    is_ours = text.rlike(events.ENVELOPE_PATTERN)
    return F.when(is_ours, text).otherwise(F.concat(F.lit('{"r":'), bare, F.lit("}")))


def _wrapped(line: Column) -> Column:
    return F.concat(F.lit('{"line":'), line, F.lit(',"end":true}'))


def _is_json(text: Column) -> Column:
    """Whether a text is one JSON value, or several separated by commas."""
    return F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))).isNotNull()


def _api() -> Column:
    header = F.col("wrapped.line.r.requestHeader")
    unknown = F.concat(F.lit("UNKNOWN_"), header["requestApiKey"].cast("string"))
    return F.coalesce(header["requestApiKeyName"], unknown)


def _reason(ingest: IngestSection) -> Column:
    corrupt = F.col(f"wrapped.{events.CORRUPT}").isNotNull()
    # Spark reads on after some errors, and then a broken line looks like one of another shape.
    torn = corrupt & (F.col("wrapped.line.r").isNull() | ~_is_json(envelope(F.col("text"))))
    not_json = F.col("wrapped.end").isNull() | torn
    return (
        F.when(F.coalesce(F.length("value"), F.lit(0)) == 0, "empty_line")
        .when(F.length("value") > ingest.max_line_bytes, "line_too_long")
        .when(not_json, "not_json")
        .when(_api().isNull(), "not_a_request_line")
        # Bodies of other APIs are kept as text, so only typed ones need their exact shape.
        .when(corrupt & _api().isin(*events.TYPED_APIS), "unexpected_shape")
        .when(_is_absurd(), "unexpected_shape")
    )


def _is_absurd() -> Column:
    """Whether a time of the request is absurdly long, negative or not, or NaN."""
    times = [F.col(f"wrapped.line.r.{name}") for name in events.TIMES]
    # NaN is greater than any number.
    return (F.greatest(*times) > events.MAX_TIME_MS) | (F.least(*times) < -events.MAX_TIME_MS)
