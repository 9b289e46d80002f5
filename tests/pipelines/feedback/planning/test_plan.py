"""The plan: sorted, reproducible, bounded, and safe to paste."""

import random
import shlex
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, quoted
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.plan import plan
from quotaflow.schemas.configs import PRODUCER_IDS_RATE

from ....cases import cases
from .. import fake_configs
from ..fake_configs import DictConfigs, ListJournal, applying

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLAIN = Connection("b1:9092,b2:9092")
SETTLED = PlanPolicy(settle=timedelta(seconds=30))


def desired(name: str = "mallory", **others: object) -> DesiredConfig:
    rate = {"config_key": "producer_ids_rate", "config_value": "1"}
    return fake_configs.desired(name, **(rate | {"since": NOW - timedelta(minutes=1)} | others))


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


@cases(
    ("row", "bounds", "why"),
    ("no name is the default", desired(""), SETTLED, "default of all users"),
    ("<default>", desired("<default>"), SETTLED, "default of all users"),
    ("excluded principal", desired("broker"), PlanPolicy(frozenset({"User:broker"})), "excluded"),
    ("another cluster's rows", desired(), PlanPolicy(cluster_id="c2"), "seen in cluster c1"),
    ("not settled", desired(since=NOW - timedelta(seconds=29)), SETTLED, "a plan waits 30 s"),
    (
        "what the cluster refused in a probe",
        desired(),
        PlanPolicy(refused_keys={"producer_ids_rate": "42 Invalid configuration key"}),
        "this cluster refuses producer_ids_rate: 42 Invalid configuration key",
    ),
    ("zero", desired(config_value="0"), SETTLED, "must be over 0"),
    ("not a number", desired(config_value="NaN"), SETTLED, "must be over 0"),
    ("text", desired(config_value="x,y=1"), SETTLED, "is not a number"),
    ("a key nobody declared", desired(config_key="nope"), SETTLED, "no config"),
    ("not of this entity", desired(entity_type="topic"), SETTLED, "no config"),
)
def test_what_may_not_be_touched_is_held_with_its_reason(
    row: DesiredConfig, bounds: PlanPolicy, why: str
) -> None:
    made = plan([row], NOW, bounds, PLAIN)
    assert made.changes == ()
    assert why in made.blocked[0].reason


def test_a_row_as_old_as_the_settle_time_is_planned() -> None:
    row = desired(since=NOW - timedelta(seconds=30))
    assert len(plan([row], NOW, SETTLED, PLAIN).changes) == 1


@given(st.randoms(use_true_random=False))
def test_the_same_rows_give_the_same_plan_in_any_order(order: random.Random) -> None:
    keys = {1: "producer_byte_rate", 2: "consumer_byte_rate"}
    rows = [
        desired(name, priority=p, config_key=key)
        for name in ("b", "a", "", "c")
        for p, key in keys.items()
    ]
    shuffled = list(rows)
    order.shuffle(shuffled)
    made = plan(shuffled, NOW, SETTLED, PLAIN)
    assert made == plan(rows, NOW, SETTLED, PLAIN)
    assert [(c.desired.priority, c.desired.entity_name) for c in made.changes] == [
        (p, name) for p in (1, 2) for name in "abc"
    ]


IDS = "client_instance_id=vl7CCx68Qw29SsxmLSK4Xg|fl7CCx68Qw29SsxmLSK4Xg"
SUBSCRIPTION = {"metrics": "org.a.,org.b.", "interval.ms": "10000", "match": IDS}


def subscription(name: str = "quotaflow-alert-slow", **others: object) -> list[DesiredConfig]:
    """The rows of a subscription."""
    columns = {"entity_type": "client-metrics", "entity_name": name, "priority": 20} | others
    return [
        desired(**({"config_key": k, "config_value": v} | columns)) for k, v in SUBSCRIPTION.items()
    ]


def owning(*rows: DesiredConfig) -> Ledger:
    """A ledger of these values."""
    journal = ListJournal()
    applying(DictConfigs(), journal).run("p", plan(rows, NOW, PlanPolicy(), PLAIN).changes)
    return journal.ledger


def test_a_subscription_is_one_command() -> None:
    changes = plan(subscription(), NOW, SETTLED, PLAIN).changes
    assert [(c.desired.config_key, c.value) for c in changes] == [
        ("interval.ms", "10000"),
        ("match", IDS),
        ("metrics", "org.a.,org.b."),
    ]
    assert {c.command for c in changes} == {
        "kafka-configs.sh --bootstrap-server b1:9092,b2:9092 --alter --entity-type client-metrics "
        "--entity-name quotaflow-alert-slow --add-config "
        f"'interval.ms=10000,match=[{IDS}],metrics=[org.a.,org.b.]'"
    }


def test_what_is_so_already_is_no_change_and_what_differs_is() -> None:
    rows = [replace(row, prior_value=row.config_value) for row in subscription()]
    assert plan(rows, NOW, SETTLED, PLAIN) == Plan((), ())
    rows[1] = replace(rows[1], prior_value="5000")
    # The ledger has the values that we wrote, so let it own another config of the resource.
    (change,) = plan(rows, NOW, SETTLED, PLAIN, owning(subscription()[0])).changes
    assert change.command.endswith(
        "--entity-name quotaflow-alert-slow --add-config interval.ms=10000"
    )


def test_a_subscription_is_taken_back_whole() -> None:
    rows = [replace(row, prior_value=row.config_value, config_value=None) for row in subscription()]
    changes = plan(rows, NOW, SETTLED, PLAIN, owning(*subscription())).changes
    assert {change.value for change in changes} == {None}
    assert changes[0].command.endswith("--delete-config interval.ms,match,metrics")


