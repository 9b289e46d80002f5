"""The plan: sorted, reproducible, bounded, and safe to paste."""

import random
import shlex
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.feedback.plan import Bounds, Connection, Desired, plan, quoted
from quotaflow.schemas.configs import PRODUCER_IDS_RATE

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLAIN = Connection("b1:9092,b2:9092")
SETTLED = Bounds(settle=timedelta(seconds=30))


def desired(name: str = "mallory", **others: object) -> Desired:
    row = {
        "cluster_id": "c1",
        "entity_type": "user",
        "entity_name": name,
        "config_key": "producer_ids_rate",
        "config_value": "1",
        "reason": "because",
        "evidence_table": "producer_id_rates",
        "evidence_key": f"principal=User:{name}",
        "since": NOW - timedelta(minutes=1),
        "priority": 10,
    }
    return Desired(**(row | others))  # type: ignore[arg-type]


def test_a_change_says_value_command_and_that_stock_kafka_refuses_it() -> None:
    (change,) = plan([desired()], NOW, SETTLED, PLAIN).changes
    assert change.value == "1.0"
    assert change.command == (
        "kafka-configs.sh --bootstrap-server b1:9092,b2:9092 --alter --entity-type users "
        "--entity-name mallory --add-config producer_ids_rate=1.0"
    )
    assert "42 Invalid configuration key producer_ids_rate" in change.note
    assert "KIP-936" in change.note


def test_a_login_stands_in_a_file() -> None:
    (change,) = plan([desired()], NOW, SETTLED, Connection("b:9093", needs_login=True)).changes
    assert " --command-config client.properties --alter " in change.command


@pytest.mark.parametrize(
    ("row", "bounds", "why"),
    [
        pytest.param(desired(""), SETTLED, "default of all users", id="no name is the default"),
        pytest.param(desired("<default>"), SETTLED, "default of all users", id="<default>"),
        pytest.param(
            desired("broker"),
            Bounds(frozenset({"User:broker"})),
            "excluded",
            id="excluded principal",
        ),
        pytest.param(
            desired(), Bounds(cluster_id="c2"), "seen in cluster c1", id="another cluster's rows"
        ),
        pytest.param(
            desired(since=NOW - timedelta(seconds=29)), SETTLED, "settle for 30 s", id="not settled"
        ),
        pytest.param(desired(config_value="0"), SETTLED, "must be over 0", id="zero"),
        pytest.param(desired(config_value="NaN"), SETTLED, "must be over 0", id="not a number"),
        pytest.param(desired(config_value="x,y=1"), SETTLED, "is not a number", id="text"),
        pytest.param(desired(config_key="nope"), SETTLED, "no config", id="a key nobody declared"),
        pytest.param(desired(entity_type="topic"), SETTLED, "no config", id="not of this entity"),
    ],
)
def test_what_may_not_be_touched_is_held_with_its_reason(
    row: Desired, bounds: Bounds, why: str
) -> None:
    made = plan([row], NOW, bounds, PLAIN)
    assert made.changes == ()
    assert why in made.held[0].why


def test_a_row_as_old_as_the_settle_time_is_planned() -> None:
    row = desired(since=NOW - timedelta(seconds=30))
    assert len(plan([row], NOW, SETTLED, PLAIN).changes) == 1


@given(st.randoms(use_true_random=False))
def test_the_same_rows_give_the_same_plan_in_any_order(order: random.Random) -> None:
    rows = [desired(name, priority=p) for name in ("b", "a", "", "c") for p in (2, 1)]
    shuffled = list(rows)
    order.shuffle(shuffled)
    made = plan(shuffled, NOW, SETTLED, PLAIN)
    assert made == plan(rows, NOW, SETTLED, PLAIN)
    assert [(c.desired.priority, c.desired.entity_name) for c in made.changes] == [
        (p, name) for p in (1, 2) for name in "abc"
    ]


HOSTILE = [
    "a b",
    "o'brien",
    "$(reboot)",
    "`id`",
    "x\ny",
    "\x1b[2J",
    "'\x07\\",
    "-rf",
    "é\u202eb",
    "a;b",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_bash_reads_a_hostile_name_back_as_it_is(name: str) -> None:
    (change,) = plan([desired(name)], NOW, SETTLED, PLAIN).changes
    assert change.command.isprintable()
    shown = change.command.replace("kafka-configs.sh", "printf '%s\\0'", 1)
    said = subprocess.run(["bash", "-c", shown], capture_output=True, check=True).stdout
    words = said.decode().split("\0")
    assert name in words or f"--entity-name={name}" in words
    assert words[-2] == "producer_ids_rate=1.0"


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_quoted_word_always_prints(name: str) -> None:
    assert quoted(name).isprintable()
    if name.isprintable():
        assert shlex.split(quoted(name)) == [name]


@given(st.floats(min_value=1e-6, max_value=1_000_000))
def test_a_value_is_written_the_same_however_it_came(value: float) -> None:
    written = PRODUCER_IDS_RATE.canonical(str(value))
    assert PRODUCER_IDS_RATE.canonical(written) == written
    assert float(written) == value
