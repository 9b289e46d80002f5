"""The command init: files for a new cluster, conf that loads, and no file overwritten."""

import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
import yaml

from quotaflow.pipelines import config
from quotaflow.pipelines.connect import cluster_discovery
from quotaflow.pipelines.connect.cluster_discovery import Discovery
from quotaflow.pipelines.kafka.release import Release
from quotaflow.schemas import acls

from ... import case_tables
from ...cases import cases
from ...command_line import Command, Printed, in_options

SERVERS = "b1:9093,b2:9093"
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "quota flow",
    "sasl.password": "env:NOT_SET_ANYWHERE",
}
BY_TOKEN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://id.example.com/token",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": "env:NOT_SET_ANYWHERE",
}
Init = Callable[..., Printed]


def of_login(login: Mapping[str, str]) -> list[str]:
    """The options that give these properties."""
    return in_options(*(f"kafka.properties.{key}={value}" for key, value in login.items()))


OPTIONS = of_login(LOGIN)


@pytest.fixture
def init(command: Command, tmp_path: Path) -> Init:
    """Writes files for a new cluster into the test's folder."""
    return partial(command, "init", "--bootstrap-server", SERVERS, "--out", str(tmp_path))


def commands(file: Path, *, optional: bool = False) -> list[list[str]]:
    """The commands of a script, as words; with `optional` also those in comments."""
    lines = file.read_text(encoding="utf-8").splitlines()
    shown = [line.removeprefix("# ") if optional else line for line in lines]
    return [shlex.split(line) for line in shown if line.startswith("kafka-")]


@pytest.mark.parametrize(
    "words",
    [
        [],
        OPTIONS,
        ["--set", "kafka.cluster_id=c1", "--set", "kafka.principal=User:CN=q"],
        ["--set", "ingest.receiver_topic=null", "--set", "ingest.otlp_topic=otlp"],
        ["--set", "ingest.shippers=[a,b]", "--set", "warehouse.path=/data", *OPTIONS],
        ["--set", "prices.produced_per_gib=2.0", "--set", "kafka.properties.client.id='#x: y'"],
    ],
    ids=["nothing", "a login", "mTLS", "no receiver", "other sections", "odd text"],
)
def test_the_conf_it_writes_is_the_conf_that_was_given(
    init: Init, tmp_path: Path, words: list[str]
) -> None:
    init("--offline", *words)
    file = tmp_path / "conf.yaml"
    given = [w for w in words if w != "--set"]
    servers = f"kafka.properties.bootstrap.servers={SERVERS}"
    assert config.load(file) == config.load(overrides=[servers, *given])


def test_what_is_commented_out_is_the_default(init: Init, tmp_path: Path) -> None:
    init("--offline")
    lines = (tmp_path / "conf.yaml").read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("# warehouse:"))
    shown = yaml.safe_load("\n".join(line.removeprefix("# ") for line in lines[start:]))
    assert config.Conf.model_validate(shown).plan == config.Conf().plan


