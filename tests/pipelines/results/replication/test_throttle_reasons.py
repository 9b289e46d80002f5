"""Why a throttle does not bite, in SQL as by the rule; and lists as altering made them."""

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines.results.as_of import HISTORY
from quotaflow.pipelines.results.replication.throttle_configs import histories
from quotaflow.pipelines.results.replication.throttle_reasons import with_state
from quotaflow.udfs.rules import replication_throttle as rule
from quotaflow.udfs.rules.throttled_replicas import OPERATIONS

from ....oracle.rules.replication_throttle import ReplicationSide, ThrottleState, state
from ....oracle.rules.throttled_replicas import altered
from .throttle_rows import LEADERS, Row, at, config, frame

SOURCES = [rule.DYNAMIC_BROKER, rule.DYNAMIC_DEFAULT, rule.STATIC, rule.UNSET, None]
SCHEMA = (
    "n INT, side STRING, is_listed BOOLEAN, rate DOUBLE, rate_source STRING, "
    "is_broker_gone BOOLEAN, is_replicating BOOLEAN, has_other_leader BOOLEAN, "
    "is_in_sync BOOLEAN, is_lagging BOOLEAN, peak_rate DOUBLE, held_back INT"
)
FIELDS = {"is_broker_gone": "is_broker_removed", "held_back": "stalled_fetches"}
"""Column -> the field of the reference, where the two have other names."""


def made_up(dice: random.Random, n: int) -> Row:
    source = dice.choice([*SOURCES, rule.DYNAMIC_BROKER, rule.DYNAMIC_BROKER])
    return {
        "n": n,
        "side": dice.choice([rule.LEADER, rule.FOLLOWER]),
        "is_listed": dice.choice([True, True, True, True, False, None]),
        "rate": 1_000.0 if source not in (rule.UNSET, None) else None,
        "rate_source": source,
        "is_broker_gone": dice.random() < 0.1,
        "is_replicating": dice.random() < 0.8,
        "has_other_leader": dice.random() < 0.5,
        "is_in_sync": dice.choice([False, False, True, None]),
        "is_lagging": dice.choice([True, True, False, None]),
        "peak_rate": dice.choice([0.0, 899.0, 900.0, 2_000.0]),
        "held_back": dice.choice([0, 3]),
    }


@pytest.mark.spark
def test_sql_says_what_the_rule_says(spark: SparkSession) -> None:
    dice = random.Random(73)
    sides = [made_up(dice, n) for n in range(4_000)]
    reasons = Counter[str | None]()
    for row in with_state(spark.createDataFrame(sides, SCHEMA)).collect():
        side = {FIELDS.get(name, name): value for name, value in sides[row["n"]].items()}
        del side["n"]
        computed = ThrottleState(row["is_effective"], row["is_biting"], row["reason"])
        assert computed == state(ReplicationSide(**side)), side
        reasons[computed.reason] += 1
    assert len(reasons) == 16
    assert min(reasons.values()) > 10


def change(n: int, second: float, operation: str, value: str | None) -> Row:
    row = {"cluster_id": f"c{n}", "event_time": at(second), "entity_type": "topic"}
    row |= {"entity_name": "orders", "config_key": LEADERS, "operation": operation}
    return row | {"config_value": value, "error_code": 0, "principal": "User:admin"}


def entries(dice: random.Random) -> str:
    return ",".join(dice.sample(["0:1", "0:2", "1:1", "10:1"], dice.randint(1, 3)))


@pytest.mark.spark
def test_lists_become_what_the_rule_makes_of_them(spark: SparkSession) -> None:
    dice = random.Random(73)
    rows, expected = list[Row](), dict[str, list[str | None]]()
    for n in range(300):
        value: str | None = None
        for second in range(dice.randint(1, 6)):
            operation = dice.choice(OPERATIONS)
            operand = None if operation == "DELETE" else entries(dice)
            if operation == "SET" and dice.random() < 0.2:
                operand = "*"
            rows.append(change(n, second, operation, operand))
            value = altered(value, operation, operand)
            expected.setdefault(f"c{n}", []).append(value)
    refused = [row | {"error_code": 40, "event_time": at(9)} for row in rows[:50]]
    changes = frame(spark, "config_alterations", [*rows, *refused])
    states_by_config = histories(changes, frame(spark, "configs", [])).collect()
    got = {
        row["cluster_id"]: [state["value"] for state in row[HISTORY]] for row in states_by_config
    }
    assert got == expected


def states(spark: SparkSession, changes: list[Row], configs: list[Row]) -> list[tuple[Any, ...]]:
    config_rows = [row | {"cluster_id": "c0"} for row in configs]
    history = histories(
        frame(spark, "config_alterations", changes), frame(spark, "configs", config_rows)
    )
    (row,) = history.where(f"config_key = '{LEADERS}'").collect()
    return [
        (state["value"], state["is_whole"], state["set_by"], state["since"].timestamp() > 0)
        for state in row[HISTORY]
    ]


@pytest.mark.spark
def test_what_the_log_missed_is_told_by_snapshots(spark: SparkSession) -> None:
    other = config(0, "topic", "orders", "retention.ms", "1")
    listed = [other, config(0, "topic", "orders", LEADERS, "0:1")]
    admin = "User:admin"
    # Set before the log started: it is valid before too, and its principal is unknown.
    assert states(spark, [], listed) == [("0:1", True, None, False)]
    # Set before the first snapshot, at the time and by the principal in the log.
    set_ = change(0, -60, "SET", "0:1")
    assert states(spark, [set_], listed) == [
        ("0:1", True, admin, True),
        ("0:1", True, admin, True),
    ]
    # A gap: a snapshot finds what the log did not tell.
    later = [*listed, config(600, "topic", "orders", LEADERS, None)]
    assert states(spark, [set_], later)[-1] == (None, True, None, True)
    # What an APPEND adds to is not known; a snapshot mends that.
    added = change(0, -60, "APPEND", "1:1")
    whole = [other, config(0, "topic", "orders", LEADERS, "0:1,1:1")]
    assert states(spark, [added], whole) == [
        ("1:1", False, admin, True),
        ("0:1,1:1", True, None, True),
    ]
