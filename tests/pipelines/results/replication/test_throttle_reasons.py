"""Why a throttle does not bite, and lists after alterations: SQL beside the reference rules."""

import random
from collections import Counter
from typing import Any

import pyarrow as pa

from ....oracle.rules import replication_throttle as rule
from ....oracle.rules.replication_throttle import ReplicationSide, ThrottleState, state
from ....oracle.rules.throttled_replicas import OPERATIONS, altered, parse
from ....rows import Row, at
from .shared_views import rows_of_text
from .throttle_rows import LEADERS, TOPIC, config, of_cluster

SOURCES = [rule.DYNAMIC_BROKER, rule.DYNAMIC_DEFAULT, rule.STATIC, rule.UNSET, None]
BOOLEANS = (
    "is_listed",
    "is_broker_removed",
    "is_replicating",
    "has_other_leader",
    "is_in_sync",
    "is_lagging",
)
SIDES = pa.schema(
    [
        ("n", pa.int64()),
        ("side", pa.string()),
        ("rate", pa.float64()),
        ("rate_source", pa.string()),
        ("peak_rate", pa.float64()),
        ("stalled_fetches", pa.int64()),
        *((name, pa.bool_()) for name in BOOLEANS),
    ]
)
STATES = pa.schema(
    [
        ("n", pa.int64()),
        ("is_effective", pa.bool_()),
        ("is_biting", pa.bool_()),
        ("reason", pa.string()),
    ]
)
REASON = """
    SELECT n, throttle_is_effective(reason) AS is_effective,
        throttle_is_biting(reason) AS is_biting, reason
    FROM (
        SELECT n, throttle_reason(side, is_listed, rate_source, is_broker_removed, is_replicating,
            has_other_leader, is_in_sync, is_lagging, peak_rate, rate, stalled_fetches) AS reason
        FROM sides
    )
"""


def random_side(dice: random.Random) -> Row:
    source = dice.choice([*SOURCES, rule.DYNAMIC_BROKER, rule.DYNAMIC_BROKER])
    return {
        "side": dice.choice([rule.LEADER, rule.FOLLOWER]),
        "is_listed": dice.choice([True, True, True, True, False, None]),
        "rate": 1_000.0 if source not in (rule.UNSET, None) else None,
        "rate_source": source,
        "is_broker_removed": dice.random() < 0.1,
        "is_replicating": dice.random() < 0.8,
        "has_other_leader": dice.random() < 0.5,
        "is_in_sync": dice.choice([False, False, True, None]),
        "is_lagging": dice.choice([True, True, False, None]),
        "peak_rate": dice.choice([0.0, 899.0, 900.0, 2_000.0]),
        "stalled_fetches": dice.choice([0, 3]),
    }


def test_reasons_are_those_of_the_reference() -> None:
    dice = random.Random(73)
    sides = [random_side(dice) for _ in range(4_000)]
    table = pa.Table.from_pylist([{"n": n} | side for n, side in enumerate(sides)], schema=SIDES)
    reasons = Counter[str | None]()
    for row in rows_of_text(REASON, STATES, sides=table):
        side = sides[row["n"]]
        computed = ThrottleState(row["is_effective"], row["is_biting"], row["reason"])
        assert computed == state(ReplicationSide(**side)), side
        reasons[computed.reason] += 1
    assert len(reasons) == 16
    assert min(reasons.values()) > 10


def change(second: float, operation: str, operand: str | None) -> Row:
    row = {"event_time": at(second), "entity_type": TOPIC, "entity_name": "orders"}
    row |= {"config_key": LEADERS, "operation": operation, "config_value": operand}
    return row | {"error_code": 0, "principal": "User:admin"}


VALUES = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("n", pa.int64()),
        ("value", pa.string()),
        ("set_by", pa.string()),
        ("since", pa.timestamp("us", "UTC")),
    ]
)


