"""What a release is made of: version, pinned packages, the receiver's jar, units, Dockerfile."""

import configparser
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from quotaflow.pipelines.__main__ import app
from quotaflow.pipelines.spark.jars import kafka_jars

from .release_tools import tool

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
# Extra with a lock of its own -> what it replaces of the other lock.
FURTHER: dict[str, set[str]] = {"kerberos": set(), "iam": {"python-dateutil"}}
UNITS = sorted((ROOT / "conf" / "systemd").glob("*.service"))
CRONTAB = (ROOT / "conf" / "crontab").read_text(encoding="utf-8")


sbom, steps, receiver_jar = tool("sbom"), tool("dockerfile_steps"), tool("receiver_jar")
PINNED = sbom.pinned(LOCK)


def pins(text: str) -> dict[str, str]:
    """Name and version of each pinned package."""
    pairs = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M)
    return {sbom.normalized(name): version for name, version in pairs}


def test_the_version_is_the_newest_of_the_changelog_and_that_of_the_readme() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, re.M)[0] == PROJECT["version"]
    wheel = f"quotaflow-{PROJECT['version']}-py3-none-any.whl"
    assert wheel in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_package_of_a_release_is_pinned_as_in_tests_and_has_sums() -> None:
    tested = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    released = pins(LOCK)
    # What tests do not install: packages for Windows, and for Python in a browser.
    untested = {name for name in released if released[name] != tested.get(name)}
    assert untested <= {"colorama", "pywin32", "httpx2-jsfetch"}
    assert released.keys() == PINNED.keys()
    assert all(sums for sums in PINNED.values())
    assert "://" not in LOCK


def test_every_requirement_of_every_extra_is_pinned() -> None:
    (extras,) = re.findall(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)
    optional = PROJECT["optional-dependencies"]
    assert set(extras.split()) == optional.keys() - {"dev", *FURTHER}
    required = [*PROJECT["dependencies"], *(r for name in extras.split() for r in optional[name])]
    names = {sbom.normalized(re.split(r"[\[<>=;]", text)[0]) for text in required}
    assert names <= PINNED.keys()


@pytest.mark.parametrize(("extra", "replaced"), FURTHER.items())
def test_an_extra_with_a_lock_of_its_own_adds_to_the_lock(extra: str, replaced: set[str]) -> None:
    text = (ROOT / f"requirements-{extra}.txt").read_text(encoding="utf-8")
    added = pins(text)
    (required,) = PROJECT["optional-dependencies"][extra]
    assert sbom.normalized(re.split(r"[\[<>=;]", required)[0]) in added
    # What is in both has another version: the extra cannot do with that of the rest.
    assert added.keys() & pins(LOCK).keys() == replaced
    assert all(text.count(f"{name}=={version} ") == 1 for name, version in added.items())
    assert text.count("--hash=sha256:") >= len(added)


@pytest.mark.faults
def test_the_jar_of_the_receiver_is_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = kafka_jars()
    one = receiver_jar.build(tmp_path / "one", jars).read_bytes()
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    assert receiver_jar.build(tmp_path / "other", jars).read_bytes() == one
    assert b"quotaflow/TelemetryReceiver.class" in one
    # By this file log4j2 finds the appender.
    assert b"META-INF/org/apache/logging/log4j/core/config/plugins/Log4j2Plugins.dat" in one


def test_the_bill_of_materials_has_the_jars_with_their_sums() -> None:
    jars = list(sbom.jar_components("spark-jars"))
    sums = (ROOT / "conf" / "spark-jars.sha256").read_text(encoding="utf-8").split()[::2]
    assert sorted(jar["hashes"][0]["content"] for jar in jars) == sorted(sums)
    assert all(jar["purl"].startswith("pkg:maven/") for jar in jars)
    assert sbom.not_permitted(sbom.licences({"components": jars})) == {}


