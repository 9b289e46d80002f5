"""The preferred replica in SQL against the rule in Python, and racks of addresses: random rows."""

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quotaflow.pipelines.results.reads.client_racks import inferred_rack
from quotaflow.pipelines.results.reads.replica_choice import with_choices, with_leader
from quotaflow.udfs.rules import client_rack, replica
from quotaflow.udfs.rules.replica import RACK_AWARE

from ....oracle.rules.replica import Preferred, Replica, preferred

RACKS = ["az-a", "az-b", "Zürich 2", None]
SELECTORS = [RACK_AWARE, RACK_AWARE, RACK_AWARE, None, "", "com.example.Nearest"]
SCHEMA = (
    "n INT, replicas ARRAY<STRUCT<broker_id: INT, rack: STRING, is_rack_known: BOOLEAN, "
    "is_leader: BOOLEAN, is_in_sync: BOOLEAN, is_offline: BOOLEAN>>, is_selector_seen BOOLEAN, "
    "selector STRING, declared_rack STRING, client_rack STRING, client_address STRING"
)
NETWORKS = {"0.0.0.0/1": "az-a", "10.0.0.0/8": "az-b", "::/0": "az-c", "2001:db8::/32": "az-a"}
UNKNOWN = Preferred(None, "")


def made_up(dice: random.Random, n: int) -> dict[str, Any]:
    ids = dice.sample([0, 1, 2, 9, 10, 1_000], dice.randint(1, 6))
    leader = dice.choice([*ids, *ids, None])
    replicas = [
        {"broker_id": id_, "rack": dice.choice(RACKS), "is_rack_known": dice.random() < 0.98}
        | {"is_leader": id_ == leader, "is_in_sync": dice.random() < 0.7}
        | {"is_offline": dice.random() < 0.1}
        for id_ in ids
    ]
    declared = dice.choice([*RACKS, "nowhere"])
    groups = dice.choice([["2001", "db8"], ["fe80", "0"]])
    address = dice.choice(
        [
            ".".join(str(dice.randrange(256)) for _ in range(4)),
            f"10.{dice.randrange(256)}.0.1",
            ":".join([*groups, *(f"{dice.randrange(65_536):x}" for _ in range(6))]) + "%eth0",
        ]
    )
    return {
        "n": n,
        "replicas": None if dice.random() < 0.05 else replicas,
        "is_selector_seen": dice.random() < 0.9,
        "selector": dice.choice(SELECTORS),
        "declared_rack": declared,
        "client_rack": declared or dice.choice(RACKS),
        "client_address": address,
    }


def ruled(row: dict[str, Any], selector: str | None, rack: str | None) -> Preferred:
    """What the rule says where all it asks is known; every log is taken to be as long."""
    replicas = [
        Replica(
            *(each["broker_id"], each["rack"], 0, 0),
            is_in_sync=each["is_in_sync"],
            is_online=not each["is_offline"],
        )
        for each in row["replicas"]
    ]
    leader = next(n for n, each in enumerate(row["replicas"]) if each["is_leader"])
    return preferred(selector, rack, replicas.pop(leader), replicas, 0)


def expected(row: dict[str, Any], *, as_is: bool) -> Preferred:
    selector = row["selector"] if as_is else RACK_AWARE
    rack = row["declared_rack"] if as_is else row["client_rack"]
    led = row["replicas"] and any(each["is_leader"] for each in row["replicas"])
    if not led or (as_is and not row["is_selector_seen"]):
        return UNKNOWN
    by_rack = selector == RACK_AWARE and rack is not None
    if by_rack and not all(each["is_rack_known"] for each in row["replicas"]):
        return UNKNOWN
    return ruled(row, selector, rack)


def cause(row: dict[str, Any]) -> str:
    if row["replicas"] is None:
        return "replicas_unknown"
    if not any(each["is_leader"] for each in row["replicas"]):
        return "leader_unknown"
    if not row["is_selector_seen"]:
        return "selector_unseen"
    nearest = expected(row, as_is=False)
    if nearest is UNKNOWN:
        return "racks_unknown"
    others = [
        each
        for each in row["replicas"]
        if each["rack"] == row["client_rack"] and each["is_in_sync"] and not each["is_offline"]
    ]
    is_open = nearest.reason == replica.FOLLOWER_IN_RACK and len(others) > 1
    return "offsets_unknown" if is_open else "known"


@pytest.mark.spark
def test_sql_says_what_the_rule_says(spark: SparkSession) -> None:
    dice = random.Random(392)
    rows = [made_up(dice, n) for n in range(5_000)]
    frame = spark.createDataFrame(rows, SCHEMA)
    by_address = inferred_rack(F.col("client_address"), NETWORKS).alias("by_address")
    choices = frame.transform(with_leader).transform(with_choices).select("*", by_address).collect()
    reasons = Counter[str]()
    for got in choices:
        row = rows[got["n"]]
        for name, as_is in (("expected", True), ("recommended", False)):
            from_sql = Preferred(got[f"{name}_replica"], got[f"{name}_reason"] or "")
            assert from_sql == expected(row, as_is=as_is), row
            reasons[from_sql.reason] += 1
        assert got["eligibility"] == cause(row)
        reasons[got["eligibility"]] += 1
        assert got["by_address"] == client_rack.rack(row["client_address"], NETWORKS)
    assert len(choices) == len(rows)
    assert len(reasons) == 7 + 1 + 6
    assert min(reasons.values()) > 50
