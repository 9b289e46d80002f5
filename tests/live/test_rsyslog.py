"""broker/rsyslog.conf on rsyslog of Debian: each line once, byte for byte, also over 8 kB."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from quotaflow.demo.cluster import LocalCluster

from ..record_batches import parsed
from . import quiet_clients
from .odd_lines import OddLines

pytestmark = pytest.mark.more

TOPIC = "lines-by-rsyslog"
PACKAGES = ("rsyslog", "rsyslog-kafka", "librdkafka1", "libestr0", "libfastjson4", "liblognorm5")
OURS = "usr/lib/x86_64-linux-gnu"


@pytest.fixture(scope="module")
def rsyslog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of Debian's packages in a folder, not installed."""
    folder = tmp_path_factory.mktemp("rsyslog")
    subprocess.run(["apt-get", "download", "-qq", *PACKAGES], cwd=folder, check=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder], check=True)
    return folder


def configuration(cluster: LocalCluster, folder: Path) -> str:
    """The file for operators with its EDIT lines edited: paths, brokers and login."""
    login = cluster.librdkafka_properties("shipper")
    text = (files("quotaflow.broker") / "rsyslog.conf").read_text(encoding="utf-8")
    brokers = ", ".join(f'"{each}"' for each in cluster.bootstrap_servers.split(","))
    edits = {
        r"broker=\[.*?\]": f"broker=[{brokers}]",
        '"broker_request_logs"': f'"{TOPIC}"',
        '"/var/log/kafka/': f'"{folder}/',
        "/var/lib/rsyslog": str(folder),
        r',\n *"ssl.ca.location=.*': "",
        **{f'"{key}=.*?"': f'"{key}={login[key]}"' for key in login if f'"{key}=' in text},
    }
    for pattern, new in edits.items():
        text, count = re.subn(pattern, lambda _, new=new: new, text)  # type: ignore[misc]
        assert count, pattern
    return text


@pytest.fixture
def running(
    rsyslog: Path, cluster: LocalCluster, tmp_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Started by the test's user, with its own process id file."""
    cluster.create_topics([TOPIC], partitions=1, configs={"max.message.bytes": "8388608"})
    conf = tmp_path / "rsyslog.conf"
    conf.write_text(configuration(cluster, tmp_path), encoding="utf-8")
    (tmp_path / "requests.jsonl").touch()
    command = [rsyslog / "usr/sbin/rsyslogd", "-n", "-f", conf, "-i", tmp_path / "pid"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(rsyslog / OURS)}
    modules = ["-M", rsyslog / OURS / "rsyslog"]
    subprocess.run([*command, *modules, "-N1"], env=environment, check=True)
    with subprocess.Popen([*command, *modules], env=environment) as process:
        yield process
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def received(cluster: LocalCluster, count: int) -> list[tuple[bytes | None, bytes]]:
    login, records = cluster.librdkafka_properties("admin"), []
    with quiet_clients.reader(login, TOPIC, TOPIC) as consumer:
        while len(records) < count and (message := consumer.poll(60)) is not None:
            assert message.error() is None
            records.append((message.key(), message.value()))
        # Nothing comes behind what was expected.
        assert consumer.poll(2) is None
    return records


def test_every_line_arrives_once_over_rotations(
    running: subprocess.Popen[bytes], cluster: LocalCluster, golden: Path, tmp_path: Path
) -> None:
    lines = (golden / "lines" / "slice_envelope_n1.jsonl").read_bytes().splitlines()
    made = OddLines(lines[0])
    log = tmp_path / "requests.jsonl"
    with log.open("ab") as file:
        file.writelines(line + b"\n" for line in (*lines, made.long, made.secret))
    first = received(cluster, len(lines) + 1)
    log.rename(tmp_path / "requests.1.jsonl")
    log.write_bytes(b"".join(line + b"\n" for line in (made.odd, made.own, made.alike)))
    second = received(cluster, 2)
    assert [value for _, value in first] == [*lines, made.long]
    assert [value for _, value in second] == [made.odd, made.alike]
    assert {key for key, _ in (*first, *second)} == {b"1"}
    rows = parsed(value for _, value in (*first, *second))
    assert {row["reason"] for row in rows} == {None}
    assert running.poll() is None
