"""Conf: strict keys, every problem at once, and --set in its forms."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config.plan import Manager
from quotaflow.pipelines.config.receivers import Receiver
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.spark import jars
from quotaflow.pipelines.warehouse import views

from ... import case_tables
from ...cases import cases

_HOOK = Receiver(name="a", url="env:X")


def load(tmp_path: Path, text: str, *pairs: str) -> config.Conf:
    file = tmp_path / "conf.yaml"
    file.write_text(text, encoding="utf-8")
    return config.load(file, list(pairs))


def test_the_packaged_conf_is_valid_and_all_defaults() -> None:
    conf = config.load()
    assert conf.model_copy(update={"kafka": config.KafkaSection()}) == config.Conf()
    assert list(conf.kafka.properties) == ["bootstrap.servers"]


@pytest.mark.parametrize(
    "text",
    ["", "warehouse:\n", "kafka:\n  properties:\nwarehouse:\n"],
    ids=["none", "null", "both"],
)
def test_sections_whose_lines_are_commented_out_are_defaults(tmp_path: Path, text: str) -> None:
    if "properties" in text:
        with pytest.raises(ConfigError, match=r"kafka\.properties"):
            load(tmp_path, text)
    else:
        assert load(tmp_path, text) == config.Conf()


def test_every_problem_is_in_one_error(tmp_path: Path) -> None:
    text = "ingest: {max_line_bytes: 0, shipper: [a]}\nresults: {settle_s: ten}\nwarehous: {}\n"
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    message = str(raised.value)
    assert "ingest.max_line_bytes = 0: Input should be greater than 0" in message
    assert "unknown key ingest.shipper (did you mean shippers?)" in message
    assert "results.settle_s = 'ten': Input should be a valid integer" in message
    assert "unknown key warehous (did you mean warehouse?)" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{rules: [{name: a, fors: 3}]}", r"unknown key alerts.rules.0.fors \(did you mean for_s"),
        (
            "{receivers: [{name: a, url: env:X, max_event: 3}]}",
            r"alerts.receivers.0.max_event \(did you mean max_events\?",
        ),
        ("{receivers: [{name: a, url: env:X, zz: 3}]}", r"receivers.0.zz \(known: name, "),
    ],
)
def test_an_unknown_key_is_named_wherever_it_stands(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, f"alerts: {text}")


@cases(
    ("text", "message"),
    *case_tables.rows(__file__, "what_cannot_be_right_is_refused"),
    ("long", f"rack_patterns: ['({'a' * 199})']", "more than 200 characters"),
    ("many patterns", f"rack_patterns: {['(a)'] * 11}", "at most 10 items"),
    (
        "racks of hidden addresses",
        "privacy: {key: 'env:K'}\nracks: {10.0.0.0/8: a}",
        "racks need addresses, which privacy.columns hides",
    ),
)
def test_what_cannot_be_right_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        load(tmp_path, text)
    assert "hunter2" not in str(raised.value)
    assert "Value error" not in str(raised.value)


@pytest.mark.parametrize("topic", ["request_log_topic", "receiver_topic", "otlp_topic"])
@cases(
    ("name", "right"),
    ("empty", "''", "write null for none"),
    ("a folder", "..", "write null for none"),
    ("a space", "a b", "write a_b"),
    ("too long", f"{'x' * 250}", f"write {'x' * 249}"),
    ("other letters", "größe", "write gr__e"),
)
def test_a_topic_has_a_name_that_kafka_takes(
    tmp_path: Path, topic: str, name: str, right: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, f"ingest: {{{topic}: {name}}}")
    assert f"ingest.{topic} = '{name.strip(chr(39))}': a topic has 1 to 249 " in str(raised.value)
    assert str(raised.value).endswith(right)


@pytest.mark.parametrize("name", ["a", "A.b_c-1", "...", "x" * 249])
def test_what_kafka_takes_as_a_topic_is_taken(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, f"ingest: {{otlp_topic: {name}}}").ingest.otlp_topic == name


def test_managers_that_may_be_tolerated_are_the_kinds_that_are_told() -> None:
    sql = views.load()["other_config_managers"].sql
    kinds = re.findall(r"(?:THEN|ELSE) '(.+?)'|'(.+?)' AS kind", sql)
    assert {then or literal for then, literal in kinds} == set(get_args(Manager))


def test_a_broken_line_is_named_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 3") as raised:
        load(tmp_path, "kafka:\n  hunter2: [hunter2\n  a: b\n")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("pair", "section", "value"),
    [
        ("warehouse.path=/data", "warehouse", {"path": "/data"}),
        ("warehouse.path=", "warehouse", {"path": None}),
        ("ingest.shippers=[a, b]", "ingest", {"shippers": ["a", "b"]}),
        ("ingest.receiver_topic=null", "ingest", {"receiver_topic": None}),
        ("producer_ids.quotas.alice=2.5", "producer_ids", {"quotas": {"alice": 2.5}}),
        ("producer_ids.quotas.a.b=2", "producer_ids", {"quotas": {"a.b": 2.0}}),
        ('producer_ids.quotas."CN=a,OU=b.c"=2', "producer_ids", {"quotas": {"CN=a,OU=b.c": 2.0}}),
        ("producer_ids.quotas.'CN=a, OU=b'=2", "producer_ids", {"quotas": {"CN=a, OU=b": 2.0}}),
        ('producer_ids.quotas."arn:aws:x/y"=2', "producer_ids", {"quotas": {"arn:aws:x/y": 2.0}}),
        ("producer_ids.quotas.arn:aws:x/y=2", "producer_ids", {"quotas": {"arn:aws:x/y": 2.0}}),
        ('kafka.properties."client.id"=a=b', "kafka", {"properties": {"client.id": "a=b"}}),
        ('quotas.advised_users=["CN=a,OU=b"]', "quotas", {"advised_users": ["CN=a,OU=b"]}),
        ("upkeep.retention_days.requests=14", "upkeep", {"retention_days": {"requests": 14}}),
        ('alerts.receivers=[{name: a, url: "env:X"}]', "alerts", {"receivers": [_HOOK]}),
        ("kafka.properties.client.id=0123", "kafka", {"properties": {"client.id": "0123"}}),
        ("kafka.properties.x=a: [b", "kafka", {"properties": {"x": "a: [b"}}),
        ("kafka.properties={x: yes}", "kafka", {"properties": {"x": "true"}}),
        ("spark.conf.spark.ui.enabled=true", "spark", {"conf": {"spark.ui.enabled": "true"}}),
    ],
)
def test_set_changes_one_value(
    tmp_path: Path, pair: str, section: str, value: dict[str, object]
) -> None:
    loaded = getattr(load(tmp_path, "", pair), section)
    assert {name: getattr(loaded, name) for name in value} == value


@cases(
    ("pair", "message"),
    ("no value", "warehouse", "write section.key=value"),
    ("no key", "warehouse=/x", "write section.key=value"),
    ("no YAML", "warehouse.path=[", "is not YAML"),
    ("no such section", "nope.x=1", "unknown key nope"),
    ("no such key", "results.settle=1", "did you mean settle_s"),
    ("a secret", "kafka.properties.sasl.password=hunter2", "plain text"),
    (
        "a DN without quotes",
        "producer_ids.quotas.CN=a,OU=b=5",
        r"""--set 'producer_ids.quotas."CN=a,OU=b"=5'""",
    ),
    (
        "a DN in a list",
        "plan.excluded_principals=[User:CN=a,OU=b]",
        r"""--set 'plan.excluded_principals=\["User:CN=a,OU=b"\]'""",
    ),
    ("of users", "quotas.advised_users=[CN=a,OU=b]", "quote each name"),
)
def test_a_wrong_pair_is_one_error(tmp_path: Path, pair: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        load(tmp_path, "", pair)
    assert "hunter2" not in str(raised.value)


@cases(
    ("pairs", "message"),
    ("the file's", [], "{file}: plan.lease_s = 5: Input"),
    ("of --set", ["plan.lease_s=60", "plan.max_entities=0"], "--set: plan.max_entities = 0: Input"),
    (
        "of both",
        ["plan.max_entities=0"],
        "{file}: plan.lease_s = 5: .*60; --set: plan.max_entities = 0: Input",
    ),
    (
        "what does not go with the file's",
        ["plan.lease_s=60", "warehouse.catalog_schema=a.b"],
        "--set: warehouse: path and catalog_schema exclude each other",
    ),
    ("a key", ["plan.lease_s=60", "results.settle=1"], "--set: unknown key results.settle"),
)
def test_an_error_names_what_the_value_came_from(
    tmp_path: Path, pairs: list[str], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, "plan: {lease_s: 5}\nwarehouse: {path: /a}", *pairs)
    assert re.match(message.format(file=re.escape(str(tmp_path / "conf.yaml"))), str(raised.value))


@pytest.mark.parametrize("key", ["plan.lease_s", "replication.lease_s"])
@pytest.mark.parametrize(("value", "bound"), [(59, 60), (2_592_001, 2_592_000)])
def test_a_lease_is_within_what_upkeep_keeps(
    tmp_path: Path, key: str, value: int, bound: int
) -> None:
    with pytest.raises(ConfigError, match=rf"{key} = {value}: .* equal to {bound}$"):
        load(tmp_path, "", f"{key}={value}")


@pytest.mark.parametrize("text", ["kafka: text", "kafka: {properties: text}"])
def test_set_into_what_holds_no_keys_is_one_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="must hold keys and values"):
        load(tmp_path, text, "kafka.properties.client.id=x")


def test_an_empty_home_variable_is_as_if_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTAFLOW_HOME", "")
    assert config.home() == Path.home() / ".quotaflow"


@cases(
    ("find", "instead"),
    ("tables", config.home, "QUOTAFLOW_HOME"),
    ("cache", jars.cache_folder, "XDG_CACHE_HOME"),
    ("named in conf", lambda: config.WarehouseSection(path="~/tables").folder, "an absolute path"),
)
def test_a_user_without_a_home_is_one_error(
    monkeypatch: pytest.MonkeyPatch, find: Callable[[], Path], instead: str
) -> None:
    for name in ("HOME", "QUOTAFLOW_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    with pytest.raises(ConfigError, match=f"set HOME, or {instead}$"):
        find()


@pytest.mark.parametrize(
    ("key", "message"),
    [(None, "environment variable PRIVACY_TEST_KEY is not set"), ("hunter2", "at least 32 are")],
    ids=["unset", "short"],
)
def test_a_key_that_protects_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str | None, message: str
) -> None:
    if key is not None:
        monkeypatch.setenv("PRIVACY_TEST_KEY", key)
    privacy = load(tmp_path, "privacy: {key: 'env:PRIVACY_TEST_KEY'}").privacy
    with pytest.raises(ConfigError, match=message) as raised:
        privacy.pseudonyms()
    assert "hunter2" not in str(raised.value)


def test_racks_go_with_hidden_client_ids(tmp_path: Path) -> None:
    text = "privacy: {key: 'env:K', columns: [client_id]}\nracks: {10.0.0.0/8: a}"
    assert load(tmp_path, text).privacy.hides("client_id")
    assert not load(tmp_path, "").privacy.hides("client_id")


SECRETS = """
secrets: {scope: prod}
kafka: {properties: {sasl.username: q, sasl.password: secret:pw, ssl.key.password: secret:a/b}}
privacy: {key: secret:names}
alerts: {receivers: [{name: a, url: secret:hook}]}
quotas: {advised_users: [secret:agent]}
"""


@cases(
    ("pairs", "scope"),
    ("of the file", [], "prod"),
    ("of a pair", ["secrets.scope=dev_you"], "dev_you"),
)
def test_a_reference_without_a_scope_is_in_the_scope_of_conf(
    tmp_path: Path, pairs: list[str], scope: str
) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(SECRETS, encoding="utf-8")
    conf = config.load(file, pairs)
    assert conf.kafka.properties["sasl.password"] == f"secret:{scope}/pw"
    assert conf.kafka.properties["ssl.key.password"] == "secret:a/b"
    assert conf.privacy.key == f"secret:{scope}/names"
    assert conf.alerts.receivers[0].url == f"secret:{scope}/hook"
    assert conf.quotas.advised_users == ["secret:agent"]


def test_a_scope_that_databricks_could_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"secrets\.scope.*letters, digits"):
        load(tmp_path, "secrets: {scope: a/b}")
