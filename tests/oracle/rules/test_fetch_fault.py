"""What is wrong with an answer to a fetch: cases, and no guess in any made-up history."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from kafka import errors

from quotaflow.udfs.rules.fetch_fault import ERRORS

from ...cases import cases
from . import fetch_fault as rule
from .fetch_fault import FetchAnswer, ReplicaOffsets, fault, leader, leader_has_offset

LEADER, FOLLOWER, OTHER = 1, 2, 3


def reported(start: int, before: int | None, least: int | None, end: int) -> ReplicaOffsets:
    return ReplicaOffsets(start, before, least, end)


REPLICAS = {LEADER: reported(10, 100, 100, 100), FOLLOWER: reported(10, 90, 90, 90)}
NO_LEADER = {FOLLOWER: REPLICAS[FOLLOWER]}


@cases(
    ("broker_id", "offset", "replicas", "expected"),
    ("before the follower's start", FOLLOWER, 9, REPLICAS, rule.TOO_SMALL),
    ("before the leader's start", LEADER, 9, REPLICAS, rule.TOO_SMALL),
    ("the leader has it", FOLLOWER, 95, REPLICAS, rule.UNAVAILABLE),
    ("the leader gets it next", FOLLOWER, 100, REPLICAS, rule.UNAVAILABLE),
    ("past the leader's end too", FOLLOWER, 101, REPLICAS, rule.TOO_LARGE),
    ("past the leader's end", LEADER, 101, REPLICAS, rule.TOO_LARGE),
    ("the leader reported nothing", FOLLOWER, 95, NO_LEADER, rule.UNKNOWN),
    ("its own start is enough", FOLLOWER, 9, NO_LEADER, rule.TOO_SMALL),
    ("no session has the offset", FOLLOWER, None, REPLICAS, rule.UNKNOWN),
    ("no replica reported", FOLLOWER, 95, {}, rule.UNKNOWN),
    ("of a silent one, past the leader's", OTHER, 101, REPLICAS, rule.TOO_LARGE),
    ("of a silent one, within the leader's", OTHER, 100, REPLICAS, rule.UNKNOWN),
    ("of a silent one, before others start", OTHER, 9, REPLICAS, rule.UNKNOWN),
    (
        "within its earlier report: only its start can have moved since",
        FOLLOWER,
        50,
        REPLICAS,
        rule.TOO_SMALL,
    ),
    (
        "it came to hold it later in the minute",
        FOLLOWER,
        95,
        REPLICAS | {FOLLOWER: reported(10, 90, 90, 98)},
        rule.UNAVAILABLE,
    ),
    (
        "within its report of the minute: before or after is unknown",
        FOLLOWER,
        95,
        REPLICAS | {FOLLOWER: reported(10, None, 97, 98)},
        rule.UNKNOWN,
    ),
    (
        "after its start, its end untold, within the leader's",
        FOLLOWER,
        95,
        REPLICAS | {FOLLOWER: ReplicaOffsets(10)},
        rule.UNKNOWN,
    ),
    (
        "another follower has it, so that the leader has",
        FOLLOWER,
        105,
        REPLICAS | {OTHER: reported(10, 107, 107, 107)},
        rule.UNAVAILABLE,
    ),
)
def test_out_of_range(
    broker_id: int, offset: int | None, replicas: dict[int, ReplicaOffsets], expected: str
) -> None:
    assert fault(FetchAnswer(broker_id, rule.OUT_OF_RANGE, offset), replicas, LEADER) == expected


@pytest.mark.parametrize("offset", [9, 95, 101])
def test_without_a_leader_only_a_replica_s_own_start_decides(offset: int) -> None:
    expected = rule.TOO_SMALL if offset == 9 else rule.UNKNOWN
    assert fault(FetchAnswer(FOLLOWER, rule.OUT_OF_RANGE, offset), REPLICAS, None) == expected


@pytest.mark.parametrize(
    ("offset", "high_watermark", "expected"),
    [(100, 100, None), (101, 100, rule.UNCOMMITTED), (None, 100, None), (101, None, None)],
)
def test_past_the_high_watermark(
    offset: int | None, high_watermark: int | None, expected: str | None
) -> None:
    assert fault(FetchAnswer(FOLLOWER, 0, offset, high_watermark), REPLICAS, LEADER) == expected


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


@pytest.mark.parametrize(
    ("led", "in_snapshot", "expected"),
    [((), 7, 7), ((), None, None), ((2,), 7, 2), ((2, 3), 7, None)],
)
def test_who_answers_followers_leads(
    led: tuple[int, ...], in_snapshot: int | None, expected: int | None
) -> None:
    replicas = {n: ReplicaOffsets(is_leader=n in led) for n in (1, 2, 3)}
    assert leader(replicas, in_snapshot) == expected


@pytest.mark.parametrize(
    ("offset", "leader_id", "expected"),
    [
        *((9, 1, False), (10, 1, True), (100, 1, True), (101, 1, False)),
        *((50, 9, None), (50, None, None), (None, 1, None)),
    ],
)
def test_whether_the_leader_holds_an_offset(
    offset: int | None, leader_id: int | None, expected: bool | None
) -> None:
    assert leader_has_offset(offset, REPLICAS, leader_id) is expected


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


def test_nothing_is_guessed() -> None:
    dice, counted = random.Random(392), Counter[str | None]()
    for _ in range(20_000):
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
    assert min(counted[name] for name in (rule.TOO_SMALL, rule.UNAVAILABLE, rule.TOO_LARGE)) > 500
