"""Faults of answers to fetches (reference: `tests/oracle/rules/fetch_fault.py`)."""

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.udfs.rules import fetch_fault as rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_bounds(answers: "DataFrame") -> "DataFrame":
    """Add what was told of the replica that answered and of the leader, and who that was.

    By `told` of the partition: structs of broker_id, is_before (the minute before), is_leader,
    log_start_offset, least_end and greatest_end; by broker_id, and leader_in_snapshot.
    """
    own = F.filter("told", lambda replica: replica["broker_id"] == F.col("broker_id"))
    others = F.filter("told", lambda replica: replica["broker_id"] != F.col("broker_id"))
    of_leader = F.filter("told", lambda replica: replica["broker_id"] == F.col("leader_id"))
    led = F.array_distinct(
        F.transform(
            F.filter("told", lambda replica: replica["is_leader"]),
            lambda replica: replica["broker_id"],
        )
    )
    leader = F.when(F.size("led") == 1, F.try_element_at("led", F.lit(1))).when(
        F.coalesce(F.size("led"), F.lit(0)) <= 0, F.col("leader_in_snapshot")
    )
    return (
        answers.withColumn("led", led)
        .withColumn("leader_id", leader)
        .withColumns(
            {
                "log_start_offset": _greatest(own, "log_start_offset"),
                "end_offset": _greatest(own, "greatest_end"),
                "end_before": _end_before(own),
                "known_end": _known_end(own),
                "leader_log_start_offset": _greatest(of_leader, "log_start_offset"),
                "leader_end_offset": _greatest(of_leader, "greatest_end"),
                "leader_known_end": _known_end(of_leader),
                "end_elsewhere": _greatest(others, "greatest_end"),
            }
        )
        .drop("led")
    )


def with_fault(answers: "DataFrame") -> "DataFrame":
    """Add `fault`, null where nothing is wrong, and `is_held_by_leader`.

    By error_code, fetch_offset and high_watermark of the answer, and `with_bounds`.
    """
    offset, code = F.col("fetch_offset"), F.coalesce("error_code", F.lit(0))
    names = [F.when(code == number, name) for number, name in rule.ERRORS.items()]
    other = F.concat(F.lit("error_"), code.cast("string"))
    start, end = F.col("leader_log_start_offset"), F.col("leader_end_offset")
    is_within = offset.between(start, end)
    return answers.withColumns(
        {
            "fault": F.when(code == rule.OUT_OF_RANGE, _out_of_range())
            .when(code != 0, F.coalesce(*names, other))
            .when(offset > F.col("high_watermark"), rule.UNCOMMITTED),
            "is_held_by_leader": F.when(start.isNotNull() & end.isNotNull(), is_within),
        }
    )


def _out_of_range() -> Column:
    offset = F.col("fetch_offset")
    # A comparison with what is not known is null, and so counts for neither.
    is_before_start = (offset < F.col("log_start_offset")) | (offset <= F.col("end_before"))
    is_past_end = (offset > F.col("known_end")) | (offset > F.col("leader_known_end"))
    is_leader = F.col("broker_id") == F.col("leader_id")
    is_leader_known = F.col("leader_end_offset").isNotNull()
    return (
        F.when(is_before_start, rule.TOO_SMALL)
        .when(is_past_end & is_leader, rule.TOO_LARGE)
        .when(~F.coalesce(is_past_end & is_leader_known, F.lit(False)), rule.UNKNOWN)
        .when(offset <= F.col("end_elsewhere"), rule.UNAVAILABLE)
        .otherwise(rule.TOO_LARGE)
    )


def _greatest(replicas: Column, name: str) -> Column:
    return F.array_max(F.transform(replicas, lambda each: each[name]))


def _end_before(replicas: Column) -> Column:
    return _greatest(F.filter(replicas, lambda each: each["is_before"]), "greatest_end")


def _known_end(replicas: Column) -> Column:
    within = F.filter(replicas, lambda each: ~each["is_before"])
    least = F.array_min(F.transform(within, lambda each: each["least_end"]))
    return F.coalesce(_end_before(replicas), least)