def test_a_cluster_is_pinned_and_topics_that_are_there_are_altered(
    init: Init, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    racks: dict[int, str | None] = {n: f"az-{n % 2}" for n in range(5)}
    discovery = Discovery("cluster-1", racks, frozenset({"client_telemetry"}))
    monkeypatch.setattr(cluster_discovery, "discover", lambda _: discovery)
    init()
    assert config.load(tmp_path / "conf.yaml").kafka.cluster_id == "cluster-1"
    assert "brokers': ['az-0', 'az-1']" in (tmp_path / "conf.yaml").read_text()
    made, altered, leases = commands(tmp_path / "topics.sh")
    assert made[0] == "kafka-topics.sh"
    assert made[made.index("--partitions") + 1] == "5"
    assert altered[0] == "kafka-configs.sh"
    assert "max.message.bytes=4194304,retention.ms=172800000" in altered
    assert leases[leases.index("--topic") + 1] == "quotaflow-leases"
    assert leases[leases.index("--partitions") + 1] == "1"
    assert leases[leases.index("--replication-factor") + 1] == "3"
    assert {"cleanup.policy=compact", "min.insync.replicas=2"} <= set(leases)


@cases(
    ("of_brokers", "given", "in_conf"),
    ("the default", {"CONTROLLER"}, [], ["CONTROLLER"]),
    ("brokers of ZooKeeper", set(), [], ["CONTROLLER"]),
    ("Strimzi", {"CONTROLPLANE-9090"}, [], ["CONTROLPLANE-9090"]),
    ("several", {"B", "A"}, [], ["A", "B"]),
    ("given", {"A"}, ["--set", "ingest.controller_listeners=[C]"], ["C"]),
    ("not to be read", None, [], ["CONTROLLER"]),
)
def test_listeners_of_raft_are_those_of_the_brokers(
    init: Init,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    of_brokers: set[str] | None,
    given: list[str],
    in_conf: list[str],
) -> None:
    names = None if of_brokers is None else frozenset(of_brokers)
    discovery = Discovery("c", {1: None}, frozenset(), raft_listeners=names)
    monkeypatch.setattr(cluster_discovery, "discover", lambda _: discovery)
    printed = init(*given)
    assert config.load(tmp_path / "conf.yaml").ingest.controller_listeners == in_conf
    assert ("may not read configs of brokers" in printed.err) is (names is None)


def test_every_right_stands_once_and_only_the_operator_may_alter(
    init: Init, tmp_path: Path
) -> None:
    init("--offline", *OPTIONS)
    assert "PIPELINE='User:quota flow'\n" in (tmp_path / "acls.sh").read_text()
    needed = {
        (a.resource_type, a.name, a.operation)
        for role in acls.ROLES
        for a in acls.needed(role, {k: v for k, v in TOPICS.items() if v})
    }
    granted = set()
    for words in commands(tmp_path / "acls.sh", optional=True):
        kind = next(
            t for t in ("cluster", "topic", "group", "transactional-id") if f"--{t}" in words
        )
        name = "kafka-cluster" if kind == "cluster" else words[words.index(f"--{kind}") + 1]
        operations = [words[n + 1] for n, word in enumerate(words) if word == "--operation"]
        granted |= {(kind, name, operation) for operation in operations}
    assert granted == needed
    altering = [w for w in commands(tmp_path / "acls.sh") if "AlterConfigs" in w]
    assert {w[w.index("--allow-principal") + 1] for w in altering} == {"$OPERATOR"}
    assert all(w[3:5] == ["--command-config", "client.properties"] for w in altering)


TOPICS = {
    "request_log_topic": "broker_request_logs",
    "receiver_topic": "client_telemetry",
    "lease_topic": "quotaflow-leases",
}


def test_the_operator_alone_writes_leases(init: Init, tmp_path: Path) -> None:
    init("--offline")
    leases = [words for words in commands(tmp_path / "acls.sh") if "quotaflow-leases" in words]
    assert {words[words.index("--allow-principal") + 1] for words in leases} == {"$OPERATOR"}


def test_a_receiver_gets_the_address_and_handler_of_tokens(init: Init, tmp_path: Path) -> None:
    init("--offline", *of_login(BY_TOKEN))
    lines = (tmp_path / "broker" / "server.properties").read_text().splitlines()
    begin = "quotaflow.telemetry.producer.sasl"
    oauth = "org.apache.kafka.common.security.oauthbearer"
    handler = f"{oauth}.OAuthBearerLoginCallbackHandler"
    assert f"{begin}.oauthbearer.token.endpoint.url=https://id.example.com/token" in lines
    allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://id.example.com/token"
    assert any(line.startswith("#") and allowed in line for line in lines)
    assert f"{begin}.login.callback.handler.class={handler}" in lines


def test_without_a_receiver_nothing_of_one_is_written(init: Init, tmp_path: Path) -> None:
    init("--offline", "--set", "ingest.receiver_topic=null")
    assert not (tmp_path / "broker" / "server.properties").exists()
    assert not (tmp_path / "broker" / "TelemetryReceiver.java").exists()
    assert len(commands(tmp_path / "topics.sh")) == 2
    assert "client_telemetry" not in (tmp_path / "acls.sh").read_text()


def test_a_topic_of_a_collector_brings_its_configuration(init: Init, tmp_path: Path) -> None:
    collector = "broker/otel-collector-metrics.yaml"
    init("--offline")
    assert not (tmp_path / collector).exists()
    init("--offline", "--force", "--set", "ingest.otlp_topic=otlp_metrics")
    assert yaml.safe_load((tmp_path / collector).read_text())["exporters"]["kafka"]
    assert "otel-collector-metrics.yaml" in (tmp_path / "NEXT.md").read_text()


def test_a_name_cannot_become_a_command(init: Init, tmp_path: Path) -> None:
    principal = "User:x'; touch pwned"
    init("--offline", "--set", f"kafka.principal={principal}")
    lines = (tmp_path / "acls.sh").read_text().splitlines()
    (login,) = [shlex.split(line) for line in lines if line.startswith("PIPELINE=")]
    assert login == [f"PIPELINE={principal}"]


def test_rights_are_granted_to_nobody_while_the_principal_is_not_known(
    init: Init, tmp_path: Path
) -> None:
    init("--offline", *of_login(BY_TOKEN))
    tools = tmp_path / "tools"
    tools.mkdir()
    tool = tools / "kafka-acls.sh"
    tool.write_text('#!/bin/sh\necho "$@" >> granted\n')
    tool.chmod(0o755)

    def script(**given: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": f"{tools}:/usr/bin:/bin", **given}
        command = ["sh", "acls.sh"]
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    refused = script()
    assert refused.returncode != 0
    assert "PIPELINE=User:NAME sh acls.sh" in refused.stderr
    assert not (tmp_path / "granted").exists()
    assert script(PIPELINE="User:4711").returncode == 0
    assert "--allow-principal User:4711" in (tmp_path / "granted").read_text()


def test_nothing_is_written_over_without_force(init: Init, tmp_path: Path) -> None:
    (tmp_path / "acls.sh").write_text("mine")
    assert "has acls.sh already, and nothing was written" in init("--offline", code=2).err
    assert [path.name for path in tmp_path.iterdir()] == ["acls.sh"]
    init("--offline", "--force")
    refused = init("--offline", code=2)
    assert re.search(r"has conf.yaml, .+ and \d+ more files already", refused.err)
    assert (tmp_path / "acls.sh").read_text() != "mine"


@cases(
    ("servers", "pairs", "expected"),
    *case_tables.rows(__file__, "what_cannot_be_is_one_error_that_repeats_no_secret"),
)
def test_what_cannot_be_is_one_error_that_repeats_no_secret(
    command: Command, servers: str, pairs: list[str], expected: str, tmp_path: Path
) -> None:
    brokers = ["--bootstrap-server", servers] if servers else []
    out = ["--out", str(tmp_path / "out")]
    err = command("init", "--offline", *brokers, *in_options(*pairs), *out, code=2).err
    assert expected in err
    assert "hunter2" not in err
    assert not (tmp_path / "out").exists()


LOADED = {"log4j.properties", "log4j2.yaml", "TelemetryGate.java", "TelemetryReceiver.java"}


@cases(
    ("of_brokers", "files", "topic"),
    ("reload4j and a gate", Release(3, 9), {"log4j.properties", "TelemetryGate.java"}, None),
    ("log4j2 and a gate", Release(4, 1), {"log4j2.yaml", "TelemetryGate.java"}, None),
    ("receiver", Release(4, 2), {"log4j2.yaml", "TelemetryReceiver.java"}, "client_telemetry"),
    ("no telemetry", Release(3, 6), {"log4j.properties"}, None),
)
def test_brokers_get_files_that_they_can_load(
    init: Init,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    of_brokers: Release,
    files: set[str],
    topic: str | None,
) -> None:
    discovery = Discovery("cluster-1", {1: None}, frozenset(), of_brokers)
    monkeypatch.setattr(cluster_discovery, "discover", lambda _: discovery)
    init()
    written = {path.name for path in (tmp_path / "broker").iterdir()}
    assert written & LOADED == files
    assert ("server.properties" in written) is any("Telemetry" in name for name in files)
    assert config.load(tmp_path / "conf.yaml").ingest.receiver_topic == topic
    steps = (tmp_path / "NEXT.md").read_text()
    assert all(name in steps for name in files - {"TelemetryReceiver.java"})


SASL = {"security.protocol": "SASL_SSL"}


@cases(
    ("given", "problem"),
    (
        "mechanism",
        SASL | {"sasl.mechanism": "DIGEST-MD5"},
        "DIGEST-MD5 is none of PLAIN, SCRAM-SHA",
    ),
    ("no mechanism", SASL, "needs sasl.mechanism"),
    ("no token address", SASL | {"sasl.mechanism": "OAUTHBEARER"}, "endpoint.url"),
    ("no keytab", SASL | {"sasl.mechanism": "GSSAPI"}, "sasl.kerberos.keytab"),
    (
        "IAM without TLS",
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM"},
        "SASL_SSL",
    ),
    ("key store", {"security.protocol": "SSL", "ssl.keystore.type": "BCFKS"}, "BCFKS"),
    ("a class", {"sasl.login.callback.handler.class": "com.example.Mine"}, "names code to run"),
    ("a secret in clear", {"sasl.password": "hunter2"}, "sasl.password"),
)
def test_a_login_that_cannot_work_is_refused_before_anything_is_written(
    init: Init, tmp_path: Path, given: dict[str, str], problem: str
) -> None:
    errors = init(*of_login(given), code=2).err
    assert problem in errors
    assert "hunter2" not in errors
    assert list(tmp_path.iterdir()) == []
