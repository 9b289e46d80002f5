"""Conf from the environment: variables by the names of keys, and the file where none is named."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.config.alerts import Webhook
from quotaflow.pipelines.config.base import model_in
from quotaflow.pipelines.errors import ConfigError

from ...cases import cases

SERVERS = "QUOTAFLOW__KAFKA__PROPERTIES__BOOTSTRAP_SERVERS"
PASSWORD = "QUOTAFLOW__KAFKA__PROPERTIES__SASL_PASSWORD"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a conf file."""

    def written(text: str, name: str = "conf.yaml") -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return written


@pytest.fixture
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this user's conf would be."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "of user"))
    return tmp_path / "of user" / "quotaflow" / "conf.yaml"


def loaded(variables: Mapping[str, str], text: str, write: Write, *pairs: str) -> config.Conf:
    return config.load(write(text), list(pairs), variables)


# A key, its value in a variable, in a file and by --set, and what each of these gives.
PRECEDENCE = [
    pytest.param("plan.lease_s", "61", "62", "63", (61, 62, 63), id="number"),
    pytest.param("plan.canary", "no", "true", "false", (False, True, False), id="truth"),
    pytest.param("warehouse.path", "/ä b", "/f", "/s", ("/ä b", "/f", "/s"), id="text"),
    pytest.param("warehouse.path", "null", "/f", "/s", (None, "/f", "/s"), id="null over text"),
    pytest.param(
        "ingest.receiver_topic", "t", "null", "null", ("t", None, None), id="text over null"
    ),
    pytest.param(
        "ingest.shippers", "[a, b]", "[c]", "[]", (["a", "b"], ["c"], []), id="list in YAML"
    ),
    pytest.param(
        "ingest.shippers", '["a,b"]', "[c]", "[d]", (["a,b"], ["c"], ["d"]), id="list in JSON"
    ),
    pytest.param(
        "producer_ids.quotas",
        '{"Alice": 2.5}',
        "{bob: 1}",
        "{carol: 3}",
        ({"Alice": 2.5}, {"bob": 1.0}, {"carol": 3.0}),
        id="map",
    ),
    pytest.param(
        "serve.token", "env:A", "env:B", "file:/c", ("env:A", "env:B", "file:/c"), id="reference"
    ),
    pytest.param(
        "alerts.webhook",
        "{url: env:A}",
        "{url: env:B}",
        "{url: env:C}",
        tuple(Webhook(url=f"env:{name}") for name in "ABC"),
        id="section that may be null",
    ),
    pytest.param("prices.currency", "EUR", "CHF", "GBP", ("EUR", "CHF", "GBP"), id="bounded text"),
    pytest.param(
        "prices.produced_per_gib", "0", "1.5", "null", (0.0, 1.5, None), id="price that may be null"
    ),
]


@pytest.mark.parametrize(("key", "variable", "in_file", "pair", "expected"), PRECEDENCE)
def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    *,
    key: str,
    variable: str,
    in_file: str,
    pair: str,
    expected: tuple[Any, Any, Any],
    write: Write,
) -> None:
    section, name = key.split(".")
    named = {f"QUOTAFLOW__{section}__{name}".upper(): variable}
    text = f"{section}: {{{name}: {in_file}}}"

    def value(*arguments: Any) -> Any:
        return getattr(getattr(loaded(*arguments), section), name)

    assert value({}, text, write) == expected[1]
    default = getattr(getattr(config.Conf(), section), name)
    assert value({}, "", write) == default
    assert value(named, text, write) == expected[0]
    assert value(named, "", write) == expected[0]
    assert value(named, text, write, f"{key}={pair}") == expected[2]