@cases("is_removed", ("removed", True), ("changed", False))
def test_a_resource_that_our_ledger_does_not_have_stays(is_removed: bool) -> None:
    """An operator, or a second deployment, may choose the same name."""
    rows = [
        replace(row, prior_value=row.config_value, config_value=None)
        if is_removed
        else replace(row, prior_value=f"{row.config_value}0")
        for row in subscription()
    ]
    others = owning(*subscription("quotaflow-alert-another"))
    made = plan(rows, NOW, SETTLED, PLAIN, others)
    assert made.changes == ()
    assert {blocked.desired.entity_name for blocked in made.blocked} == {"quotaflow-alert-slow"}
    assert all(
        "another deployment or a person made it" in blocked.reason for blocked in made.blocked
    )


@pytest.mark.parametrize(("after_s", "changes"), [(-1, 0), (0, 3)])
def test_a_lease_is_taken_back_once_it_is_over(after_s: int, changes: int) -> None:
    name = f"quotaflow-troubleshoot-vl7CCx68Qw29SsxmLSK4Xg-until-{NOW.timestamp():.0f}"
    rows = [replace(r, config_value=None, prior_value=r.config_value) for r in subscription(name)]
    made = plan(rows, NOW + timedelta(seconds=after_s), SETTLED, PLAIN)
    assert len(made.changes) == changes
    assert {blocked.reason for blocked in made.blocked} <= {"its lease ends in 1 s"}


def test_of_too_many_subscriptions_the_oldest_are_asked_for_and_the_others_named() -> None:
    since = NOW - timedelta(hours=1)
    rows = [*subscription("c"), *subscription("a"), *subscription("b", since=since)]
    made = plan(rows, NOW, PlanPolicy(max_subscriptions=2), PLAIN)
    assert {change.desired.entity_name for change in made.changes} == {"a", "b"}
    assert {(h.desired.entity_name, h.reason) for h in made.blocked} == {
        ("c", "plan.max_subscriptions is 2, and older ones come first")
    }


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("match", "client_id=.*", "'client_id=.*' is not client_instance_id= and ids"),
        ("match", "client_instance_id=.*", "is not client_instance_id= and ids"),
        ("match", f"{IDS},client_id=a", "'client_id=a' is not client_instance_id= and ids"),
        ("match", f"{IDS}|{'x' * 22}" * 2_000, "is not client_instance_id= and ids"),
        ("match", f"{IDS}{('|' + 'x' * 22) * 2_000}", "at most 30000 fit"),
        ("metrics", "a b", "'a b' is not a prefix of metric names"),
        ("metrics", "", "'' is not a prefix of metric names"),
        ("interval.ms", "99", "must be over 99"),
        ("interval.ms", "1000.5", "must be whole ms"),
    ],
)
def test_a_subscription_with_a_value_that_may_not_be_written_is_held_whole(
    key: str, value: str, why: str
) -> None:
    rows = [replace(r, config_value=value) if r.config_key == key else r for r in subscription()]
    made = plan(rows, NOW, SETTLED, PLAIN)
    assert made.changes == ()
    assert len(made.blocked) == len(rows)
    assert all(why in blocked.reason for blocked in made.blocked)


RATE, LIST = (f"leader.replication.throttled.{what}" for what in ("rate", "replicas"))


def throttled(key: str = RATE, value: str | None = "4000000", **others: object) -> DesiredConfig:
    """A config of a replication throttle."""
    columns = {
        "entity_type": "broker",
        "entity_name": "1",
        "priority": 25,
        "prior_value": "2000000",
        "observed": None,
    }
    columns |= {"entity_type": "topic", "entity_name": "t"} if key == LIST else {}
    return desired(**(columns | {"config_key": key, "config_value": value} | others))


def test_what_is_withheld_holds_back_nothing_else() -> None:
    follower = throttled("follower.replication.throttled.rate", blocked_reason="it is not for us")
    made = plan([throttled(), follower, throttled(entity_name="2")], NOW, SETTLED, PLAIN)
    assert [change.desired.entity_name for change in made.changes] == ["1", "2"]
    assert [(blocked.desired, blocked.reason) for blocked in made.blocked] == [
        (follower, "it is not for us")
    ]


def test_others_entries_of_a_list_stay() -> None:
    row = throttled(LIST, "0:1,1:1", prior_value="0:1,1:1,2:1")
    (change,) = plan([row], NOW, SETTLED, PLAIN).changes
    assert change.command.endswith(f" --entity-name t --add-config '{LIST}=[0:1,1:1]'")
    assert change.note == "valid while the list is 0:1,1:1,2:1: the tool sets lists whole"
    (change,) = plan([throttled(LIST, None)], NOW, SETTLED, PLAIN).changes
    assert change.command.endswith(f" --entity-name t --delete-config {LIST}")
    assert change.note == ""


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (throttled(value="999999"), "must be over 999999"),
        (throttled(value="1000000.5"), "must be whole bytes per second"),
        (throttled(entity_name=""), "the default of all brokers"),
        (throttled(LIST, "0-1"), "'0-1' is not partition:broker"),
        (throttled(LIST, "*"), "'*' is not partition:broker"),
        (throttled(entity_type="topic"), "is no config that may be written"),
    ],
)
def test_throttles_have_bounds(row: DesiredConfig, why: str) -> None:
    made = plan([row], NOW, SETTLED, PLAIN)
    assert made.changes == ()
    assert why in made.blocked[0].reason


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
    echoed = subprocess.run(
        ["bash", "-c", shown.encode()], stdout=subprocess.PIPE, check=True
    ).stdout
    words = echoed.decode().split("\0")
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