def values(changes: list[Row], configs: list[Row]) -> list[Row]:
    """All values of throttles' configs, in order."""
    rows = rows_of_text(
        "FROM throttle_configs", VALUES, config_alterations=changes, configs=configs
    )
    return sorted(rows, key=lambda row: (row["cluster_id"], row["n"]))


def entries(dice: random.Random) -> str:
    return ",".join(dice.sample(["0:1", "0:2", "1:1", "10:1"], dice.randint(1, 3)))


def test_lists_after_alterations_are_those_of_the_reference() -> None:
    dice = random.Random(73)
    rows, expected = list[Row](), list[tuple[str, str | None]]()
    for n in range(300):
        value: str | None = None
        for second in range(dice.randint(1, 6)):
            operation = dice.choice(OPERATIONS)
            operand = None if operation == "DELETE" else entries(dice)
            if operation == "SET" and dice.random() < 0.2:
                operand = "*"
            rows += of_cluster([change(second, operation, operand)], f"c{n:03}")
            value = altered(value, operation, operand)
            expected.append((f"c{n:03}", value))
    refused = [row | {"error_code": 40, "event_time": at(9)} for row in rows[:50]]
    got = [(row["cluster_id"], row["value"]) for row in values([*rows, *refused], [])]
    assert got == expected


TEXTS = ["0:1", "10:2", " 0:1", "0-1", "*", "0:1:2", "a:1", "", "0:", "0:2147483648", "٣:1", "+1:1"]
NAMED = pa.schema([("n", pa.int64()), ("entries", pa.list_(pa.string()))])


def test_entries_of_lists_are_those_of_the_reference() -> None:
    dice = random.Random(73)
    lists = [dice.choices(TEXTS, k=dice.randrange(5)) for _ in range(300)]
    table = pa.table({"n": range(300), "elements": pa.array(lists, pa.list_(pa.string()))})
    sql = "SELECT n, throttled_entries(elements) AS entries FROM lists"
    for row in rows_of_text(sql, NAMED, lists=table):
        got = {tuple(map(int, entry.split(":"))) for entry in row["entries"]}
        assert got == parse("," + ",".join(lists[row["n"]])).entries


def test_alter_configs_deletes_all_and_then_sets() -> None:
    set_ = change(1, "SET", "0:1")
    all_deleted = change(1, "DELETE", None) | {"config_key": None}
    states = values(of_cluster([set_, all_deleted]), [])
    # The follower's list is deleted too.
    assert sorted(row["value"] or "" for row in states) == ["", "", "0:1"]
    assert max(states, key=lambda row: row["n"])["value"] == "0:1"


def list_values(changes: list[Row], configs: list[Row]) -> list[tuple[Any, ...]]:
    rows = values(of_cluster(changes), of_cluster(configs))
    return [(row["value"], row["set_by"], row["since"].timestamp() > 0) for row in rows]


def test_snapshots_have_what_the_log_missed() -> None:
    other = config(0, TOPIC, "orders", "retention.ms", "1")
    listed = [other, config(0, TOPIC, "orders", LEADERS, "0:1")]
    admin = "User:admin"
    # Set before the log started: it is valid before too, and its principal is unknown.
    assert list_values([], listed) == [("0:1", None, False)]
    # Set before the first snapshot, at the time and by the principal in the log.
    set_ = change(-60, "SET", "0:1")
    assert list_values([set_], listed) == [("0:1", admin, True), ("0:1", admin, True)]
    # A gap: a snapshot finds a change that is not in the log.
    later = [*listed, config(600, TOPIC, "orders", LEADERS, None)]
    assert list_values([set_], later)[-1] == (None, None, True)
    # An APPEND to a list that is not known, until a snapshot finds the whole list.
    added = change(-60, "APPEND", "1:1")
    whole = [other, config(0, TOPIC, "orders", LEADERS, "0:1,1:1")]
    assert list_values([added], whole) == [("1:1", admin, True), ("0:1,1:1", None, True)]
