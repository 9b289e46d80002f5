"""What a cluster is made of, without starting one: ports, logins, properties, processes."""

import random
import stat
import sys
import time
from pathlib import Path

import pytest

from quotaflow.demo.broker_config import server_properties
from quotaflow.demo.broker_process import BrokerProcess
from quotaflow.demo.brokers import random_uuid
from quotaflow.demo.cluster import MAX_NODES, LocalCluster
from quotaflow.demo.credentials import CLIENTS, SCRAM_USER, Credentials, write_private
from quotaflow.demo.ports import free_ports
from quotaflow.pipelines.errors import ConfigError

from ..cases import cases

STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True)"


def configs(nodes: int = 3) -> dict[int, dict[str, str]]:
    ports = dict(enumerate(free_ports(nodes, random.Random(1)), start=1))
    credentials = Credentials()
    return {id_: server_properties(id_, ports, Path("data"), credentials) for id_ in ports}


def test_no_two_listeners_share_a_port() -> None:
    ports = [port for node in free_ports(9, random.Random(1)) for port in vars_of(node)]
    assert len(set(ports)) == 36
    assert all(20_000 <= port < 32_000 for port in ports)


def vars_of(ports: object) -> list[int]:
    return [getattr(ports, name) for name in ("client", "internal", "controller", "jmx")]


@pytest.mark.parametrize("nodes", [0, -1, MAX_NODES + 1])
def test_a_number_of_nodes_out_of_bounds_is_named(nodes: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"1 to {MAX_NODES} nodes, not {nodes}"):
        LocalCluster(tmp_path, nodes)


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(ConfigError, match="is not empty"), LocalCluster(tmp_path):
        pytest.fail("must not start")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_every_cluster_draws_its_own_passwords_and_shows_none() -> None:
    one, other = Credentials(), Credentials()
    for user in (*CLIENTS, "broker"):
        assert one.password(user) != other.password(user)
        assert one.password(user) not in repr(one)


def test_an_unknown_user_is_named_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="no user 'eve', there are admin, alice, bob"):
        Credentials().password("eve")


def test_the_scram_users_password_is_in_no_broker_config() -> None:
    ports = dict(enumerate(free_ports(1, random.Random(1)), start=1))
    credentials = Credentials()
    properties = server_properties(1, ports, Path("data"), credentials)
    assert credentials.password(SCRAM_USER) not in str(properties)
    assert credentials.password("alice") in str(properties)


def test_a_receiver_stands_beside_jmx_reporter() -> None:
    assert configs()[1]["metric.reporters"].split(",") == [
        "org.apache.kafka.common.metrics.JmxReporter",
        "quotaflow.TelemetryReceiver",
    ]


@cases(("nodes", "replicas"), ("alone", 1, "1"), ("of five", 5, "3"))
def test_internal_topics_have_up_to_three_replicas(nodes: int, replicas: str) -> None:
    assert configs(nodes)[1]["offsets.topic.replication.factor"] == replicas


def test_racks_follow_the_alphabet() -> None:
    assert [of_node["broker.rack"] for of_node in configs().values()] == ["az-a", "az-b", "az-c"]


def test_listeners_are_on_loopback_alone() -> None:
    hosts = {
        listener.split("://")[1].split(":")[0]
        for of_node in configs().values()
        for listener in of_node["listeners"].split(",")
    }
    assert hosts == {"127.0.0.1"}


def test_a_private_file_is_its_owners_even_where_a_public_one_was(tmp_path: Path) -> None:
    path = tmp_path / "x.properties"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, {"a": "b"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "a=b\n"


def test_no_cluster_id_looks_like_an_option() -> None:
    ids = {random_uuid() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(text) == 22 and not text.startswith("-") for text in ids)


def test_a_process_that_ignores_sigterm_is_killed_in_time(tmp_path: Path) -> None:
    process = BrokerProcess([sys.executable, "-c", f"{STUBBORN}; time.sleep(60)"], tmp_path / "l")
    process.start()
    while not (tmp_path / "l" / "console.log").read_text():
        time.sleep(0.01)
    process.terminate()
    process.await_end(0.2)
    assert not process.is_running
    assert process.pid is None


@cases(
    ("output", "lost"),
    ("a listener", "java.net.BindException: Address already in use", True),
    ("JMX", "Port already in use: 20001; nested exception", True),
    ("another failure", "ERROR something else", False),
)
def test_a_lost_port_is_not_any_other_failure(output: str, lost: bool, tmp_path: Path) -> None:
    process = BrokerProcess([sys.executable, "-c", f"print({output!r})"], tmp_path / "logs")
    process.start()
    process.await_end(10)
    assert process.lost_its_port() == lost
    assert process.first_cause() in output


def test_an_earlier_runs_log_says_nothing_about_this_one(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("Kafka Server started")
    process = BrokerProcess([sys.executable, "-c", "pass"], tmp_path)
    process.start()
    process.await_end(10)
    assert not process.has_started()
