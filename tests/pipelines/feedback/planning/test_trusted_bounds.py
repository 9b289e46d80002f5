"""Who writes tables, and nothing else, does not choose what is written to the cluster."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.configs import cluster_facts
from quotaflow.pipelines.feedback.configs.change import RESTORE, SUBTRACT, Change, Operation
from quotaflow.pipelines.feedback.configs.cluster_facts import ClusterFacts
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.planning import trusted_bounds
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.feedback.runs.apply_run import distrusting

from .... import case_tables
from ....delta_tables import NOON
from ..fake_configs import Clock, DictConfigs, ListJournal, applying, desired, planned

BYTES, CONNECTIONS, IDS = "producer_byte_rate", "connection_creation_rate", "producer_ids_rate"
RATE = "leader.replication.throttled.rate"
LIST = "leader.replication.throttled.replicas"
EXPIRATION = "producer.id.expiration.ms"
CONF = Conf.model_validate(
    {
        "quotas": {"advised_users": ["dave"]},
        "producer_ids": {"protected_addresses": ["10.0.0.9"], "default_quota_per_s": 1.0},
        "replication": {"capacity_bytes_per_s": 1e7},
    }
)
NOTHING, UNSPECIFIED = ClusterFacts(), "0.0.0.0"  # noqa: S104  a name, and nothing listens
MANAGED = CONF.model_copy(
    update={"replication": CONF.replication.model_copy(update={"manage": True})}
)


def advised(value: str | None, prior: str | None = None, **others: Any) -> DesiredConfig:
    row = {"evidence_table": "quota_advice", "config_value": value, "prior_value": prior}
    return desired(**({"name": "dave"} | row | others))


def limit(name: str, value: str | None = "1", prior: str | None = None) -> DesiredConfig:
    row = {"entity_type": "ip", "config_key": CONNECTIONS, "prior_value": prior}
    return desired(name, **row, config_value=value)


def of_broker(key: str, value: str | None, prior: str | None = None) -> DesiredConfig:
    row = {"entity_type": "broker", "config_key": key, "prior_value": prior}
    return desired("1", **row, config_value=value)


def of_topic(value: str | None, prior: str | None = None) -> DesiredConfig:
    row = {"entity_type": "topic", "config_key": LIST, "prior_value": prior}
    return desired("t", **row, config_value=value)


def written(
    rows: list[DesiredConfig],
    conf: Conf = CONF,
    journal: ListJournal | None = None,
    clock: Clock | None = None,
    says: ClusterFacts = NOTHING,
) -> tuple[list[Outcome], DictConfigs]:
    """What apply writes of a plan that was made without the bounds, as a forged one is."""
    configs, clock = DictConfigs(says=says), clock or Clock()
    journal = journal or ListJournal()
    for row in rows:
        if row.prior_value is not None:
            configs.configs.setdefault(row.entity, {})[row.config_key] = row.prior_value
    policy = PlanPolicy(lease_s=600, max_step_factor=1e9)
    made = planned(*rows, bounds=policy, ledger=journal.ledger, now=clock.now)
    distrust = distrusting(context.of_plans(conf).trusted, configs, journal.ledger, clock)
    writer = applying(configs, journal, "r", clock, distrust=distrust)
    return writer.run(made.plan_id, made.changes), configs


REFUSED: dict[str, tuple[DesiredConfig, str]] = {
    **case_tables.table(
        __file__,
        "REFUSED",
        advised,
        desired,
        limit,
        of_broker,
        of_topic,
        replace,
        UNSPECIFIED=UNSPECIFIED,
        IDS=IDS,
        RATE=RATE,
        EXPIRATION=EXPIRATION,
    ),
    "a long lease": (advised("70000", lease_s=10**8), "the lease is 100000000 s"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_forged_row_is_not_written(case: str) -> None:
    row, why = REFUSED[case]
    (outcome,), configs = written([row])
    assert (outcome.step, configs.writes) == ("refused", 0)
    assert why in str(outcome.detail)


ALLOWED: dict[str, tuple[DesiredConfig, Conf]] = {
    "a first quota of an advised user": (advised("70000"), CONF),
    "a raise": (advised("200000", "100000", direction="raise"), CONF),
    "a limit of an address": (limit("10.0.0.7"), CONF),
    "a lower limit": (limit("10.0.0.7", "1", "5"), CONF),
    "ids as conf says": (desired("eve", config_key=IDS, config_value="1.0"), CONF),
    "a throttle": (of_broker(RATE, "2000000"), MANAGED),
    "a list": (of_topic("0:1"), MANAGED),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_conf_allows_is_written(case: str) -> None:
    row, conf = ALLOWED[case]
    (outcome,), configs = written([row], conf)
    assert (outcome.step, outcome.detail, configs.writes) == ("done", None, 1)


def test_a_plan_names_the_bound_before_apply_does() -> None:
    policy = PlanPolicy(lease_s=600, trusted=context.of_plans(CONF).trusted)
    made = planned(limit("127.0.0.1"), limit("10.0.0.7"), bounds=policy)
    assert [change.entity.entity_name for change in made.changes] == ["10.0.0.7"]
    assert "(loopback)" in made.blocked[0].reason


def test_conf_may_name_a_loopback_address_and_no_other_special_one() -> None:
    ids = CONF.producer_ids.model_copy(update={"limited_addresses": ["127.0.0.5", UNSPECIFIED]})
    conf = CONF.model_copy(update={"producer_ids": ids})
    outcomes, _ = written([limit(UNSPECIFIED), limit("127.0.0.5")], conf)
    assert [outcome.step for outcome in outcomes] == ["refused", "done"]


def test_a_throttle_stays_within_the_capacity_of_conf() -> None:
    (outcome,), _ = written([of_broker(RATE, "20000000")], MANAGED)
    assert "capacity of the broker" in str(outcome.detail)


def test_the_cluster_knows_its_brokers_and_its_defaults() -> None:
    says = ClusterFacts(
        frozenset({"10.0.0.7"}), {("user", BYTES): 80_000.0, ("ip", CONNECTIONS): 9}
    )
    rows = [limit("10.0.0.7"), limit("10.0.0.8", "10"), limit("10.0.0.6", "9")]
    rows += [advised("80001"), advised("80000", name="eve")]
    quotas = CONF.quotas.model_copy(update={"advised_users": ["*"]})
    outcomes, _ = written(rows, CONF.model_copy(update={"quotas": quotas}), says=says)
    whys = {str(o.change.entity.entity_name): o.detail for o in outcomes}
    assert whys == {
        "10.0.0.6": None,
        "10.0.0.7": "it is the address of a broker",
        "10.0.0.8": "10 is more than 9, the default that binds it now",
        "dave": "80001 is more than 80000, the default that binds it now",
        "eve": None,
    }


def test_a_quota_is_raised_once_a_day_by_our_own_records() -> None:
    journal, clock = ListJournal(), Clock()
    (first,), _ = written([advised("200000", "100000", direction="raise")], CONF, journal, clock)
    assert first.step == "done"
    clock.now += timedelta(hours=23)
    again = advised("400000", "200000", direction="raise", observed=5.0)
    (early,), _ = written([again], CONF, journal, clock)
    assert "a raise waits for a day" in str(early.detail)
    clock.now += timedelta(hours=2)
    (late,), _ = written([again], CONF, journal, clock)
    assert late.step == "done"


def test_all_raises_share_the_capacity_of_conf() -> None:
    quotas = CONF.quotas.model_copy(update={"advised_users": ["*"]})
    conf, journal = CONF.model_copy(update={"quotas": quotas}), ListJournal()
    for name, step in (("a", "done"), ("b", "done"), ("c", "refused")):
        raised = advised("2000000", "1000000", name=name, direction="raise")
        (outcome,), _ = written([raised], conf, journal, Clock())
        assert outcome.step == step


def test_raises_of_one_run_share_it_too_and_no_config_is_written_twice() -> None:
    quotas = CONF.quotas.model_copy(update={"advised_users": ["*"]})
    conf = CONF.model_copy(update={"quotas": quotas})
    rows = [advised("2000000", "1000000", name=name, direction="raise") for name in "abc"]
    outcomes, _ = written(rows, conf)
    assert [outcome.step for outcome in outcomes].count("refused") == 1
    (change,) = planned(limit("10.0.0.7")).changes
    bounds = context.of_plans(CONF).trusted
    why = trusted_bounds.problem([change, change], {}, bounds, Ledger(), NOON)
    assert why == "one config has two changes"


def test_only_what_is_ours_is_given_back_and_only_to_what_it_was() -> None:
    journal = ListJournal()
    written([limit("10.0.0.7", "1", "5"), of_topic("0:1")], MANAGED, journal)
    bounds = context.of_plans(CONF).trusted

    def back(row: DesiredConfig, operation: Operation, value: str | None) -> str | None:
        change = Change(row, value, operation, "", "", purpose=RESTORE)
        return trusted_bounds.problem([change], {}, bounds, journal.ledger, NOON)

    row = limit("10.0.0.7", prior="1")
    assert back(row, Operation("SET", "5"), "5") is None
    assert "no value that it had" in str(back(row, Operation("SET", "6"), "6"))
    entries = of_topic(None, prior="0:1,0:2")
    assert back(entries, Operation(SUBTRACT, "0:1"), "0:2") is None
    assert "only entries of ours" in str(back(entries, Operation(SUBTRACT, "0:2"), "0:1"))


class Broker:
    """Answers of a cluster of one broker, as kafka-python gives them."""

    def __init__(self, **columns: Any) -> None:
        self.__dict__.update(columns)


class State:
    def brokers(self) -> list[dict[str, Any]]:
        return [{"host": "kafka-1"}, {"host": "gone"}]

    def client_quotas(self) -> list[Broker]:
        def entry(value: float, **parts: str | None) -> Broker:
            entity = [
                Broker(entity_type=kind.replace("_", "-"), entity_name=name)
                for kind, name in parts.items()
            ]
            return Broker(entity=entity, values=[Broker(key=BYTES, value=value)])

        return [
            entry(5.0, user=None),
            entry(4.0, user=None, client_id=None),
            entry(1.0, user="eve"),
            entry(2.0, client_id="app"),
            entry(9.0, ip=None),
        ]


def test_hosts_that_resolve_are_addresses_and_the_least_default_counts() -> None:
    hosts = {"kafka-1": ["10.0.0.1", "2001:db8:0:0:0:0:0:1"]}
    facts = cluster_facts.read(State(), lambda host: hosts.get(host, []))  # type: ignore[arg-type]
    assert facts.broker_addresses == {"10.0.0.1", "2001:db8::1"}
    assert facts.default_quotas == {("user", BYTES): 4.0, ("ip", BYTES): 9.0}
    assert set(cluster_facts.resolved("no.such.host.invalid")) == set()


def test_a_ledger_without_records_bounds_nothing_by_itself() -> None:
    change = planned(limit("10.0.0.7")).changes
    assert (
        trusted_bounds.problem(change, {}, context.of_plans(CONF).trusted, Ledger(), NOON) is None
    )
