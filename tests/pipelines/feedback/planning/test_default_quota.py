"""The default of all users: the one default that a plan may write, alone, and only if conf says so.

It has no name, and every part of apply and restore must do with that.
"""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.config import ReplicationSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import DONE, Ledger
from quotaflow.pipelines.feedback.planning import (
    cluster_watch,
    guards,
    jikkou,
    restore_plan,
)
from quotaflow.pipelines.feedback.planning.blast_radius import BlastRadius, Room
from quotaflow.pipelines.feedback.planning.guards import SNAPSHOT, PlanPolicy
from quotaflow.pipelines.feedback.planning.holds import (
    Alteration,
    SeenConfig,
    hold_reason,
    release_command,
)
from quotaflow.pipelines.feedback.planning.plan import NOTHING
from quotaflow.pipelines.feedback.planning.recheck import Recheck
from quotaflow.pipelines.feedback.runs import frozen_plans, release_run
from quotaflow.pipelines.feedback.runs.release_run import Request
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.schemas.configs import CONFIGS, ENTITY_TYPES
from quotaflow.schemas.tables.declared import CONFIG_CHANGES, PLANS
from quotaflow.udfs.rules.limit import RAISE, TIGHTEN

from ....cases import cases
from ....delta_tables import NOON
from .. import fake_configs
from ..fake_configs import (
    PLAIN,
    Clock,
    DictConfigs,
    ListJournal,
    applying,
    desired,
    names,
    whys,
)
from ..lease_site import HERE, THERE, Site, live

RATE = "producer_ids_rate"
DEFAULT = ConfigEntity("c1", "user", None)
KEY = (DEFAULT, RATE)
ALLOWED = PlanPolicy(lease_s=600, default_quotas=True)
HOUR = timedelta(hours=1)
MOVED = {"entity_type": "topic", "config_key": "leader.replication.throttled.replicas"}


def default(value: str | None = "1.0", **others: object) -> DesiredConfig:
    """A row that desires the default of all users."""
    columns = {"config_key": RATE, "config_value": value, "evidence_key": "quota_per_s=1.0"}
    columns |= {"evidence_table": "default_quota_proposals", "entity_name": None}
    return replace(desired(), **columns | others)  # type: ignore[arg-type]


planned = partial(fake_configs.planned, bounds=ALLOWED)


def test_a_plan_limits_all_users_where_conf_says_so() -> None:
    (change,) = planned(default()).changes
    assert (change.entity, change.value, change.lease_s) == (DEFAULT, "1.0", 600)
    assert change.command == (
        "kafka-configs.sh --bootstrap-server b:9092 --alter --entity-type users --entity-default "
        "--add-config producer_ids_rate=1.0"
    )
    assert change.risk == "slows every user without a quota of its own, on every broker"
    assert "stock Kafka refuses producer_ids_rate" in change.note
    assert str(change.entity) == "user (the default of all users) in cluster c1"


@pytest.mark.parametrize(
    ("row", "bounds", "why"),
    [
        (default(), PlanPolicy(), "plan.default_quotas of conf is false"),
        (default(entity_name=""), ALLOWED, "would be read as the default of all users"),
        (default(entity_name="<default>"), ALLOWED, "would be read as the default of all users"),
        (default(entity_client_id="app"), ALLOWED, "would be read as the default of all users"),
        (default(config_key="producer_byte_rate"), ALLOWED, "as the default of all users"),
        (
            default(entity_type="ip", config_key="connection_creation_rate", config_value="1"),
            ALLOWED,
            "as the default of all ips",
        ),
        (default("0"), ALLOWED, "must be over 0"),
        (default(cluster_id="c2"), replace(ALLOWED, cluster_id="c1"), "conf means c1"),
        (
            default(),
            replace(ALLOWED, refused_keys={RATE: "42"}),
            "this cluster refuses producer_ids_rate",
        ),
        (default(), replace(ALLOWED, other_managers={"user": "x"}), "x manages configs of users"),
        (default(), replace(ALLOWED, holds={KEY: "eve set it"}), "eve set it"),
        (default(blocked_reason="it would slow dora"), ALLOWED, "it would slow dora"),
    ],
)
def test_nothing_else_of_a_default_is_planned(
    row: DesiredConfig, bounds: PlanPolicy, why: str
) -> None:
    made = planned(row, bounds=bounds)
    assert made.changes == ()
    assert why in whys(made)[0]


