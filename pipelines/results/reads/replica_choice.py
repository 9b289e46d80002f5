"""The replica a consumer should read from (reference: `tests/oracle/rules/replica.py`).

Snapshots have the in-sync replicas, but not the ends of their logs. So every in-sync replica counts
as having the offset that is read, and of several in a rack the greatest broker id is taken.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.udfs.rules import replica

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OFFSETS_KNOWN, OFFSETS_UNKNOWN = "known", "offsets_unknown"
REPLICAS_UNKNOWN, LEADER_UNKNOWN = "replicas_unknown", "leader_unknown"
SELECTOR_UNSEEN, RACKS_UNKNOWN = "selector_unseen", "racks_unknown"


def with_leader(read: "DataFrame") -> "DataFrame":
    """Add leader_id, leader_rack and is_leader_offline, and whether all racks are known.

    By the partition's `replicas`, null where not known: structs of broker_id, rack, is_rack_known,
    is_leader, is_in_sync and is_offline.
    """
    leader = F.try_element_at(
        F.filter("replicas", lambda replica_row: replica_row["is_leader"]), F.lit(1)
    )
    return read.withColumn("leader", leader).withColumns(
        {
            "leader_id": F.col("leader.broker_id"),
            "leader_rack": F.col("leader.rack"),
            "is_leader_offline": F.col("leader.is_offline"),
            "are_racks_known": F.forall(
                "replicas", lambda replica_row: replica_row["is_rack_known"]
            ),
        }
    )


def with_choices(read: "DataFrame") -> "DataFrame":
    """Add what the leader should name, what is nearest, why, and `eligibility`.

    `is_selector_seen` and `selector` are the leader's; `declared_rack` and `client_rack`: what the
    consumer told, and what is known of it.
    """
    as_is = _reason(F.col("is_selector_seen"), F.col("selector"), F.col("declared_rack"))
    nearest = _reason(F.lit(True), F.lit(replica.RACK_AWARE), F.col("client_rack"))
    return read.withColumns({"expected_reason": as_is, "recommended_reason": nearest}).withColumns(
        {
            "expected_replica": _replica("expected_reason", "declared_rack"),
            "recommended_replica": _replica("recommended_reason", "client_rack"),
            "eligible_replicas": F.when(
                F.col("recommended_reason") == replica.FOLLOWER_IN_RACK,
                F.array_sort(_eligible_ids("client_rack")),
            ),
            "eligibility": _eligibility(),
        }
    )


def _in_rack(rack: Column) -> Column:
    """The followers in a rack."""
    return F.filter(
        "replicas", lambda replica_row: ~replica_row["is_leader"] & (replica_row["rack"] == rack)
    )


def _eligible(rack: Column) -> Column:
    return F.filter(
        _in_rack(rack), lambda replica_row: replica_row["is_in_sync"] & ~replica_row["is_offline"]
    )


def _reason(is_seen: Column, selector: Column, rack: Column) -> Column:
    is_leader_there = (F.col("leader_rack") == rack) & ~F.col("is_leader_offline")
    return F.when(
        F.col("leader_id").isNotNull() & is_seen,
        F.when(F.coalesce(selector, F.lit("")) == "", replica.NO_SELECTOR)
        .when(selector != replica.RACK_AWARE, replica.SELECTOR_UNKNOWN)
        .when(F.coalesce(rack, F.lit("")) == "", replica.NO_CLIENT_RACK)
        .when(~F.col("are_racks_known"), F.lit(None))
        .when(is_leader_there, replica.LEADER_IN_RACK)
        .when(F.size(_eligible(rack)) > 0, replica.FOLLOWER_IN_RACK)
        .when(F.size(_in_rack(rack)) > 0, replica.NOT_ELIGIBLE_IN_RACK)
        .otherwise(replica.NO_REPLICA_IN_RACK),
    )


def _eligible_ids(rack: str) -> Column:
    return F.transform(_eligible(F.col(rack)), lambda replica_row: replica_row["broker_id"])


def _replica(reason: str, rack: str) -> Column:
    named = F.array_max(_eligible_ids(rack))
    return F.when(F.col(reason) == replica.FOLLOWER_IN_RACK, named).when(
        F.col(reason) != replica.SELECTOR_UNKNOWN, F.col("leader_id")
    )


def _eligibility() -> Column:
    is_between = (F.col("recommended_reason") == replica.FOLLOWER_IN_RACK) & (
        F.size(_eligible(F.col("client_rack"))) > 1
    )
    return (
        F.when(F.col("replicas").isNull(), REPLICAS_UNKNOWN)
        .when(F.col("leader_id").isNull(), LEADER_UNKNOWN)
        .when(~F.col("is_selector_seen"), SELECTOR_UNSEEN)
        .when(F.col("recommended_reason").isNull(), RACKS_UNKNOWN)
        .when(is_between, OFFSETS_UNKNOWN)
        .otherwise(OFFSETS_KNOWN)
    )
