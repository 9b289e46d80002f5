"""What quotaflow does with a login: asks the cluster, reads by Spark, writes configs and leases.

`python -m tests.live.all_uses FOLDER KEY=VALUE ...` does it in a process of its own, for a login
that needs jars or settings of a JVM.
"""

import subprocess
import sys
import uuid
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from quotaflow.demo.broker_config import LEASE_TOPIC, REQUEST_LOG_TOPIC
from quotaflow.pipelines import config
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.kafka import admin, compacted_topic
from quotaflow.pipelines.spark import login, session
from quotaflow.pipelines.streaming import sources

from ..command_line import in_options
from .conftest import QUICK
from .tables_read import query

_LINES = Path(__file__).parents[1] / "golden" / "versions" / "4.3.1.jsonl"


def check(
    properties: dict[str, str], folder: Path, secrets: dict[str, str], *, runs: bool = False
) -> None:
    """Check that each use of these properties works; `secrets` are given by reference.

    With `runs` the jobs read by Spark, in `run --once`; that takes a minute.
    """
    with pytest.MonkeyPatch.context() as patch:
        given = dict(properties)
        for number, (key, value) in enumerate(secrets.items()):
            patch.setenv(f"LOGIN_{number}", value)
            given[key] = f"env:LOGIN_{number}"
        pairs = [f"kafka.properties.{key}={value}" for key, value in given.items()]
        _init(pairs, folder)
        conf = config.load(folder / "setup" / "conf.yaml", QUICK)
        marks = _write(conf)
        if runs:
            _run_once(conf, folder)
        else:
            assert _read_by_spark(conf) >= marks


def _init(pairs: list[str], folder: Path) -> None:
    """The command by which a user begins; what it writes has no secret."""
    server = next(pair for pair in pairs if "bootstrap.servers" in pair).partition("=")[2]
    words = ["--bootstrap-server", server, "--out", str(folder / "setup")]
    assert execute(["init", *words, *in_options(*pairs)]) == 0


def _write(conf: config.Conf) -> set[bytes]:
    """Write a config and a lease as feedback does; the key of the lease."""
    name = f"login-{uuid.uuid4()}"
    resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, name, {"interval.ms": "1000"})
    with admin.client(conf.kafka.properties) as client:
        answer = client.alter_configs([resource], raise_on_unknown=False)
        assert answer["client_metrics"][name] == "OK"
    with compacted_topic.opened(conf.kafka.properties, LEASE_TOPIC) as topic:
        assert topic is not None
        topic.append([(name.encode(), b"{}")])
        return {name.encode()}


def _read_by_spark(conf: config.Conf) -> set[bytes]:
    spark = session.get(login.section(conf.spark, conf.kafka))
    options = sources.kafka_options(conf.kafka) | {"subscribe": LEASE_TOPIC}
    rows = spark.read.format("kafka").options(**options).load().select("key").collect()
    return {bytes(row["key"]) for row in rows}


def _run_once(conf: config.Conf, folder: Path) -> None:
    """The commands that fill tables, from a line that this login writes, and a plan on them."""
    line = _LINES.read_bytes().splitlines()[0]
    with closing(KafkaProducer(**admin.options(conf.kafka.properties))) as producer:
        producer.send(REQUEST_LOG_TOPIC, line).get(timeout=300)
    warehouse = folder / "warehouse"
    words = ["--conf", str(folder / "setup" / "conf.yaml")]
    words += in_options(f"warehouse.path={warehouse}", *QUICK)
    for command in (["run", "facts", "--once"], ["snapshot"], ["plan", "--exit-zero"]):
        assert execute([*command, *words]) == 0
    (row,) = query(warehouse, "SELECT count(*) AS lines FROM requests")
    assert row["lines"] >= 1
    (row,) = query(warehouse, "SELECT count(*) AS brokers FROM current_brokers")
    assert row["brokers"] == 1


def check_alone(properties: dict[str, str], folder: Path, environment: Mapping[str, str]) -> None:
    """As `check` with `runs`, without secrets, in a process with this environment."""
    pairs = [f"{key}={value}" for key, value in properties.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.live.all_uses", str(folder), *pairs],
        cwd=Path(__file__).parents[2],
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    given = dict(each.split("=", 1) for each in sys.argv[2:])
    check(given, Path(sys.argv[1]), {}, runs=True)
