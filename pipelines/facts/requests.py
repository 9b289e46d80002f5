"""`requests`: one row per request that a broker completed, from kafka.request.logger."""

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quotaflow.pipelines.config import IngestSection
from quotaflow.pipelines.config.ingest import one_of
from quotaflow.pipelines.facts import lines
from quotaflow.pipelines.facts.partitions import with_partitions
from quotaflow.schemas import events
from quotaflow.schemas.tables.requests import REQUESTS

# A broker hides secrets that it knows, but prints values of other configs with names like secrets.
# Possessive quantifiers: for others Java's matcher needs stack for each character.
_HIDDEN_VALUE = (
    r'(?i)("(?:name|key)":"[^"]*(?:password|secret|jaas|token|credential)[^"]*"'
    r'(?:,"[A-Za-z]+":(?:-?\d+|true|false))*+,"value":)"(?:[^"\\]|\\.)*+"'
)
_VALUE = '"value":"'
LEFT_OUT = ("forwarded_copy", "raft", "own_shipper", "sampled")
"""Why a request line is left out on purpose."""
REMOTE = r"^.*?-(.*:\d+)-\d+(?:-\d+)?$"
"""The client's address and port of a connection id local:port-remote:port-processor-index, which
before Kafka 4.0 has no processor.
"""


def parse(records: DataFrame, ingest: IngestSection, cluster_id: str) -> DataFrame:
    """Every record as one row: the columns of `requests`, and columns to route it by.

    `reason` says why a row is unreadable, `left_out` why it is left out on purpose. Both are null
    for rows of `requests`. `line` and `value` stay for the other facts.
    """
    return (
        lines.with_line(records, ingest)
        # Each step copies rows, so no later one carries the whole text.
        .withColumns(
            {
                "cluster_id": F.lit(cluster_id),
                "event_time": lines.event_time(ingest),
                "left_out": _left_out(ingest),
                "remote": F.regexp_extract("line.r.connection", REMOTE, 1),
                "body": _body(ingest.max_body_bytes),
            }
        )
        .transform(with_partitions)
        .withColumns(_header() | _fetch() | _producer())
        .transform(_sampled, ingest.sampling)
        .withColumns(source())
    )


def _sampled(parsed: DataFrame, sampling: Mapping[str, float]) -> DataFrame:
    """Add `weight`, and leave out lines by sampling: always the same lines, even in a replay.

    All lines that were throttled or have a producer id or transactional id are kept.
    """
    weights = {api: one_of(fraction) for api, fraction in sampling.items()}
    one = F.lit(1)
    if not weights:
        return parsed.withColumn("weight", F.lit(1.0))
    producer = F.coalesce("transactional_id", F.col("producer_id").cast("string"))
    is_plain = producer.isNull() & (F.coalesce("throttle_time_ms", F.lit(0.0)) <= 0)
    of_api = F.coalesce(
        *(F.when(F.col("api") == api, F.lit(value)) for api, value in sorted(weights.items())),
        one,
    )
    weight = F.when(is_plain, of_api).otherwise(one)
    # Integers: a double cannot hold a hash of 64 bits.
    line = F.xxhash64("broker_id", "connection_id", "correlation_id")
    place = F.pmod(line, F.col("weight").cast("bigint"))
    is_left = F.col("left_out").isNull() & F.col("reason").isNull() & (place != 0)
    return parsed.withColumn("weight", weight.cast("double")).withColumn(
        "left_out", F.when(is_left, "sampled").otherwise(F.col("left_out"))
    )


def source() -> dict[str, Column]:
    """The source of a row: topic, partition, offset and timestamp of its Kafka record."""
    return {
        "source_topic": F.col("topic"),
        "source_partition": F.col("partition"),
        "source_offset": F.col("offset"),
        "record_time": F.col("timestamp"),
    }


def select_requests(parsed: DataFrame) -> DataFrame:
    """The rows of `requests`: readable, and not left out."""
    kept = F.col("reason").isNull() & F.col("left_out").isNull()
    return parsed.where(kept).select(REQUESTS.column_names)


def _left_out(ingest: IngestSection) -> Column:
    raft = F.array_contains("line.r.request.topics.topicId", events.RAFT_TOPIC_ID)
    own = F.col("line.r.requestHeader.clientId").isin(*ingest.shippers)
    return F.when(
        F.col("reason").isNull(),
        F.when(F.col("line.r.isForwarded"), "forwarded_copy")
        .when(F.col("api").isin(*events.RAFT_APIS), "raft")
        .when((F.col("api") == "FETCH") & raft, "raft")
        .when(own, "own_shipper"),
    )


