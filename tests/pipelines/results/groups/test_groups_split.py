"""Results of groups are the same for any split of time and facts, and for any order."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.results.declared import result_of

from ....cases import first_of
from ....delta_tables import NOON
from ....examples import EXPENSIVE
from ....rows import Row
from ..splits import assert_same_however_split
from . import golden_groups
from .group_rows import commit, heartbeat, left, old_heartbeat, request
from .share_rows import acknowledge, fetch

MINUTES = 4
FACTS = 120
TOPIC_ID = "zMrmuvO5TCuILkVcOS8DCg"
RESULTS = (
    *(result_of("group_members"), result_of("group_commits"), result_of("group_member_events")),
    result_of("share_fetches"),
)


def made_up(dice: random.Random, number: int) -> Row:
    """Any request of a group; each has an offset of its own, as records have."""
    second = dice.randrange(MINUTES * 60_000) / 1_000
    epoch, code = dice.choice([-2, -1, 0, 0, 3, 4]), dice.choice([0, 0, 0, 22, 25, 27, 79])
    member = dice.choice(["m1", "m2", ""])
    others: dict[str, Any] = {
        "client_id": dice.choice(["app", "other", None]),
        "weight": dice.choice([None, 1.0, 5.0]),
        "error_code": code,
        "source_offset": number,
        "source_line": dice.choice([None, None, 1]),
    }
    topics = {"subscribedTopicNames": dice.choice([None, ["t"], ["t", "u"]])}
    parts = {"topicPartitions": [{"topicId": TOPIC_ID, "partitions": [0, dice.choice([1, 2])]}]}
    assigned = {"assignment": dice.choice([None, parts])}
    joined = {"leader": "m1", "memberId": "m1", "generationId": 3, "members": [1, 2]}
    made = (
        lambda: heartbeat(
            second,
            epoch,
            dice.choice([3, 4, 5]),
            member_id=member,
            requested=topics,
            answer=assigned,
            api=dice.choice(["CONSUMER_GROUP_HEARTBEAT", "SHARE_GROUP_HEARTBEAT"]),
            **others,
        ),
        lambda: old_heartbeat(second, **(others | {"code": code})),
        lambda: commit(
            second,
            {n: dice.randrange(9) for n in dice.sample([0, 1, 2], dice.randrange(4))},
            errors={0: code},
            topic_id=dice.choice([None, TOPIC_ID]),
            **others,
        ),
        lambda: left(second, ("m1", 0), ("m2", code), **others),
        lambda: request(second, "JOIN_GROUP", {"memberId": member}, joined, **others),
        lambda: request(second, "SYNC_GROUP", {"memberId": member}, {"assignment": "AA"}, **others),
        lambda: request(second, "FETCH", {}, {}, **others),
        lambda: fetch(
            second,
            {(dice.randrange(5), dice.randrange(9)): dice.choice([1, 2, 2, 3]) for _ in range(2)},
            member,
            epoch=epoch,
            acknowledged={(0, 4): [dice.choice([1, 2, 3, 4])]},
            **others,
        ),
        lambda: acknowledge(
            second,
            {(0, 2): dice.choices([0, 1, 2, 3, 4], k=dice.choice([1, 2, 3]))},
            member,
            dice.choice([0, 0, 121]),
            epoch=epoch,
            **others,
        ),
    )
    return dice.choice(made)()


def named() -> list[Row]:
    named_topic = {"cluster_id": "c1", "topic_id": TOPIC_ID, "topic": "t"}
    return [named_topic | {"event_time": NOON, "is_removed": False}]


def lookups(result: Result) -> dict[str, list[Row]]:
    names = {lookup.table.name for lookup in result.lookups}
    return {"topics": named()} if "topics" in names else {}


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.table.name)
@EXPENSIVE
@given(seed=st.integers(0, 2**32))
def test_a_table_does_not_depend_on_batches(result: Result, seed: int) -> None:
    dice = random.Random(seed)
    facts = [made_up(dice, number) for number in range(FACTS)]
    minutes = [NOON.replace(minute=n) for n in range(1, MINUTES)]
    shuffled = dice.sample(facts, len(facts))
    cuts = dice.sample(minutes, dice.randrange(MINUTES))
    rows = assert_same_however_split(result, cuts, shuffled, requests=facts, **lookups(result))
    keys = [tuple(row[name] for name in result.table.key) for row in rows]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("result", first_of(RESULTS), ids=lambda result: result.table.name)
def test_real_lines_in_another_order_are_the_same_table(result: Result) -> None:
    facts = golden_groups.requests()
    minutes = sorted({fact["event_time"].replace(second=0, microsecond=0) for fact in facts})
    assert_same_however_split(result, minutes, facts[::-1], requests=facts)