NAMES = st.sampled_from([None, "", "<default>", "erin", "None", "1", "10.0.0.7"])
ROWS = st.builds(
    lambda kind, name, key, client, value, prior, priority, direction: default(
        value,
        entity_type=kind,
        entity_name=name,
        config_key=key,
        entity_client_id=client,
        prior_value=prior,
        priority=priority,
        direction=direction,
        usage_p99=1e6,
        history_s=1e9,
        observed=9.0,
    ),
    st.sampled_from([*ENTITY_TYPES]),
    NAMES,
    st.sampled_from([*CONFIGS]),
    st.sampled_from([None, "", "<default>", "app"]),
    st.sampled_from([None, "1", "0.5", "1000000", "0:1"]),
    st.sampled_from([None, "1", "0.5", "2000000"]),
    st.sampled_from([5, 10, 30]),
    st.sampled_from([None, TIGHTEN, RAISE]),
)


@given(st.lists(ROWS, max_size=8), st.booleans(), st.booleans())
def test_no_plan_ever_writes_another_default(
    rows: list[DesiredConfig], is_allowed: bool, has_canary: bool
) -> None:
    radius = BlastRadius(canary=has_canary, results_at=NOON)
    bounds = PlanPolicy(default_quotas=is_allowed, blast_radius=radius, cluster_id="c1")
    made = planned(*rows, bounds=bounds)
    defaults = [c for c in made.changes if c.entity.entity_name in {None, "", "<default>"}]
    assert all(c.desired.key == KEY and is_allowed for c in defaults)
    if defaults:
        assert len(made.changes) == 1


@given(
    st.sampled_from([None, "erin"]),
    st.floats(0.001, 1e6),
    st.none() | st.floats(0.001, 1e6),
    st.sampled_from([None, TIGHTEN]),
)
def test_a_rate_that_is_set_is_never_loosened(
    name: str | None, value: float, prior: float | None, direction: str | None
) -> None:
    row = default(f"{value!r}", entity_name=name, prior_value=prior and f"{prior!r}")
    for change in planned(replace(row, direction=direction), bounds=ALLOWED).changes:
        assert change.value is not None
        # A value in place may be written with fewer digits.
        assert prior is None or float(change.value) <= prior * (1 + 1e-9)


RADIUS = BlastRadius(canary=False, results_at=NOON, dead_time=HOUR / 3)
ALONE = "the default of all users changes alone in a plan: this comes with a later one"


@cases(
    ("others", "changed"),
    ("users", [desired("bob"), desired("eve", config_key=RATE, config_value="1")], [None]),
    (
        "an address before it",
        [desired("10.0.0.7", entity_type="ip", config_key="connection_creation_rate")],
        None,
    ),
    ("what is more urgent", [desired("t", **MOVED, config_value="0:1", priority=5)], None),
    ("what is less urgent", [desired("t", **MOVED, config_value="0:1", priority=30)], [None]),
)
def test_the_default_is_alone_in_its_plan(
    others: list[DesiredConfig], changed: list[None] | None
) -> None:
    made = planned(default(), *others, bounds=replace(ALLOWED, blast_radius=RADIUS))
    assert names(made) == (changed or [others[0].entity_name])
    assert set(whys(made)) == {ALONE}


def written(*rows: DesiredConfig, configs: DictConfigs | None = None, at_s: float = 0) -> Ledger:
    records = ListJournal()
    clock = Clock(NOON + timedelta(seconds=at_s))
    changes = planned(*rows).changes
    applying(configs or DictConfigs(), records, clock=clock).run("p", changes)
    return records.ledger


def test_what_is_renewed_or_given_back_goes_on_beside_the_default() -> None:
    ledger = written(desired("bob"))
    radius = replace(ALLOWED, blast_radius=replace(RADIUS, results_at=NOON + HOUR))
    made = planned(default(), desired("bob"), bounds=radius, ledger=ledger, after_s=400)
    assert [(c.entity.entity_name, c.operation.name) for c in made.changes] == [
        (None, "SET"),
        ("bob", "RENEW"),
    ]