def _header() -> dict[str, Column]:
    line, remote = F.col("line.r"), F.col("remote")
    port = F.substring_index(remote, ":", -1)  # an IPv6 address holds colons too
    address = F.left(remote, F.length(remote) - F.length(port) - 1)
    return {
        "broker_id": lines.broker_id(),
        "api_version": line["requestHeader"]["requestApiVersion"],
        "correlation_id": line["requestHeader"]["correlationId"],
        "client_id": line["requestHeader"]["clientId"],
        "principal": line["principal"],
        "listener": line["listener"],
        "security_protocol": line["securityProtocol"],
        "connection_id": line["connection"],
        "client_address": F.when(address != "", address),
        "client_port": port.try_cast("int"),
        "client_software_name": line["clientInformation"]["softwareName"],
        "client_software_version": line["clientInformation"]["softwareVersion"],
        "error_code": line["response"]["errorCode"],
        "total_time_ms": line["totalTimeMs"],
        "request_queue_time_ms": line["requestQueueTimeMs"],
        "local_time_ms": line["localTimeMs"],
        "remote_time_ms": line["remoteTimeMs"],
        "throttle_time_ms": line["throttleTimeMs"],
        "response_queue_time_ms": line["responseQueueTimeMs"],
        "send_time_ms": line["sendTimeMs"],
    }


def _fetch() -> dict[str, Column]:
    is_fetch = F.col("api") == "FETCH"
    request = F.col("line.r.request")
    replica = F.coalesce(request["replicaState"]["replicaId"], request["replicaId"])
    rack = request["rackId"]
    forgotten = F.expr(
        "case when size(line.r.request.forgottenTopicsData) = 0 then array() else "
        "flatten(transform(line.r.request.forgottenTopicsData, t -> transform(t.partitions, "
        "p -> struct(coalesce(t.topic, t.name) as topic, t.topicId as topic_id, p as partition))))"
        " end"
    )
    return {
        "max_bytes": F.when(is_fetch, request["maxBytes"]),
        "min_bytes": F.when(is_fetch, request["minBytes"]),
        "max_wait_ms": F.when(is_fetch, request["maxWaitMs"]),
        "isolation_level": F.when(is_fetch, request["isolationLevel"]),
        "acks": F.when(F.col("api") == "PRODUCE", request["acks"]),
        "session_id": F.when(is_fetch, request["sessionId"]),
        "session_epoch": F.when(is_fetch, request["sessionEpoch"]),
        "response_session_id": F.when(is_fetch, F.col("line.r.response.sessionId")),
        "rack_id": F.when(is_fetch & (rack != ""), rack),
        "replica_id": F.when(is_fetch & (replica >= 0), replica),
        "forgotten": F.when(is_fetch, forgotten),
    }


def _producer() -> dict[str, Column]:
    request, response = F.col("line.r.request"), F.col("line.r.response")
    # INIT_PRODUCER_ID and END_TXN v5 return the id to use from now on; other requests name theirs.
    answered = F.when(response["producerId"] >= 0, response["producerId"])
    named = F.coalesce(request["producerId"], request["v3AndBelowProducerId"])
    epoch = F.coalesce(request["producerEpoch"], request["v3AndBelowProducerEpoch"])
    return {
        "group_id": request["groupId"],
        "transactional_id": F.coalesce(
            request["transactionalId"], request["v3AndBelowTransactionalId"]
        ),
        "producer_id": F.coalesce(answered, F.when(named >= 0, named)),
        "producer_epoch": F.when(answered.isNotNull(), response["producerEpoch"]).otherwise(
            F.when(named >= 0, epoch)
        ),
    }


def _body(max_bytes: int) -> Column:
    def whole(raw: Column) -> Column:
        response = F.coalesce(raw["response"], F.lit("null"))
        return F.concat(
            F.lit('{"request":'), raw["request"], F.lit(',"response":'), response, F.lit("}")
        )

    raw = F.from_json(lines.envelope(F.col("text")), events.RAW_BODIES)["r"]
    body = _once(_once(raw, whole), lambda body: _capped(body, max_bytes))
    return F.when(F.col("api").isin(*events.BODY_APIS), body)


def _once(value: Column, use: Callable[[Column], Column]) -> Column:
    """The result of `use`; the value is computed once however often `use` mentions it.

    A column for it would be in every row. Spark does not compile this, so it is for few rows.
    """
    return F.get(F.transform(F.array(value), use), F.lit(0))


def _capped(body: Column, max_bytes: int) -> Column:
    hidden = F.regexp_replace(body, _HIDDEN_VALUE, r'$1"[hidden]"')
    # Few bodies hold configs, and the pattern costs as much as parsing the line.
    scrubbed = F.when(body.contains(_VALUE), hidden).otherwise(body)
    omitted = F.concat(F.lit('{"omitted_bytes":'), F.octet_length(body).cast("string"), F.lit("}"))
    return F.when(F.octet_length(body) <= max_bytes, scrubbed).otherwise(omitted)