@cases(
    ("variables", "section", "value"),
    (
        "entry beside the file's",
        {SERVERS: "h:1,i:2"},
        "kafka",
        {"properties": {"bootstrap.servers": "h:1,i:2", "client.id": "f"}},
    ),
    (
        "map in place of the file's",
        {"QUOTAFLOW__KAFKA__PROPERTIES": "{client.id: x}"},
        "kafka",
        {"properties": {"client.id": "x"}},
    ),
    (
        "entry over a map, in any order",
        {
            "QUOTAFLOW__KAFKA__PROPERTIES__CLIENT_ID": "y",
            "QUOTAFLOW__KAFKA__PROPERTIES": "{client.id: x, acks: 1}",
        },
        "kafka",
        {"properties": {"client.id": "y", "acks": "1"}},
    ),
    (
        "text that YAML would change",
        {"QUOTAFLOW__KAFKA__PROPERTIES__CLIENT_ID": "0123"},
        "kafka",
        {"properties": {"client.id": "0123"}},
    ),
    (
        "a plug-in's name as it is written",
        {"QUOTAFLOW__KAFKA__PROPERTIES__databricks.someThing": "[a"},
        "kafka",
        {"properties": {"client.id": "f", "databricks.someThing": "[a"}},
    ),
    (
        "a setting of Spark",
        {"QUOTAFLOW__SPARK__CONF__spark.sql.files.maxRecordsPerFile": "5"},
        "spark",
        {"conf": {"spark.sql.files.maxRecordsPerFile": "5"}},
    ),
    (
        "a number by a user's own name",
        {"QUOTAFLOW__PRODUCER_IDS__QUOTAS__Alice__2": "2.5"},
        "producer_ids",
        {"quotas": {"Alice__2": 2.5}},
    ),
    (
        "a whole number of a table",
        {"QUOTAFLOW__UPKEEP__RETENTION_DAYS__requests": "14"},
        "upkeep",
        {"retention_days": {"requests": 14}},
    ),
    (
        "null of a table",
        {"QUOTAFLOW__UPKEEP__RETENTION_DAYS__requests": "null"},
        "upkeep",
        {"retention_days": {"requests": None}},
    ),
    (
        "a map with numbers as names",
        {"QUOTAFLOW__REPLICATION__BROKERS": "{1: 5000000.0}"},
        "replication",
        {"brokers": {1: 5e6}},
    ),
    (
        "a key of a section that may be null",
        {"QUOTAFLOW__ALERTS__WEBHOOK__URL": "env:X"},
        "alerts",
        {"webhook": Webhook(url="env:X")},
    ),
    (
        "a section, key by key",
        {"QUOTAFLOW__PLAN": "{lease_s: 70}"},
        "plan",
        {"lease_s": 70, "cooldown_s": 99},
    ),
    ("empty", {"QUOTAFLOW__PLAN__LEASE_S": ""}, "plan", {"lease_s": 3_600}),
)
def test_names_lead_to_keys(
    variables: dict[str, str],
    section: str,
    value: dict[str, Any],
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = write("kafka: {properties: {client.id: f}}\nplan: {cooldown_s: 99}")
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    dumped = getattr(config.load(*config.given(file)), section).model_dump(exclude_unset=True)
    plain = {name: each.model_dump() if name == "webhook" else each for name, each in value.items()}
    given = dumped | ({"webhook": plain["webhook"]} if section == "alerts" else {})
    defaults = getattr(config.Conf(), section).model_dump()
    assert {name: given.get(name, defaults[name]) for name in value} == plain


@pytest.mark.parametrize(
    ("name", "text", "given"),
    [
        ("TEAMS", "[{team: a, topics: ['x*']}]", "a"),
        ("RACKS", "{10.1.0.0/16: az-b}", {"10.1.0.0/16": "az-b"}),
        ("RACK_PATTERNS", "['az=(.)']", ["az=(.)"]),
    ],
)
def test_what_has_no_section_is_a_variable_of_its_own(
    name: str, text: str, given: Any, write: Write
) -> None:
    conf = loaded({f"QUOTAFLOW__{name}": text}, "racks: {10.2.0.0/16: az-c}", write)
    value = conf.teams[0].team if name == "TEAMS" else getattr(conf, name.lower())
    assert value == given


def every_key() -> Iterator[tuple[str, Any]]:
    """Each key of a section, with its default."""
    conf = config.Conf()
    for section in config.Conf.model_fields:
        of_section = getattr(conf, section)
        for name in getattr(type(of_section), "model_fields", ()):
            yield f"{section}.{name}", getattr(of_section, name)


@pytest.mark.parametrize(("key", "default"), list(every_key()), ids=[key for key, _ in every_key()])
def test_every_key_can_be_given_by_a_variable(key: str, default: Any, write: Write) -> None:
    section, name = key.split(".")
    plain = getattr(config.Conf(), section).model_dump(mode="json")[name]
    variable = "QUOTAFLOW__" + key.replace(".", "__").upper()
    conf = loaded({variable: json.dumps(plain)}, "", write)
    assert getattr(getattr(conf, section), name) == default
    assert name in getattr(conf, section).model_fields_set


def test_no_section_and_no_key_has_what_is_between_them_in_variables() -> None:
    names = [*config.Conf.model_fields]
    for field in config.Conf.model_fields.values():
        names += getattr(model_in(field.annotation), "model_fields", ())
    assert [name for name in names if "__" in name or name != name.lower()] == []


@cases(
    ("variables", "message"),
    (
        "a key",
        {"QUOTAFLOW__PLAN__LEASES": "60"},
        "QUOTAFLOW__PLAN__LEASES: unknown key plan.leases (did you mean lease_s?)",
    ),
    (
        "a section",
        {"QUOTAFLOW__PLANN__LEASE_S": "60"},
        "QUOTAFLOW__PLANN__LEASE_S: unknown key plann (did you mean plan?)",
    ),
    (
        "a property outside of properties",
        {"QUOTAFLOW__KAFKA__BOOTSTRAP_SERVERS": "h:1"},
        "QUOTAFLOW__KAFKA__BOOTSTRAP_SERVERS: unknown key kafka.bootstrap_servers "
        "(did you mean properties.bootstrap.servers?)",
    ),
    (
        "a property",
        {"QUOTAFLOW__KAFKA__PROPERTIES__BOOTSTRAP_SERVER": "h:1"},
        "QUOTAFLOW__KAFKA__PROPERTIES__BOOTSTRAP_SERVER: kafka: Kafka has no property "
        "bootstrap.server (did you mean bootstrap.servers?)",
    ),
    (
        "a key three deep",
        {
            "QUOTAFLOW__ALERTS__WEBHOOK__URI": "env:X",
            "QUOTAFLOW__ALERTS__WEBHOOK__URL": "env:X",
        },
        "QUOTAFLOW__ALERTS__WEBHOOK__URI: unknown key alerts.webhook.uri (did you mean url?)",
    ),
    (
        "past a bound",
        {"QUOTAFLOW__PLAN__LEASE_S": "5"},
        "QUOTAFLOW__PLAN__LEASE_S: plan.lease_s = 5: Input should be greater than or equal",
    ),
    (
        "a key below a number",
        {"QUOTAFLOW__PLAN__LEASE_S__X": "5"},
        "QUOTAFLOW__PLAN__LEASE_S__X: plan.lease_s",
    ),
    (
        "a key below a number that is given",
        {"QUOTAFLOW__PLAN__LEASE_S__X": "5", "QUOTAFLOW__PLAN__LEASE_S": "60"},
        "QUOTAFLOW__PLAN__LEASE_S__X: lease_s in conf must hold keys and values",
    ),
    (
        "two that exclude each other",
        {"QUOTAFLOW__WAREHOUSE__PATH": "/a", "QUOTAFLOW__WAREHOUSE__CATALOG_SCHEMA": "a.b"},
        "QUOTAFLOW__WAREHOUSE__PATH, QUOTAFLOW__WAREHOUSE__CATALOG_SCHEMA: warehouse: path and "
        "catalog_schema exclude each other",
    ),
    ("a text in place of a section", {"QUOTAFLOW__PLAN": "no"}, "QUOTAFLOW__PLAN: plan"),
    ("small letters", {"QUOTAFLOW__plan__LEASE_S": "60"}, "write QUOTAFLOW__PLAN__LEASE_S"),
    ("in its head", {"quotaflow__PLAN__LEASE_S": "60"}, "write QUOTAFLOW__PLAN__LEASE_S"),
    ("one underscore", {"QUOTAFLOW_PLAN__LEASE_S": "60"}, "write QUOTAFLOW__PLAN__LEASE_S"),
    ("the file", {"QUOTAFLOW__CONF": "/x"}, "write QUOTAFLOW_CONF"),
    ("the home", {"QUOTAFLOW__HOME": "/x"}, "write QUOTAFLOW_HOME"),
    ("no name", {"QUOTAFLOW__": "x"}, "write QUOTAFLOW__SECTION__KEY"),
    ("no key", {"QUOTAFLOW__PLAN__": "x"}, "write QUOTAFLOW__SECTION__KEY"),
    (
        "one key twice",
        {SERVERS: "h:1", "QUOTAFLOW__KAFKA__PROPERTIES__bootstrap.servers": "h:2"},
        f"{SERVERS} and QUOTAFLOW__KAFKA__PROPERTIES__bootstrap.servers are the same key",
    ),
    (
        "names that YAML splits",
        {"QUOTAFLOW__PLAN__EXCLUDED_PRINCIPALS": "[User:CN=a,OU=b]"},
        "QUOTAFLOW__PLAN__EXCLUDED_PRINCIPALS='[\"User:CN=a,OU=b\"]'",
    ),
    (
        "a secret",
        {PASSWORD: "hunter2"},
        f"{PASSWORD}: kafka: sasl.password holds a secret in plain text: write env:NAME",
    ),
    (
        "a secret that is no YAML",
        {PASSWORD: "[hunter2", "QUOTAFLOW__SERVE__TOKEN": "[hunter2"},
        "QUOTAFLOW__SERVE__TOKEN: the value is not YAML",
    ),
    ("a token", {"QUOTAFLOW__SERVE__TOKEN": "hunter2"}, "QUOTAFLOW__SERVE__TOKEN: serve."),
    ("a secret section", {"QUOTAFLOW__PRIVACY": "hunter2"}, "QUOTAFLOW__PRIVACY: privacy"),
)
def test_a_wrong_variable_is_one_error_with_its_name(
    variables: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    write: Write,
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert execute(["conf", "check", "--conf", str(write(""))]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert "hunter2" not in printed.err + printed.out


def test_each_problem_names_what_made_it(write: Write) -> None:
    file = write("plan: {lease_s: 5}\n")
    variables = {"QUOTAFLOW__PLAN__MAX_ENTITIES": "0", "QUOTAFLOW__HEALTH__MAX_SILENCE_S": "60"}
    with pytest.raises(ConfigError) as raised:
        config.load(file, ["results.settle=1"], variables)
    file_part, variable_part, pair_part = str(raised.value).split("; ")
    assert file_part.startswith(f"{file}: plan.lease_s = 5")
    assert variable_part.startswith("QUOTAFLOW__PLAN__MAX_ENTITIES: plan.max_entities = 0")
    assert pair_part.startswith("--set: unknown key results.settle")


SHOWN = """\
plan: {lease_s: 60, cooldown_s: 5}
teams:
- {team: a, topics: [x]}
upkeep: {retention_days: {requests: 5}}
"""


def test_the_origin_of_a_value_is_its_variable(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {
        "QUOTAFLOW__PLAN": "{max_entities: 7}",
        "QUOTAFLOW__PLAN__LEASE_S": "61",
        "QUOTAFLOW__PLAN__COOLDOWN_S": "6",
        "QUOTAFLOW__RACKS": "{10.1.0.0/16: a}",
        "QUOTAFLOW__UPKEEP__RETENTION_DAYS__traffic": "7",
        "QUOTAFLOW__KAFKA__PROPERTIES__SASL_USERNAME": "me",
        PASSWORD: "env:KAFKA_PASSWORD",
    }
    for name, text in given.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    file = write(SHOWN)
    words = ["conf", "show", "--conf", str(file), "--json", "--set", "plan.cooldown_s=7"]
    assert execute(words) == 0
    out = capsys.readouterr().out
    assert "hunter2" not in out
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row["key"]: row["source"] for row in rows if row["source"] != "default"} == {
        "kafka.properties.sasl.username": "QUOTAFLOW__KAFKA__PROPERTIES__SASL_USERNAME",
        "kafka.properties.sasl.password": PASSWORD,
        "racks.10.1.0.0/16": "QUOTAFLOW__RACKS",
        "plan.lease_s": "QUOTAFLOW__PLAN__LEASE_S",
        "plan.cooldown_s": "--set",
        "plan.max_entities": "QUOTAFLOW__PLAN",
        "upkeep.retention_days.requests": f"{file}:4",
        "upkeep.retention_days.traffic": "QUOTAFLOW__UPKEEP__RETENTION_DAYS__traffic",
        "teams": f"{file}:2",
    }


def lease() -> int:
    return config.load(*config.given()).plan.lease_s


def test_the_file_is_the_option_s_then_the_variable_s_then_the_user_s(
    write: Write, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lease() == config.Conf().plan.lease_s
    write("plan: {lease_s: 61}", str(user_file))
    assert lease() == 61
    monkeypatch.setenv("QUOTAFLOW_CONF", str(write("plan: {lease_s: 62}", "größe 1/a.yaml")))
    assert lease() == 62
    option = write("plan: {lease_s: 63}", "option.yaml")
    assert config.load(*config.given(option)).plan.lease_s == 63
    monkeypatch.setenv("QUOTAFLOW__PLAN__LEASE_S", "64")
    assert config.load(*config.given(option)).plan.lease_s == 64
    assert config.load(*config.given(option, ["plan.lease_s=65"])).plan.lease_s == 65


def test_an_empty_variable_names_no_file(
    write: Write, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("plan: {lease_s: 61}", str(user_file))
    monkeypatch.setenv("QUOTAFLOW_CONF", "")
    assert lease() == 61


@pytest.mark.parametrize("folder", [None, "", "relative", "./relative"])
def test_a_config_folder_that_is_not_absolute_is_ignored(
    folder: str | None, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "höme of a"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    if folder is None:
        monkeypatch.delenv("XDG_CONFIG_HOME")
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
        write("plan: {lease_s: 62}", str(tmp_path / (folder or "x") / "quotaflow/conf.yaml"))
    assert lease() == config.Conf().plan.lease_s
    write("plan: {lease_s: 61}", str(home / ".config/quotaflow/conf.yaml"))
    assert lease() == 61


def test_a_user_without_a_home_has_no_conf_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    assert config.given().file is None


@cases(
    ("words", "variable", "message"),
    ("option", ["--conf", "/nonexist"], None, "cannot read conf /nonexist"),
    ("variable", [], "/nonexist", "QUOTAFLOW_CONF: there is no file /nonexist"),
    ("below home", [], "~/nonexist", "there is no file {home}/nonexist"),
    ("a folder", [], "{home}", "cannot read conf {home}: Is a directory"),
)
@pytest.mark.parametrize("command", ["tables", "status", "plan", "conf check", "run --once"])
def test_a_named_file_that_is_missing_is_an_error(
    *,
    command: str,
    words: list[str],
    variable: str | None,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QUOTAFLOW_HOME", str(tmp_path))
    if variable is not None:
        monkeypatch.setenv("QUOTAFLOW_CONF", variable.format(home=tmp_path))
    assert execute([*command.split(), *words]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert message.format(home=tmp_path) in printed.err


def test_a_link_of_the_user_to_a_conf_that_is_gone_is_an_error(
    user_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user_file.parent.mkdir(parents=True)
    user_file.symlink_to("gone.yaml")
    assert execute(["conf", "check"]) == 2
    assert f"cannot read conf {user_file}: No such file" in capsys.readouterr().err


def test_a_new_conf_takes_nothing_from_the_environment(
    write: Write, user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("kafka: {cluster_id: of-user}", str(user_file))
    monkeypatch.setenv("QUOTAFLOW_CONF", str(write("kafka: {cluster_id: of-variable}")))
    monkeypatch.setenv("QUOTAFLOW__KAFKA__PROPERTIES__CLIENT_ID", "of-variable")
    out = tmp_path / "setup"
    words = ["init", "--bootstrap-server", "h:1", "--offline", "--out", str(out)]
    assert execute(words) == 0
    made = yaml.safe_load((out / "conf.yaml").read_text(encoding="utf-8"))["kafka"]
    assert made == {"properties": {"bootstrap.servers": "h:1"}}


def test_other_variables_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QUOTAFLOW_KAFKA_PASSWORD", "QUOTAFLOW_MY__SECRET", "OTHER__PLAN__LEASE_S"):
        monkeypatch.setenv(name, "x")
    assert config.given().variables == {}
    assert "QUOTAFLOW_CONF" not in os.environ
