"""What is wrong with an answer to a fetch: no guess in any made-up history."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from kafka import errors

from quotaflow.udfs.rules.fetch_fault import ERRORS

from . import fetch_fault as rule
from .fetch_fault import FetchAnswer, ReplicaOffsets, fault

LEADER, FOLLOWER, OTHER = 1, 2, 3


RENAMED_IN_KAFKA = {
    "unknown": "unknown_server_error",
    "not_leader_for_partition": "not_leader_or_follower",
}


def test_errors_have_kafka_s_names() -> None:
    for code, name in ERRORS.items():
        kafka_name = vars(errors.for_code(code))["message"].lower()
        assert RENAMED_IN_KAFKA.get(kafka_name, kafka_name) == name
        assert fault(FetchAnswer(LEADER, code, 5), {}, None) == name
    assert fault(FetchAnswer(LEADER, 12_345, 5), {}, None) == "error_12345"


MOMENTS, MINUTE = 20, 10


@dataclass(frozen=True)
class Log:
    """A replica at each moment of two minutes."""

    starts: list[int]
    ends: list[int]
    high_watermarks: list[int]


def grown(dice: random.Random, first: int, most: list[int]) -> list[int]:
    """Numbers that never fall, each at most its bound."""
    offsets: list[int] = []
    for bound in most:
        first = max(first, min(bound, first + dice.choice([0, 0, 1, 3, 10])))
        offsets.append(first)
    return offsets


def made_up(dice: random.Random) -> dict[int, Log]:
    """Replicas of one partition of which nothing is appended and deleted within the two minutes."""
    ends = grown(dice, dice.randrange(20, 40), [10**6] * MOMENTS)
    committed = grown(dice, dice.randrange(10, ends[0] + 1), ends)
    logs = {}
    for broker_id in (LEADER, FOLLOWER, OTHER):
        is_leader = broker_id == LEADER
        own = ends if is_leader else grown(dice, dice.randrange(5, ends[0] + 1), ends)
        low = [min(pair) for pair in zip(own, committed, strict=True)]
        end_offsets = committed if is_leader else grown(dice, dice.randrange(5, low[0] + 1), low)
        starts = grown(dice, dice.randrange(end_offsets[0] + 1), [end_offsets[0]] * MOMENTS)
        logs[broker_id] = Log(starts, own, end_offsets)
    return logs


def offsets_of(dice: random.Random, log: Log) -> ReplicaOffsets:
    """What a replica reported: at some moments, its end by one of two names."""
    share = dice.choice([0, 0.1, 0.5, 1])
    moments = [moment for moment in range(MOMENTS) if dice.random() < share]
    ends = {m: dice.choice([log.ends, log.high_watermarks])[m] for m in moments}
    before = [end for moment, end in ends.items() if moment < MINUTE]
    within = [end for moment, end in ends.items() if moment >= MINUTE]
    return ReplicaOffsets(
        max((log.starts[moment] for moment in moments), default=None),
        max(before, default=None),
        min(within, default=None),
        max(ends.values(), default=None),
    )


@pytest.mark.parametrize("cases", [4_000, pytest.param(20_000, marks=pytest.mark.faults)])
def test_nothing_is_guessed(cases: int) -> None:
    dice, counted = random.Random(392), Counter[str | None]()
    for _ in range(cases):
        logs = made_up(dice)
        replicas = {id_: offsets_of(dice, log) for id_, log in logs.items()}
        broker_id, moment = dice.choice([LEADER, FOLLOWER]), dice.randrange(MINUTE, MOMENTS)
        start, end = logs[broker_id].starts[moment], logs[broker_id].ends[moment]
        offset = dice.choice([dice.randrange(start + 1) - 1, end + dice.choice([1, 2, 5, 20])])
        if offset < 0:
            continue
        kind = fault(FetchAnswer(broker_id, rule.OUT_OF_RANGE, offset), replicas, LEADER)
        counted[kind] += 1
        if kind == rule.TOO_SMALL:
            assert offset < start
        elif kind == rule.UNAVAILABLE:
            assert broker_id == FOLLOWER
            assert end < offset <= logs[LEADER].ends[-1]
        elif kind == rule.TOO_LARGE:
            assert offset > end
            assert offset > (replicas[LEADER].end_offset or -1) or broker_id == LEADER
    assert (
        min(counted[name] for name in (rule.TOO_SMALL, rule.UNAVAILABLE, rule.TOO_LARGE))
        > cases / 40
    )
