"""Conf from the environment: variables by the names of keys, and the file where none is named."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from quotaflow.pipelines import config
from quotaflow.pipelines.config.base import model_in
from quotaflow.pipelines.config.receivers import Receiver
from quotaflow.pipelines.errors import ConfigError

from ... import case_tables
from ...cases import cases
from ...command_line import Command

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


@cases(
    ("key", "variable", "in_file", "pair", "expected"),
    ("number", "plan.lease_s", "61", "62", "63", (61, 62, 63)),
    ("truth", "plan.canary", "no", "true", "false", (False, True, False)),
    ("text", "warehouse.path", "/ä b", "/f", "/s", ("/ä b", "/f", "/s")),
    ("null over text", "warehouse.path", "null", "/f", "/s", (None, "/f", "/s")),
    ("text over null", "ingest.receiver_topic", "t", "null", "null", ("t", None, None)),
    ("list in YAML", "ingest.shippers", "[a, b]", "[c]", "[]", (["a", "b"], ["c"], [])),
    ("list in JSON", "ingest.shippers", '["a,b"]', "[c]", "[d]", (["a,b"], ["c"], ["d"])),
    ("map", "producer_ids.quotas", '{"A": 2.5}', "{b: 1}", "{}", ({"A": 2.5}, {"b": 1.0}, {})),
    ("reference", "serve.token", "env:A", "env:B", "file:/c", ("env:A", "env:B", "file:/c")),
    (
        "a list of sections",
        "alerts.receivers",
        *(f'[{{name: a, url: "env:{name}"}}]' for name in "ABC"),
        tuple([Receiver(name="a", url=f"env:{name}")] for name in "ABC"),
    ),
    ("bounded text", "prices.currency", "EUR", "CHF", "GBP", ("EUR", "CHF", "GBP")),
    ("price", "prices.produced_per_gib", "0", "1.5", "null", (0.0, 1.5, None)),
)
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


@cases(("variables", "same"), *case_tables.rows(__file__, "names_lead_to_keys"))
def test_names_lead_to_keys(
    variables: dict[str, str], same: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = {"kafka": {"properties": {"client.id": "f"}}, "plan": {"cooldown_s": 99}}
    expected = config.load(write(yaml.safe_dump(base | yaml.safe_load(same))))
    for name, text in variables.items():
        monkeypatch.setenv(f"QUOTAFLOW__{name}", text)
    assert config.load(*config.given(write(yaml.safe_dump(base)))) == expected


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
    *case_tables.rows(__file__, "a_wrong_variable_is_one_error_with_its_name"),
)
def test_a_wrong_variable_is_one_error_with_its_name(
    variables: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    write: Write,
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(f"QUOTAFLOW__{name}", text)
    error = command.error("conf", "check", "--conf", str(write("")))
    assert f"QUOTAFLOW__{next(iter(variables))}: {message}" in error
    assert "hunter2" not in error


TWICE = "QUOTAFLOW__KAFKA__PROPERTIES__bootstrap.servers"


@cases(
    ("variables", "message"),
    ("small letters", {"QUOTAFLOW__plan__LEASE_S": "60"}, "write QUOTAFLOW__PLAN__LEASE_S"),
    ("in its head", {"quotaflow__PLAN__LEASE_S": "60"}, "write QUOTAFLOW__PLAN__LEASE_S"),
    ("one underscore", {"QUOTAFLOW_PLAN__LEASE_S": "60"}, "write QUOTAFLOW__PLAN__LEASE_S"),
    ("the file", {"QUOTAFLOW__CONF": "/x"}, "write QUOTAFLOW_CONF"),
    ("the home", {"QUOTAFLOW__HOME": "/x"}, "write QUOTAFLOW_HOME"),
    ("no name", {"QUOTAFLOW__": "x"}, "write QUOTAFLOW__SECTION__KEY"),
    ("no key", {"QUOTAFLOW__PLAN__": "x"}, "write QUOTAFLOW__SECTION__KEY"),
    ("one key twice", {SERVERS: "h:1", TWICE: "h:2"}, f"{SERVERS} and {TWICE} are the same key"),
    (
        "two that exclude each other",
        {"QUOTAFLOW__WAREHOUSE__PATH": "/a", "QUOTAFLOW__WAREHOUSE__CATALOG_SCHEMA": "a.b"},
        "QUOTAFLOW__WAREHOUSE__PATH, QUOTAFLOW__WAREHOUSE__CATALOG_SCHEMA: warehouse: path and "
        "catalog_schema exclude each other",
    ),
    (
        "names that YAML splits",
        {"QUOTAFLOW__PLAN__EXCLUDED_PRINCIPALS": "[User:CN=a,OU=b]"},
        "QUOTAFLOW__PLAN__EXCLUDED_PRINCIPALS='[\"User:CN=a,OU=b\"]'",
    ),
)
def test_a_variable_that_cannot_be_meant_is_one_error_with_the_right_one(
    variables: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    write: Write,
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert message in command.error("conf", "check", "--conf", str(write("")))


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
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch
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
    printed = command(*words)
    assert "hunter2" not in printed.out
    sources = {row["key"]: row["source"] for row in printed.rows}
    assert {key: source for key, source in sources.items() if source != "default"} == {
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
@pytest.mark.parametrize("name", ["tables", "status", "plan", "conf check", "run --once"])
def test_a_named_file_that_is_missing_is_an_error(
    *,
    name: str,
    words: list[str],
    variable: str | None,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QUOTAFLOW_HOME", str(tmp_path))
    if variable is not None:
        monkeypatch.setenv("QUOTAFLOW_CONF", variable.format(home=tmp_path))
    assert message.format(home=tmp_path) in command.error(*name.split(), *words)


def test_a_link_of_the_user_to_a_conf_that_is_gone_is_an_error(
    command: Command, user_file: Path
) -> None:
    user_file.parent.mkdir(parents=True)
    user_file.symlink_to("gone.yaml")
    error = command.error("conf", "check")
    assert f"cannot read conf {user_file}: No such file" in error


def test_a_new_conf_takes_nothing_from_the_environment(
    command: Command, write: Write, user_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("kafka: {cluster_id: of-user}", str(user_file))
    monkeypatch.setenv("QUOTAFLOW_CONF", str(write("kafka: {cluster_id: of-variable}")))
    monkeypatch.setenv("QUOTAFLOW__KAFKA__PROPERTIES__CLIENT_ID", "of-variable")
    out = tmp_path / "setup"
    command("init", "--bootstrap-server", "h:1", "--offline", "--out", str(out))
    made = yaml.safe_load((out / "conf.yaml").read_text(encoding="utf-8"))["kafka"]
    assert made == {"properties": {"bootstrap.servers": "h:1"}}


def test_other_variables_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QUOTAFLOW_KAFKA_PASSWORD", "QUOTAFLOW_MY__SECRET", "OTHER__PLAN__LEASE_S"):
        monkeypatch.setenv(name, "x")
    assert config.given().variables == {}
    assert "QUOTAFLOW_CONF" not in os.environ