@pytest.mark.parametrize("canary", [False, True])
def test_the_default_waits_for_the_effect_of_what_was_written_before(canary: bool) -> None:
    bounds = replace(ALLOWED, blast_radius=replace(RADIUS, canary=canary))
    made = planned(default(), bounds=bounds, ledger=written(desired("bob")), after_s=60)
    assert (made.changes, "the next waits for results of" in whys(made)[0]) == ((), True)


def test_an_approved_default_is_alone_too() -> None:
    changes = planned(default(), desired("bob")).changes
    room = Room(RADIUS, NOTHING, NOON)
    recheck = Recheck(lambda: Plan(changes, ()), lambda: NOON, room)
    assert recheck(changes[:1]) is None
    assert recheck(changes[1:]) == ALONE


def test_it_is_renewed_and_counts_once_a_day() -> None:
    ledger = written(default())
    (renewal,) = planned(default(), ledger=ledger, after_s=400).changes
    assert (renewal.operation.name, renewal.value) == ("RENEW", "1.0")
    full = replace(RADIUS, max_entities_per_day=1, results_at=NOON + HOUR)
    bounds = replace(ALLOWED, blast_radius=full)
    made = planned(desired("bob"), bounds=bounds, ledger=ledger, after_s=3_000)
    assert "1 entity was written in 24 hours" in whys(made)[0]


@pytest.mark.parametrize(("prior", "left"), [(None, {}), ("2", {RATE: "2"})])
@cases("bounds", ("conf off", PlanPolicy()), ("conf on", ALLOWED))
def test_it_is_given_back_also_where_conf_allows_it_no_more(
    prior: str | None, left: dict[str, str], bounds: PlanPolicy
) -> None:
    configs = DictConfigs({DEFAULT: {} if prior is None else {RATE: prior}})
    ledger = written(default("1", prior_value=prior), configs=configs)
    assert configs.configs[DEFAULT] == {RATE: "1.0"}
    owned, unknown = restore_plan.writable(restore_plan.expired(ledger, NOON + HOUR))
    restore = restore_plan.plan_restore(owned, configs.configs, {}, PLAIN)
    restore = restore_plan.permitted(restore, configs.configs, bounds, PLAIN)
    assert (restore.refused, unknown) == ((), ())
    assert "--entity-type users --entity-default" in restore.changes[0].command
    applying(configs, ListJournal(), "r2").run("restore", restore.changes)
    assert configs.configs[DEFAULT] == left


@pytest.mark.parametrize(("bounds", "is_refused"), [(PlanPolicy(), True), (ALLOWED, False)])
def test_no_record_lowers_it_where_conf_does_not_allow_it(
    bounds: PlanPolicy, is_refused: bool
) -> None:
    row = default("1", prior_value="1.5")
    assert (guards.return_problem(row, bounds) is not None) == is_refused


class Windows:
    """Tables of a cluster whose users have more errors after noon than before."""

    def __init__(self, *principals: str) -> None:
        self.principals = principals

    def is_made(self, _: str) -> bool:
        return True

    def rows(self, sql: str, _: Since | None = None) -> list[dict[str, object]]:
        if "client_answers" not in sql:
            return []
        counts = {"before_requests": 100, "before_errors": 0, "requests": 100, "errors": 90}
        seen = [each for each in self.principals if literal(each) not in sql]
        return [{"part": 0, "principal": each, "principals": 1} | counts for each in seen]


def test_a_user_by_the_name_of_none_is_no_default() -> None:
    """A default inherits nothing of such a user, and does not hide its errors."""
    bounds = replace(
        ALLOWED, excluded_principals=frozenset({"User:None"}), protected={"User:None": "broker"}
    )
    assert names(planned(default(), bounds=bounds)) == [None]
    halt = cluster_watch.halted(
        Windows("User:None", "User:a", "User:b", "User:c", "User:d"),  # type: ignore[arg-type]
        written(default()),
        "c1",
        NOON + HOUR / 2,
        period=HOUR,
        results_at=NOON + HOUR / 2,
        limits=ReplicationSection(),
    )
    assert halt is not None
    assert "user (the default of all users)" in halt.reason
    made = planned(default(), bounds=replace(PlanPolicy(), halt=halt), ledger=written(default()))
    assert [(c.entity, c.value) for c in made.changes] == [(DEFAULT, None)]


