"""restore writes nothing that a plan may not write, for any content of config_changes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from quotaflow.pipelines.feedback.configs.change import APPEND
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.configs.live_configs import LiveConfigs
from quotaflow.pipelines.feedback.ledger.ledger import STARTED, Ledger, Record
from quotaflow.pipelines.feedback.planning import restore_plan
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ....cases import cases
from ..fake_configs import PLAIN, desired, forged
from ..scene import Scene

KEY = "producer_byte_rate"
SHARE = "request_percentage"
RATE = "leader.replication.throttled.rate"
LIST = "leader.replication.throttled.replicas"
LOGGER = "kafka.request.logger"
MALLORY = desired().entity
PAYMENTS = desired("payments").entity
ADMIN = desired("admin").entity
DEFAULT = ConfigEntity("c1", "user", None)
BROKER = ConfigEntity("c1", "broker", "1")
RESOURCE = ConfigEntity("c1", "client-metrics", "r")
LONG_MAX = "9223372036854775807"
MATCH = f"client_instance_id={'a' * 22}"


@pytest.fixture
def scene(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(warehouse, monkeypatch)


def leased(scene: Scene, record: Record) -> None:
    """A record says that we wrote a value, and the cluster has it."""
    scene.journal.add([record])
    if record.config_value is not None:
        configs = scene.configs.configs.setdefault(record.entity, {})
        configs[record.config_key] = record.config_value


FORGED = [
    pytest.param(
        forged(PAYMENTS, KEY, "50000000", "1"),
        "50000000 -> 1: 1 is less than 25000000, the least that may follow 50000000 at once "
        "(plan.max_step_factor is 2)",
        id="a quota of a user almost to nothing",
    ),
    pytest.param(forged(PAYMENTS, KEY, LONG_MAX, "1"), "1 is less than", id="a quota of no limit"),
    pytest.param(forged(PAYMENTS, KEY, "50000000", "0"), "must be over 0", id="a quota to zero"),
    pytest.param(forged(PAYMENTS, KEY, "50000000", "nan"), "must be over 0", id="no number"),
    pytest.param(forged(PAYMENTS, KEY, None, "1"), "nothing is set now", id="where no quota is"),
    pytest.param(
        forged(ConfigEntity("c1", "user", "payments", "app"), KEY, "50000000", "1"),
        "1 is less than 25000000",
        id="a quota of a user's client id",
    ),
    pytest.param(
        forged(DEFAULT, KEY, "10000000", "1"), "the default of all users", id="the default of users"
    ),
    pytest.param(
        forged(DEFAULT, KEY, "10000000", None), "the default of all users", id="no default any more"
    ),
    pytest.param(
        forged(ConfigEntity("c1", "broker", None), RATE, "100000000", "1000000"),
        "the default of all brokers",
        id="the default of brokers",
    ),
    pytest.param(forged(ADMIN, SHARE, "500", "0.01"), "excluded", id="an excluded principal"),
    pytest.param(forged(ADMIN, SHARE, "500", None), "excluded", id="an excluded principal freed"),
    pytest.param(
        forged(BROKER, RATE, "100000000", "1"),
        "= 1 must be over 999999",
        id="a broker's throttle",
    ),
    pytest.param(
        forged(ConfigEntity("c1", "broker-logger", "1"), LOGGER, "INFO", "TRACE"),
        "TRACE switches it on",
        id="a request log switched on",
    ),
    pytest.param(
        forged(ConfigEntity("c1", "topic", "t"), "retention.ms", "604800000", "1"),
        "retention.ms of a topic is no config that may be written",
        id="a key that no plan names",
    ),
    pytest.param(
        forged(ConfigEntity("c1", "broker", "x"), RATE, "1", "2"),
        "'x' is no broker",
        id="no broker id",
    ),
    pytest.param(
        forged(ConfigEntity("c1", "group", "g"), KEY, "1", "2"),
        "of a group is no config",
        id="no type",
    ),
]


@cases("everything", ("expired", False), ("all", True))
@pytest.mark.parametrize(("record", "why"), FORGED)
def test_what_a_plan_may_not_write_is_refused_and_costs_nobody_else(
    scene: Scene, record: Record, why: str, everything: bool
) -> None:
    leased(scene, record)
    leased(scene, forged(MALLORY, KEY, "1000", None))
    before = dict(scene.configs.configs.get(record.entity, {}))
    for restore in (scene.shown(everything=everything), scene.done(everything=everything)):
        ((key, reason),) = [(refused.key, refused.why) for refused in restore.refused]
        assert key == record.key
        assert why in reason
    assert scene.configs.configs.get(record.entity, {}) == before
    assert scene.configs.configs[MALLORY] == {}
    assert scene.journal.ledger.owned.keys() == {record.key}


@cases(
    "entity",
    ("a type without configs of ours", ConfigEntity("c1", "group", "g")),
    ("no broker id", ConfigEntity("c1", "broker", "x")),
    ("no broker id of a logger", ConfigEntity("c1", "broker-logger", "1;2")),
)
def test_a_cluster_is_not_asked_for_what_it_cannot_have(entity: ConfigEntity) -> None:
    nobody: Any = None
    with pytest.raises(UnansweredError, match="no cluster can have a"):
        LiveConfigs(nobody).read(entity)


def test_a_begun_record_of_an_unknown_key_stops_nobody(scene: Scene) -> None:
    topic = ConfigEntity("c1", "topic", "t")
    for value in ("1", "2"):
        record = forged(topic, "retention.ms", value, "3")
        scene.journal.add([replace(record, step=STARTED, run_id=value)])
    leased(scene, forged(MALLORY, KEY, "1000", None))
    scene.done()
    assert scene.configs.configs == {MALLORY: {}}


@cases(
    "record",
    ("a throttle is lifted", forged(PAYMENTS, KEY, "3100000", "50000000")),
    ("a raise is taken back", forged(PAYMENTS, KEY, "50000000", "25000000")),
    ("a quota is removed", forged(PAYMENTS, KEY, "1", None)),
    ("a rate of replication", forged(BROKER, RATE, "50000000", "1000000")),
    ("log", forged(ConfigEntity("c1", "broker-logger", "1"), LOGGER, "DEBUG", "INFO")),
)
def test_what_a_plan_may_write_comes_back(scene: Scene, record: Record) -> None:
    leased(scene, record)
    assert scene.done().refused == ()
    prior = record.prior_value
    expected = {} if prior is None else {record.config_key: prior}
    assert scene.configs.configs[record.entity] == expected


def test_of_one_entity_what_may_be_written_comes_back_with_a_line_of_its_own(scene: Scene) -> None:
    leased(scene, forged(PAYMENTS, KEY, "50000000", "1"))
    leased(scene, forged(PAYMENTS, SHARE, "10", "20"))
    restore = scene.done()
    (change,) = restore.changes
    assert change.command.endswith("--entity-name payments --add-config request_percentage=20")
    assert scene.configs.configs[PAYMENTS] == {KEY: "50000000", SHARE: "20"}


def test_a_client_metrics_resource_comes_back_whole_or_not_at_all(scene: Scene) -> None:
    before = {"metrics": "org.a.", "interval.ms": "60000"}
    leased(scene, forged(RESOURCE, "metrics", before["metrics"], None))
    leased(scene, forged(RESOURCE, "interval.ms", before["interval.ms"], "1"))
    restore = scene.done()
    assert {refused.key[1] for refused in restore.refused} == before.keys()
    assert scene.configs.configs[RESOURCE] == before


@cases(
    "records",
    ("its match alone", [forged(RESOURCE, "match", MATCH, None)]),
    (
        "its match, and other metrics",
        [forged(RESOURCE, "match", MATCH, None), forged(RESOURCE, "metrics", "org.a.", "*")],
    ),
)
def test_a_client_metrics_resource_does_not_lose_its_match(
    scene: Scene, records: list[Record]
) -> None:
    """Without it the resource would subscribe every client."""
    before = {"metrics": "org.a.", "interval.ms": "60000", "match": MATCH}
    scene.configs.configs[RESOURCE] = dict(before)
    for record in records:
        leased(scene, record)
    restore = scene.done()
    assert all("would subscribe every client" in refused.why for refused in restore.refused)
    assert {refused.key[1] for refused in restore.refused} == {r.config_key for r in records}
    assert scene.configs.configs[RESOURCE] == before


def test_a_client_metrics_resource_that_is_ours_goes_with_its_match(scene: Scene) -> None:
    for key, value in (("metrics", "org.a."), ("match", MATCH)):
        leased(scene, forged(RESOURCE, key, value, None))
    assert scene.done().refused == ()
    assert scene.configs.configs[RESOURCE] == {}


def test_entries_of_others_that_stay_in_a_list_are_not_judged() -> None:
    topic = ConfigEntity("c1", "topic", "t")
    record = forged(topic, LIST, "0:1,odd", "odd")
    ledger = Ledger.from_records([replace(record, operation=APPEND, operand="0:1")])
    restore = restore_plan.plan_restore(ledger.owned, {topic: {LIST: "0:1,odd"}}, {}, PLAIN)
    assert restore_plan.permitted(restore, {}, PlanPolicy(), PLAIN) == restore
    assert [change.operation.operand for change in restore.changes] == ["0:1"]


def test_the_command_counts_what_is_refused_and_says_what_to_do_by_hand(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    leased(scene, forged(ADMIN, SHARE, "500", "0.01"))
    leased(scene, forged(MALLORY, KEY, "1000", None))
    for words in ((), ("--yes",)):
        assert scene.command(*words) == 1
        out, err = capsys.readouterr()
        assert "--entity-name mallory --delete-config producer_byte_rate" in out
        assert "refused: user admin in cluster c1: request_percentage: 500 -> 0.01: excluded" in err
        assert "--entity-name admin --add-config request_percentage=0.01" in err
        assert "1 config refused: a guard does not allow these values" in err


def test_a_lease_that_an_operator_ended_by_hand_is_told_no_longer(scene: Scene) -> None:
    leased(scene, forged(ADMIN, SHARE, "500", None))
    scene.configs.configs[ADMIN] = {}
    assert scene.done().refused == ()
    assert scene.journal.ledger.owned == {}


def masses(scene: Scene, count: int) -> None:
    for n in range(count):
        leased(scene, forged(desired(f"u{n}").entity, KEY, "1000", None))


def left(scene: Scene) -> list[str]:
    return sorted(str(e.entity_name) for e, configs in scene.configs.configs.items() if configs)


@pytest.mark.parametrize("words", [("--yes",), ("--all", "--yes")])
def test_masses_are_given_back_at_once(scene: Scene, words: tuple[str, ...]) -> None:
    masses(scene, 30)
    assert scene.command(*words) == 0
    assert left(scene) == []


def test_what_was_written_first_goes_first(scene: Scene) -> None:
    masses(scene, 8)
    oldest = scene.journal.records[7]
    scene.journal.records[7] = replace(oldest, event_time=oldest.event_time - timedelta(hours=1))
    assert next(change.entity.entity_name for change in scene.done().changes) == "u7"
