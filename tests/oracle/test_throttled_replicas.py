"""Lists of throttled replicas, against what broker and controller make of them."""

import json
import random
import subprocess
from collections import Counter
from typing import Any

import pytest

from .kafka_programs import compiled
from .rules.throttled_replicas import APPEND, SUBTRACT, altered, parse

BROKERS = [0, 1, 12, 2**31 - 1]
PARTITIONS = [0, 1, 7, 2**31 - 1]
ODD = ["0-1", "*", "1", "a:1", "1:2:3", "0 :1", "2147483648:1", "1:-1", "", "٣:1"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Asks Kafka's classes a batch of cases."""
    classes = tmp_path_factory.mktemp("throttled_replicas")
    command = compiled("ThrottledReplicas", classes, "org.apache.kafka.controller.")

    def ask(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answered = subprocess.run(
            command,
            input=json.dumps(cases) + "\n",
            check=True,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        parsed: list[dict[str, Any]] = json.loads(answered.stdout)
        return parsed

    return ask


def entry(dice: random.Random) -> str:
    return f"{dice.choice(PARTITIONS)}:{dice.choice(BROKERS)}"


def a_list(dice: random.Random) -> str:
    parts = [entry(dice) for _ in range(dice.randrange(5))]
    if dice.random() < 0.3:
        parts.insert(dice.randint(0, len(parts)), dice.choice(ODD))
    return dice.choice(["*", " * ", ",".join(parts), ",".join(parts), ",".join(parts)])


def test_brokers_take_the_same_replicas_from_a_list(answers: Any) -> None:
    dice = random.Random(73)
    cases = [{"value": a_list(dice), "brokers": BROKERS} for _ in range(5_000)]
    kinds = Counter[str]()
    for case, answer in zip(cases, answers(cases), strict=True):
        ours = parse(case["value"])
        if ours.malformed:
            # The broker refuses it, or stumbles over it, or has no use for the entry.
            kinds["malformed"] += 1
            continue
        assert answer["is_valid"], case
        for broker, partitions in zip(BROKERS, answer["partitions"], strict=True):
            if partitions is None:
                # An empty entry among others.
                assert ",," in f",{case['value']}", case
                continue
            kinds["all" if partitions == [-1] else "some" if partitions else "none"] += 1
            taken = {p for p in PARTITIONS if ours.holds(p, broker)}
            assert taken == (set(PARTITIONS) if partitions == [-1] else set(partitions)), case
        kinds["refused"] += not answer["is_valid"]
    assert {"malformed", "all", "some", "none"} <= kinds.keys()


def test_a_list_brokers_refuse_has_an_entry_of_no_meaning(answers: Any) -> None:
    values = [part for part in ODD if part not in {"", "*"}] + ["0:1,*", "*,0:1"]
    refused = [
        answer["is_valid"] for answer in answers([{"value": v, "brokers": []} for v in values])
    ]
    meant = [not parse(value).malformed for value in values]
    assert meant == [False] * len(values)
    # A number too large for an int passes the controller, and no broker can read it.
    assert [v for v, is_valid in zip(values, refused, strict=True) if is_valid] == ["2147483648:1"]


def test_the_controller_stores_what_the_rule_says(answers: Any) -> None:
    dice = random.Random(73)
    cases = []
    for _ in range(2_000):
        before = dice.sample(["0:1", "0:2", "1:1", "10:1", "7:7"], dice.randrange(4))
        value = dice.choice([None, "*", ",".join(before), ",".join(before)])
        operand = ",".join(dice.sample(["0:1", "1:1", "7:7", "*"], dice.randint(1, 3)))
        operation = dice.choice([APPEND, SUBTRACT])
        cases.append({"value": value, "operation": operation, "operand": operand})
    for case, answer in zip(cases, answers(cases), strict=True):
        assert answer["error"] == 0
        expected = altered(case["value"], case["operation"], case["operand"])
        assert (answer["value"] or "") == (expected or ""), case