def test_its_rows_come_back_from_tables() -> None:
    made = planned(default())
    kept = pa.Table.from_pylist(list(frozen_plans.to_rows(made, NOON, "me")), schema=PLANS.arrow)
    assert Plan(frozen_plans.to_changes(kept.to_pylist()), ()).plan_id == made.plan_id
    records = ListJournal()
    applying(DictConfigs(), records).run("p", made.changes)
    rows = [journal.to_row(HERE.signed(record, 1), "me") for record in records.records]
    read = pa.Table.from_pylist(rows, schema=CONFIG_CHANGES.arrow).to_pylist()
    stored = [journal.to_record(row) for row in read]
    assert {record.key for record in stored} == {KEY}
    assert all(HERE.verifies(record) for record in stored)
    named = [replace(record, entity=ConfigEntity("c1", "user", "")) for record in stored]
    assert not any(HERE.verifies(record) for record in named)


def leased() -> Site:
    """A site whose default is ours, in the topic of leases too."""
    site = Site()
    writer, _, ledger = site.begin(lambda _: None)
    bounds = replace(ALLOWED, inputs_at={SNAPSHOT: site.clock()})
    changes = planned(default(), bounds=bounds, ledger=ledger, now=site.clock.now).changes
    assert [outcome.step for outcome in writer.run("p", changes)] == [DONE]
    return site


def test_its_lease_is_in_the_cluster_and_panic_gives_it_back_without_tables() -> None:
    site = leased()
    assert live(site.book).keys() == {KEY}
    assert site.trust().refused == ()
    site.tables = ListJournal()
    assert site.trust().unstored == (KEY,)  # what adopt takes over
    site.restore(with_tables=False)
    assert site.configs.configs[DEFAULT] == {}


def test_another_deployment_leaves_it_alone() -> None:
    site = leased()
    other = site.beside(THERE)
    writer, _, ledger = other.begin(lambda _: None)
    changes = planned(default("0.5", prior_value="1.0"), ledger=ledger).changes
    (outcome,) = writer.run("p", changes)
    assert outcome.step != DONE
    assert site.configs.configs[DEFAULT] == {RATE: "1.0"}


def test_who_set_it_keeps_it_until_a_release() -> None:
    last = Alteration(NOON, "User:eve (cli)", "SET", "5")
    why = str(hold_reason(KEY, SeenConfig("5", NOON), last, NOTHING))
    assert release_command(KEY) == "quotaflow release user producer_ids_rate"
    assert why.endswith("quotaflow release user producer_ids_rate lets plans change it")
    assert Request.parse("user", RATE, None).key("c1") == KEY
    made = release_run.Release(KEY, "5", why)
    record = release_run.record(made, "r", NOON + HOUR)
    ledger = Ledger.from_records([record])
    assert hold_reason(KEY, SeenConfig("5", NOON), last, ledger) is None


@pytest.mark.parametrize(
    ("entity", "key", "client_id"),
    [
        ("user", "producer_byte_rate", None),
        ("user", RATE, "app"),
        ("user/", RATE, None),
        ("ip", "connection_creation_rate", None),
        ("broker", RATE, None),
    ],
)
def test_no_other_default_is_released(entity: str, key: str, client_id: str | None) -> None:
    with pytest.raises(ConfigError):
        Request.parse(entity, key, client_id)


def test_jikkou_and_strimzi_have_no_resource_for_it() -> None:
    assert list(jikkou.documents(planned(default()))) == [
        "# left out, as Jikkou has no resource for it: 1 change"
    ]
    made = planned(default(), bounds=replace(ALLOWED, user_operator="strimzi"))
    assert (made.changes, whys(made)) == (
        (),
        ["strimzi writes quotas of users, and no KafkaUser is the default of all users"],
    )
    (note,) = made.fragments
    assert note.startswith("# no KafkaUser can have this")
