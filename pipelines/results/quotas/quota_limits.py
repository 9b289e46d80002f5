"""The effective quota of each client in each window (`tests/oracle/rules/quota.py`)."""

from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.results.as_of import histories, in_force, is_changed
from quotaflow.udfs.rules.quota import ANY, DEFAULT, LEVELS, NAMED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VALID_FROM = "coalesce(set_at, event_time)"
CALLBACK = "client.quota.callback.class"
_ENTITY = ["cluster_id", "quota_type", "user", "is_default_user", "of", "is_default_client_id"]
_USER_LEVELS, _CLIENT_ID_LEVELS = (
    [level for level, parts in enumerate(LEVELS, 1) if parts[part] != ANY] for part in (0, 1)
)
_START, _END = "event_time", "window_end"


def with_limits(windows: "DataFrame", client_quotas: "DataFrame") -> "DataFrame":
    """Add to each client's window `quota_level`, `quota`, `is_quota_changed`, and the bucket.

    The limit is that which stands when the window ends. A client without one is a bucket of its
    own.
    """
    # One column per level: the first that is not null is the limit, and which that is its level.
    # Each is looked up by hash: a client is never held against every quota there is.
    at_level = [f"quota_{level}" for level, _ in enumerate(LEVELS, 1)]
    quotas = [F.max(F.when(F.col("level") == n, in_force(_END))) for n, _ in enumerate(LEVELS, 1)]
    changed = F.min(F.when(is_changed(_START, _END), F.col("level"))).alias("changed")
    level, none = F.col("quota_level"), F.lit(len(LEVELS))
    return (
        _explode_levels(windows)
        .join(_quotas(client_quotas), _ENTITY, "left")
        .groupBy(*windows.columns)
        .agg(*(f.alias(name) for f, name in zip(quotas, at_level, strict=True)), changed)
        .withColumn("quota_level", F.coalesce(*map(_level_of, at_level, count(1))))
        .withColumns(
            {
                "quota": F.coalesce(*at_level),
                "is_quota_changed": F.coalesce(
                    F.col("changed") <= F.coalesce(level, none), F.lit(False)
                ),
                "quota_bucket_user": F.when(level.isNull() | level.isin(_USER_LEVELS), _user()),
                "quota_bucket_client_id": F.when(
                    level.isNull() | level.isin(_CLIENT_ID_LEVELS), F.col("client_id")
                ),
            }
        )
        .drop("changed", *at_level)
    )


def with_enforcement(windows: "DataFrame", configs: "DataFrame") -> "DataFrame":
    """Add who decides on quotas at the broker: Kafka's own rules, or a callback class."""
    of_brokers = configs.where("entity_type = 'broker'").withColumn(
        "broker_id", F.expr("try_cast(entity_name AS INT)")
    )
    is_callback = F.col("config_key") == CALLBACK
    is_set = is_callback & ~F.col("is_removed") & (F.coalesce("config_value", F.lit("")) != "")
    # Any config of a broker tells that a snapshot saw it, and the callback's tells what it is.
    seen = of_brokers.groupBy("cluster_id", "broker_id", "event_time").agg(
        F.max(F.when(is_callback, is_set)).alias("is_set")
    )
    first_seen = seen.groupBy("cluster_id", "broker_id").agg(
        F.min("event_time").alias("known_since")
    )
    callbacks = histories(
        seen.where("is_set IS NOT NULL"), ["cluster_id", "broker_id"], F.col("is_set")
    )
    enforcement = (
        F.when(in_force(_END), "callback").when(F.col("known_since") < F.col(_END), "stock")
    ).otherwise("unknown")
    return (
        windows.join(F.broadcast(first_seen), ["cluster_id", "broker_id"], "left")
        .join(callbacks, ["cluster_id", "broker_id"], "left")
        .withColumn("enforcement", enforcement)
        .drop("history", "known_since")
    )


def _level_of(limit: str, level: int) -> Column:
    return F.when(F.col(limit).isNotNull(), F.lit(level))


def _user() -> Column:
    """The name quotas know a principal by: what follows its type."""
    return F.expr("substring(principal, instr(principal, ':') + 1)")


def _explode_levels(windows: "DataFrame") -> "DataFrame":
    """A row for each level at which a client may have a quota, and the entity it would be of.

    To Kafka an empty client id is none.
    """
    levels = [
        F.struct(F.lit(n).alias("level"), F.lit(user).alias("of_user"), F.lit(id_).alias("of_id"))
        for n, (user, id_) in enumerate(LEVELS, 1)
    ]
    nobody = F.lit("")
    return (
        windows.select("*", F.inline(F.array(*levels)))
        .where((F.col("client_id") != "") | (F.col("of_id") == ANY))
        .withColumns(
            {
                "user": F.when(F.col("of_user") == NAMED, _user()).otherwise(nobody),
                "is_default_user": F.col("of_user") == DEFAULT,
                "of": F.when(F.col("of_id") == NAMED, F.col("client_id")).otherwise(nobody),
                "is_default_client_id": F.col("of_id") == DEFAULT,
            }
        )
    )


def _quotas(client_quotas: "DataFrame") -> "DataFrame":
    named = client_quotas.where("ip IS NULL AND NOT is_default_ip").withColumns(
        {
            "quota_type": F.col("config_key"),
            "user": F.coalesce("user", F.lit("")),
            "of": F.coalesce("client_id", F.lit("")),
            "valid_from": F.expr(VALID_FROM),
        }
    )
    stands = F.when(~F.col("is_removed"), F.col("quota"))
    return histories(named, _ENTITY, stands, "valid_from")
