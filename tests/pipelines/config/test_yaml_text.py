"""YAML of conf: what would change a value silently, or take long to read, is one error."""

from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError

from ...cases import cases

_BOMB = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@cases(
    ("text", "message"),
    (
        "a section twice",
        "plan: {excluded_principals: ['User:vip']}\nquotas: {}\nplan: {lease_s: 120}\n",
        r"conf.yaml: line 3: plan is written twice \(lines 1 and 3\): leave one out",
    ),
    (
        "a key twice",
        "plan:\n  lease_s: 60\n  lease_s: 7200\n",
        r"line 3: lease_s is written twice \(lines 2 and 3\)",
    ),
    (
        "in quotes",
        "plan: {lease_s: 60, 'lease_s': 70}",
        r"lease_s is written twice \(lines 1 and 1",
    ),
    (
        "an entry twice",
        "kafka:\n  properties:\n    client.id: a\n    client.id: b\n",
        r"client.id is written twice \(lines 3 and 4\)",
    ),
    (
        "a time of day",
        "plan: {lease_s: 1:30}",
        "plan.lease_s = '1:30': Input should be a valid int",
    ),
    ("with a fraction", "plan: {min_gain: 1:30.5}", "plan.min_gain = '1:30.5': Input should be"),
    ("an octal", "plan: {lease_s: 0144}", "plan.lease_s = '0144': Input should be a valid int"),
    ("a binary", "plan: {lease_s: 0b1111111}", "plan.lease_s = '0b1111111'"),
    ("a date", "cluster: {tag: 2026-99-99}", "unknown key cluster.tag"),
    ("deep", "[" * 20_000, "conf.yaml: line 1: it is nested more than 32 deep"),
    ("deep maps", "".join(f"{' ' * n}a:\n" for n in range(500)), "line 32: it is nested more"),
    ("a merge of itself", "plan: &p\n  <<: *p\n", r"line 2: \*p is a part of itself"),
    ("itself", "plan: &p {a: *p}", r"line 1: \*p is a part of itself"),
    ("a bomb", f"{_BOMB}plan: *i", "it has more than 100,000 values"),
    (
        "a chain of anchors",
        "a: &a " + "[" * 20 + "]" * 20 + "\nb: " + "[" * 20 + "*a" + "]" * 20,
        "line 2: it is nested more than 32 deep",
    ),
    (
        "a number of 5,000 digits",
        f"plan: {{lease_s: {'1' * 5_000}}}",
        "line 1: a value that cannot",
    ),
    ("a tagged number", "plan: {lease_s: !!int abc}", "line 1: a value that cannot be read"),
    ("a tag of Python", "plan: !!python/object/apply:os.getcwd []", "is not YAML: line 1"),
    ("large", "#" * 1_100_000, "more than 1,048,576 characters"),
)
def test_it_is_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as raised:
        config.load(file)
    assert "\n" not in str(raised.value)


@cases(
    ("text", "message"),
    ("deep", "[" * 20_000, "--set plan.lease_s: it is nested more than 32 deep"),
    ("a key twice", "{a: 1, a: 2}", r"--set plan.lease_s: a is written twice"),
    ("a time of day", "1:30", "plan.lease_s = '1:30': Input should be"),
    ("a number of 5,000 digits", "1" * 5_000, "--set plan.lease_s: a value that cannot be read"),
)
def test_a_pair_and_a_variable_are_refused_alike(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.load(None, [f"plan.lease_s={text}"])
    name = "QUOTAFLOW__PLAN__LEASE_S"
    with pytest.raises(ConfigError, match=message.replace("--set plan.lease_s", name)):
        config.load(None, [], {name: text})


def test_merged_keys_may_be_there_again(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("plan: {<<: {lease_s: 60}, lease_s: 120}\n")
    assert config.load(file).plan.lease_s == 120


def test_other_numbers_are_as_before() -> None:
    for text, number in {"0": 0, "1_000": 1000, "0x10": 16, "+5": 5}.items():
        assert config.load(None, [f"plan.cooldown_s={text}"]).plan.cooldown_s == number
    for text, real in {"0.5": 0.5, ".5": 0.5, "5.0e-1": 0.5}.items():
        assert config.load(None, [f"plan.min_gain={text}"]).plan.min_gain == real
