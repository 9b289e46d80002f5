"""`producer_id_uses`: producer ids that clients got or sent, by minute."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results.weights import count
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_USES
from quotaflow.schemas.tables.requests import REQUESTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET_S = 60
_CLIENT_COLUMNS = ("cluster_id", "principal", "client_id", "client_address")
_USE = (
    *("broker_id", "client_software_name", "client_software_version"),
    *("transactional_id", "producer_id"),
)
_READ = (*_CLIENT_COLUMNS, *_USE, "api", "producer_epoch", "event_time", "weight")
# Numbers, and what looks random: hex of eight and more, as in UUIDs and hashes of pods.
_VARIABLE = r"(?i)\b[0-9a-f]{8,}\b|\d+"
_PATTERN_CHARS = 200


def result() -> Result:
    """The result as the driver takes it: a row depends on the facts of its minute alone."""
    return Result(
        table=PRODUCER_ID_USES,
        facts=REQUESTS,
        bucket_s=_BUCKET_S,
        lookback_s=0,
        is_relevant=is_use,
        prepare=lambda requests: requests.select(*_READ),
        compute=uses,
    )


def is_use() -> Column:
    """Whether a request shows a producer id, or is PRODUCE, and the broker did not refuse it."""
    shows = (F.col("producer_id") >= 0) | (F.col("api") == "PRODUCE")
    return shows & (F.coalesce(F.col("error_code"), F.lit(0)) == 0)


def uses(inputs: RuleInputs) -> "DataFrame":
    """Relevant requests to rows of the table."""
    minute = F.floor(F.unix_seconds("event_time") / _BUCKET_S) * _BUCKET_S
    in_minute = Window.partitionBy(*_CLIENT_COLUMNS, "minute")
    was_given = F.sum("allocations").over(in_minute) > 0
    return (
        inputs.facts.withColumn("minute", minute)
        .groupBy(*_CLIENT_COLUMNS, "minute", *_USE)
        .agg(
            F.max("producer_epoch").alias("producer_epoch"),
            F.min("event_time").alias("first_seen"),
            F.max("event_time").alias("last_seen"),
            count().alias("requests"),
            _count_of("INIT_PRODUCER_ID").alias("allocations"),
            _count_of("PRODUCE").alias("produce_requests"),
        )
        .withColumn("is_kept", F.col("producer_id").isNotNull() | was_given)
        .where("is_kept")
        .withColumns(
            {
                "event_time": F.timestamp_seconds("minute"),
                "event_date": F.to_date(F.timestamp_seconds("minute")),
                "client_pattern": client_pattern(F.col("client_id")),
            }
        )
        .select(PRODUCER_ID_USES.column_names)
    )


def client_pattern(client_id: Column) -> Column:
    """What client ids of one program share: producer-1 and producer-2 are both producer-*."""
    return F.regexp_replace(F.left(client_id, F.lit(_PATTERN_CHARS)), _VARIABLE, "*")


def _count_of(api: str) -> Column:
    return count(F.col("api") == api)
