"""The replica that a consumer is sent to, against the broker's own ReplicaManager."""

import json
import random
import subprocess
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from .kafka_programs import compiled
from .rules.replica import (
    FOLLOWER_IN_RACK,
    LEADER_IN_RACK,
    NO_CLIENT_RACK,
    NO_REPLICA_IN_RACK,
    NOT_ELIGIBLE_IN_RACK,
    RACK_AWARE,
    Replica,
    preferred,
)

# Few racks and offsets, so that replicas tie; an empty rack, and one of two words beyond ASCII.
RACKS = ["az-a", "az-b", "Zürich 2", "", None]
BROKER_IDS = [0, 1, 2, 9, 10, 127, 128, 1_000, 2**31 - 1]


def partition(dice: random.Random) -> dict[str, Any]:
    """A partition of one to six replicas, the first of which leads, and its reader."""
    replicas = [
        Replica(
            broker_id,
            rack=dice.choice(RACKS),
            log_start_offset=dice.choice([0, 5, 10]),
            log_end_offset=dice.choice([5, 10, 11, 2**62]),
            caught_up_ms_ago=dice.choice([0, 1, 30_000]),
            is_in_sync=dice.random() < 0.8,
            is_online=dice.random() < 0.9,
        )
        for broker_id in dice.sample(BROKER_IDS, dice.randint(1, 6))
    ]
    return {
        "client_rack": dice.choice([*RACKS, "nowhere"]),
        "fetch_offset": dice.choice([4, 5, 6, 10, 11, 12]),
        "replicas": replicas,
    }


@pytest.mark.parametrize("cases", [4_000, pytest.param(20_000, marks=pytest.mark.faults)])
def test_a_consumer_is_sent_where_the_broker_sends_it(tmp_path: Path, cases: int) -> None:
    dice = random.Random(392)
    partitions = [partition(dice) for _ in range(cases)]
    answered = subprocess.run(
        compiled("ReplicaChoice", tmp_path),
        input=json.dumps(partitions, default=asdict) + "\n",
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    reasons = Counter[str]()
    for case, named in zip(partitions, json.loads(answered.stdout), strict=True):
        leader, *followers = case["replicas"]
        where = (case["client_rack"], leader, followers, case["fetch_offset"])
        choice = preferred(RACK_AWARE, *where)
        assert choice.broker_id == (leader.broker_id if named is None else named)
        reasons[choice.reason] += 1
    every = {FOLLOWER_IN_RACK, LEADER_IN_RACK, NO_CLIENT_RACK}
    assert reasons.keys() == every | {NO_REPLICA_IN_RACK, NOT_ELIGIBLE_IN_RACK}
    assert min(reasons.values()) > cases / 50
