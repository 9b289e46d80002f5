"""The rule of KIP-392 against every answer real leaders gave, and when an answer says nothing."""

from collections import Counter
from pathlib import Path

import pytest

from quotaflow.demo import traffic_reads

from ..cases import cases
from ..oracle.rules.replica import (
    FOLLOWER_IN_RACK,
    LEADER_IN_RACK,
    NO_REPLICA_IN_RACK,
    NOT_ELIGIBLE_IN_RACK,
    RACK_AWARE,
)
from . import replay, replay_tables
from .drive import Run
from .replay import Answer, Cluster, Partition, Position, TimeRange, verdict

KEY = ("topic", 0)
NOW = TimeRange(1_000, 1_500)
BEFORE, MEANWHILE = TimeRange(500, 501), TimeRange(1_200, 1_201)


def answer(offset: int | None = 5, **fields: object) -> Answer:
    values = {"key": KEY, "broker_id": 1, "time_range": NOW, "fetch_offset": offset, **fields}
    return Answer(**values)  # type: ignore[arg-type]


def cluster(
    *positions: Position,
    in_sync: tuple[int, ...] = (1, 2),
    changes: tuple[tuple[TimeRange, tuple[int, ...]], ...] = (),
) -> Cluster:
    """Broker 1 leads in az-a, its follower 2 is in az-b."""
    return Cluster(
        racks={1: "az-a", 2: "az-b", 3: "az-c"},
        selectors={1: RACK_AWARE, 2: RACK_AWARE},
        partitions={
            KEY: Partition(
                leader_id=1,
                in_sync=frozenset(in_sync),
                replicas=frozenset((1, 2)),
                positions={2: list(positions)},
                changes=[(time_range, frozenset(ids)) for time_range, ids in changes],
            )
        },
    )


@cases(
    ("given", "state", "expected"),
    ("sent to its rack", answer(named=2), cluster(Position(BEFORE, 5)), FOLLOWER_IN_RACK),
    ("not sent there", answer(), cluster(Position(BEFORE, 5)), replay.DIFFERS),
    ("sent elsewhere", answer(named=3), cluster(Position(BEFORE, 5)), replay.DIFFERS),
    ("the leader is near", answer(rack="az-a"), cluster(), LEADER_IN_RACK),
    ("nothing is near", answer(rack="az-c"), cluster(), NO_REPLICA_IN_RACK),
    ("the follower is behind", answer(), cluster(Position(BEFORE, 4)), NOT_ELIGIBLE_IN_RACK),
    ("the follower did not fetch yet", answer(0), cluster(), NOT_ELIGIBLE_IN_RACK),
    (
        "the follower begins later",
        answer(),
        cluster(Position(BEFORE, 9, log_start_offset=6)),
        NOT_ELIGIBLE_IN_RACK,
    ),
    (
        "the follower came up to it meanwhile",
        answer(),
        cluster(Position(BEFORE, 4), Position(MEANWHILE, 5)),
        replay.MOMENT_UNKNOWN,
    ),
    (
        "the follower is out of sync",
        answer(),
        cluster(Position(BEFORE, 5), in_sync=(1,)),
        NOT_ELIGIBLE_IN_RACK,
    ),
    (
        "the follower was in sync again by then",
        answer(named=2),
        cluster(Position(BEFORE, 5), in_sync=(1,), changes=((BEFORE, (1, 2)),)),
        FOLLOWER_IN_RACK,
    ),
    (
        "who is in sync changed meanwhile",
        answer(named=2),
        cluster(Position(BEFORE, 5), changes=((MEANWHILE, (1, 2)),)),
        replay.IN_SYNC_UNKNOWN,
    ),
    (
        "who is in sync changed later",
        answer(named=2),
        cluster(Position(BEFORE, 5), changes=((TimeRange(9_000, 9_001), (1, 2)),)),
        replay.IN_SYNC_UNKNOWN,
    ),
    ("a follower answered", answer(broker_id=2), cluster(), replay.NAMES_NOBODY),
    ("a follower named somebody", answer(broker_id=2, named=1), cluster(), replay.DIFFERS),
    ("too old", answer(api_version=10), cluster(), replay.NAMES_NOBODY),
    ("an error", answer(error_code=1), cluster(), replay.REFUSED),
    ("a session unknown", answer(None), cluster(), replay.OFFSET_UNKNOWN),
    ("a topic no snapshot saw", answer(key=("gone", 0)), cluster(), replay.TOPIC_UNKNOWN),
)
def test_an_answer_is_held_against_the_rule(given: Answer, state: Cluster, expected: str) -> None:
    assert verdict(given, state).partition(":")[0] == expected


@pytest.mark.shows("replays the choice of a read replica")
def test_every_leader_of_a_real_cluster_answered_what_the_rule_says(filled: Path, run: Run) -> None:
    state = replay_tables.cluster(filled)
    verdicts = [
        (client_id, verdict(given, state)) for client_id, given in replay_tables.answers(filled)
    ]
    assert [text for _, text in verdicts if text.startswith(replay.DIFFERS)] == []

    tally = Counter(text for _, text in verdicts)
    compared = {LEADER_IN_RACK, FOLLOWER_IN_RACK, NOT_ELIGIBLE_IN_RACK}
    assert tally.keys() <= compared | {replay.NAMES_NOBODY, replay.MOMENT_UNKNOWN}
    assert tally[replay.MOMENT_UNKNOWN] * 100 <= tally.total()
    in_rack = {client_id for client_id, text in verdicts if text == FOLLOWER_IN_RACK}
    declared = {client.client_id for client in run.report.clients if client.rack}
    assert in_rack == declared | {traffic_reads.CLIENT}
