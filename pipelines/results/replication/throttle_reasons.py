"""Whether a replication throttle bites (`tests/oracle/rules/replication_throttle.py`)."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.udfs.rules import replication_throttle as rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_state(replications: "DataFrame") -> "DataFrame":
    """Add is_effective, is_biting and reason.

    By side, is_listed, rate, rate_source, is_broker_gone, is_replicating, has_other_leader,
    is_in_sync, is_lagging, peak_rate and held_back, as the rule's Replication has them.
    """
    rated = F.coalesce("rate", F.lit(0.0))
    unless_unknown = F.when(~F.col("why_not").endswith("_unknown"), F.lit(False))
    is_under = F.col("peak_rate") < rule.NEAR * rated
    is_free = F.col("held_back") == 0
    is_open = F.col("why_not").isNull()
    return (
        replications.withColumn("why_not", F.coalesce(_not_set(), _not_there(), _not_needed()))
        .withColumns(
            {
                "is_effective": F.when(is_open, F.lit(True)).otherwise(unless_unknown),
                "is_biting": F.when(is_open, ~is_under & ~is_free).otherwise(unless_unknown),
                "reason": F.coalesce(
                    F.col("why_not"),
                    F.when(is_under, rule.UNDER_RATE).when(is_free, rule.NO_STALLED_FETCHES),
                ),
            }
        )
        .drop("why_not")
    )


def _not_set() -> Column:
    source, is_listed = F.col("rate_source"), F.col("is_listed")
    is_rated = F.coalesce(source.isin(rule.DYNAMIC_BROKER, rule.DYNAMIC_DEFAULT), F.lit(False))
    return (
        F.when(is_listed.isNull(), rule.LIST_UNKNOWN)
        .when(~is_listed & is_rated, rule.RATE_WITHOUT_LIST)
        .when(~is_listed, rule.NO_THROTTLE)
        .when(source.isNull(), rule.RATE_UNKNOWN)
        .when(source == rule.STATIC, rule.STATIC_RATE_IGNORED)
        .when(~is_rated, rule.LIST_WITHOUT_RATE)
    )


def _not_there() -> Column:
    is_away = F.col("has_other_leader") & (F.col("side") == rule.LEADER)
    return (
        F.when(F.col("is_broker_gone"), rule.BROKER_REMOVED)
        .when(F.col("is_replicating"), None)
        .when(is_away, rule.NOT_LEADER)
        .otherwise(rule.NOT_REPLICATING)
    )


def _not_needed() -> Column:
    of_leader = F.when(F.col("is_in_sync").isNull(), rule.ISR_UNKNOWN).when(
        F.col("is_in_sync"), rule.IN_ISR
    )
    of_follower = F.when(F.col("is_lagging").isNull(), rule.LAG_UNKNOWN).when(
        ~F.col("is_lagging"), rule.FOLLOWER_CAUGHT_UP
    )
    return F.when(F.col("side") == rule.LEADER, of_leader).otherwise(of_follower)
