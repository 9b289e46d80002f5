"""`telemetry_pushes`: one row per PushTelemetry (KIP-714), by any of the three routes."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quotaflow.pipelines.config import IngestSection
from quotaflow.pipelines.facts.requests import source
from quotaflow.schemas.table import sql_columns, sql_type
from quotaflow.schemas.tables.telemetry import TELEMETRY_PUSHES
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import COMPRESSION_NAMES, Limits

_STATUS = sql_columns(decode.STATUS)
_REJECTED_REASON, _REJECTED_DETAIL = "rejected_reason", "rejected_detail"
_DETAIL_CHARS = 200


def from_requests(parsed: DataFrame) -> DataFrame:
    """PUSH_TELEMETRY lines of the parsed request log, including pushes that a broker rejected."""
    request = F.col("line.r.request")
    payload = F.try_to_binary(request["metrics"], F.lit("base64"))
    pushes = parsed.where(
        (F.col("api") == "PUSH_TELEMETRY") & F.col("reason").isNull() & F.col("left_out").isNull()
    )
    return pushes.withColumns(
        {
            "client_instance_id": request["clientInstanceId"],
            "accepted": F.coalesce(F.col("error_code"), F.lit(-1)) == 0,
            "terminating": request["terminating"],
            "compression": compression(request["compressionType"]),
            "subscription_id": request["subscriptionId"],
            "push_interval_ms": F.lit(None).cast("int"),
            "payload": payload,
            _REJECTED_REASON: F.when(
                payload.isNull() & request["metrics"].isNotNull(), "bad_base64"
            ),
            _REJECTED_DETAIL: F.substring(request["metrics"], 1, _DETAIL_CHARS),
            "wire_bytes": F.length(payload).cast("bigint"),
            "route": F.lit("request_log"),
        }
    ).transform(_columns)


def from_receiver(records: DataFrame, ingest: IngestSection, cluster_id: str) -> DataFrame:
    """Records of broker/TelemetryReceiver: payload decompressed, context in the headers."""
    return (
        _from_records(records, ingest, cluster_id, "receiver")
        .withColumns(
            {
                "broker_id": _header("broker_id").try_cast("int"),
                "client_instance_id": _header("client_instance_id"),
                "principal": _header("principal"),
                "client_id": _header("client_id"),
                "client_software_name": _header("client_software_name"),
                "client_software_version": _header("client_software_version"),
                "client_address": _header("client_source_address"),
                "client_port": _header("client_source_port").try_cast("int"),
                "listener": _header("listener"),
                "security_protocol": _header("security_protocol"),
                "connection_id": _header("connection_id"),
                "terminating": _header("terminating").try_cast("boolean"),
                "push_interval_ms": _header("push_interval_ms").try_cast("int"),
            }
        )
        .transform(_columns)
    )


def from_collector(records: DataFrame, ingest: IngestSection, cluster_id: str) -> DataFrame:
    """Records of an OpenTelemetry Collector's Kafka exporter (otlp_proto), each with a batch.

    The client of a point is named in its resource (udfs/otlp/context), not in the record.
    """
    return _from_records(records, ingest, cluster_id, "otlp").transform(_columns)


def _from_records(
    records: DataFrame, ingest: IngestSection, cluster_id: str, route: str
) -> DataFrame:
    """The columns of a Kafka record whose value is a decompressed payload, from any writer."""
    fits = F.length("value") <= ingest.max_line_bytes
    of_route = {
        "cluster_id": F.lit(cluster_id),
        "event_time": F.col("timestamp"),
        "accepted": F.lit(True),
        "compression": F.lit("none"),
        "payload": F.when(fits, F.col("value")),
        _REJECTED_REASON: F.when(~fits, "payload_too_large"),
        _REJECTED_DETAIL: F.lit(f"at most {ingest.max_line_bytes} bytes"),
        "wire_bytes": F.length("value").cast("bigint"),
        "route": F.lit(route),
    } | source()
    unknown = {
        column.name: F.lit(None).cast(sql_type(column.type))
        for column in TELEMETRY_PUSHES.columns
        if column.name not in of_route
    }
    return records.withColumns(unknown | of_route)


def compression(id_: Column) -> Column:
    """Kafka's compression id as a name; an id that Kafka does not define shows as `id N`."""
    names = F.array(*[F.lit(name) for name in COMPRESSION_NAMES])
    return F.coalesce(F.get(names, id_), F.concat(F.lit("id "), id_.cast("string")))


def inspected(pushes: DataFrame, limits: Limits) -> DataFrame:
    """Pushes with size and hash of each opened payload, or why it is unreadable."""
    schema = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in pushes.schema)
    opened = pushes.mapInArrow(decode.inspect_pushes(limits), f"{schema}, {_STATUS}")
    # The decoder takes a rejected payload, which is null, for an empty one.
    is_rejected = F.col(_REJECTED_REASON).isNotNull()
    status = {
        "unreadable_reason": F.coalesce(_REJECTED_REASON, "unreadable_reason"),
        "unreadable_detail": F.when(is_rejected, F.col(_REJECTED_DETAIL)).otherwise(
            F.col("unreadable_detail")
        ),
        "decoded_bytes": F.when(~is_rejected, F.col("decoded_bytes")),
        "payload_sha256": F.when(~is_rejected, F.col("payload_sha256")),
        "unreadable_metrics": F.when(~is_rejected, F.col("unreadable_metrics")),
    }
    return opened.withColumns(status).drop(_REJECTED_REASON, _REJECTED_DETAIL)


def _columns(pushes: DataFrame) -> DataFrame:
    filled_later = set(decode.STATUS.names)
    names = [name for name in TELEMETRY_PUSHES.column_names if name not in filled_later]
    return pushes.select(*names, _REJECTED_REASON, _REJECTED_DETAIL)


def _header(name: str) -> Column:
    value = F.expr(f"get(filter(headers, h -> h.key = '{name}'), 0).value").cast("string")
    return F.when(value != "", value)