@pytest.mark.parametrize(
    ("licence", "is_permitted"),
    [
        ({"license": {"id": "Apache-2.0"}}, True),
        ({"license": {"name": "BSD License"}}, True),
        ({"expression": "MIT AND Python-2.0"}, True),
        ({"license": {"id": "GPL-3.0-only"}}, False),
        ({"license": {"name": ""}}, False),
        ({}, False),
    ],
)
def test_a_licence_that_nobody_has_looked_at_is_named(
    licence: dict[str, Any], is_permitted: bool
) -> None:
    component = {"name": "x", "version": "1", "licenses": [licence]}
    refused = sbom.not_permitted(sbom.licences({"components": [component]}))
    assert (refused == {}) is is_permitted


def unit(path: Path) -> list[tuple[str, str]]:
    """Each setting of a unit; a name may be there more than once."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(key, value) for key, _, value in (line.partition("=") for line in lines) if value]


def commands(text: str) -> list[list[str]]:
    """The words after `quotaflow` of each line that calls it."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    pattern = r"[\s=](?:/opt/quotaflow/bin/)?quotaflow ((?!flock)[a-z].*)$"
    return [shlex.split(words) for words in re.findall(pattern, lines, re.M)]


def scheduled() -> dict[str, list[list[str]]]:
    texts = {path.name: path.read_text(encoding="utf-8") for path in UNITS}
    return {name: commands(text) for name, text in texts.items()} | {"crontab": commands(CRONTAB)}


def test_what_is_scheduled_are_commands_with_options_they_have() -> None:
    group: Any = typer.main.get_command(app())
    for name, called in scheduled().items():
        assert called, name
        for command, *words in called:
            group.commands[command].make_context(command, list(words))


def test_cron_runs_what_systemd_runs() -> None:
    called = scheduled()
    in_cron = sorted(called.pop("crontab"))
    by_systemd = [words for each in called.values() for words in each]
    assert in_cron == sorted(words for words in by_systemd if words[0] != "status")


def test_commands_that_write_wait_for_each_other() -> None:
    """Each takes the lock of the tables, and would end with an error while another works."""
    for path in UNITS:
        for key, value in unit(path):
            if key == "ExecStart" and " status " not in value:
                assert value.startswith("/usr/bin/flock /var/lib/quotaflow/schedule.lock ")
    lines = [line for line in CRONTAB.splitlines() if re.match(r"[*\d]", line)]
    assert all(" quotaflow flock /var/lib/quotaflow/schedule.lock quotaflow " in x for x in lines)


def test_only_the_unit_that_writes_to_brokers_has_the_operators_login() -> None:
    for path in UNITS:
        settings = unit(path)
        called = scheduled()[path.name]
        is_operator = any(words[0] in {"restore", "plan", "apply"} for words in called)
        secrets = "operator.env" if is_operator else "secrets.env"
        conf = "operator.yaml" if is_operator else "conf.yaml"
        assert ("EnvironmentFile", f"/etc/quotaflow/{secrets}") in settings
        assert {words[words.index("--conf") + 1] for words in called} == {f"/etc/quotaflow/{conf}"}
        assert ("NoNewPrivileges", "yes") in settings
        assert not any(words[0] == "apply" for words in called), "a person applies"


def test_each_unit_has_a_timer() -> None:
    for path in UNITS:
        timer = configparser.ConfigParser()
        timer.read(path.with_suffix(".timer"))
        assert timer["Timer"]["OnCalendar"]
        assert timer["Install"]["WantedBy"] == "timers.target"


def test_the_dockerfile_is_of_steps_that_a_shell_can_do() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    script = list(steps.script(text))
    assert script[0] == "set -eu"
    assert any(
        "--require-hashes --requirement /tmp/quotaflow/requirements.txt" in x for x in script
    )
    names = [name for name, _ in steps.instructions(text)]
    assert names.index("USER") < names.index("ENTRYPOINT"), "it does not run as root"
    copied = dict(steps.instructions(text))["COPY"].split()[:-1]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied == ["requirements.txt", "dist/quotaflow-*-py3-none-any.whl"]
    assert ignored == ["*", "!requirements.txt", "!dist/*.whl"]
    with pytest.raises(ValueError, match="ADD"):
        list(steps.script("ADD x /y"))
