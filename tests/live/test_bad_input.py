"""Bad lines, bad topics, bad logins and bad checkpoints: each has its right answer, live."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import CheckpointError, KafkaError, LockedError
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..cases import cases
from . import quiet_clients
from .conftest import of_topic
from .tables_read import query

JOB = "ingest_request_log"
GOLDEN = Path(__file__).parent.parent / "golden" / "lines"
LINES_MAX_BYTES = 8 << 20


def send(cluster: LocalCluster, topic: str, values: Iterable[bytes]) -> None:
    headers = [("broker_id", b"1")]
    quiet_clients.send(cluster, topic, values, headers, message_max_bytes=LINES_MAX_BYTES)


def make_topic(cluster: LocalCluster, name: str) -> None:
    configs = {"max.message.bytes": str(LINES_MAX_BYTES)}
    cluster.create_topics([name], partitions=1, configs=configs)


def remake_topic(cluster: LocalCluster, name: str) -> None:
    with cluster.admin() as admin:
        admin.delete_topics([name])
    make_topic(cluster, name)


def run(conf: Conf, *, accept_new_topic: bool = False) -> int:
    return runner.run(conf, [JOB], None, lambda _: None, accept_new_topic=accept_new_topic)


def line(number: int) -> bytes:
    header = {"requestApiKeyName": "METADATA", "requestApiVersion": 13, "correlationId": number}
    return json.dumps({"isForwarded": False, "requestHeader": header}).encode()


def push(number: int, **request: object) -> bytes:
    whole = json.loads((GOLDEN / "push_telemetry.jsonl").read_text().splitlines()[0])
    whole["requestHeader"]["correlationId"] = number
    whole["request"] |= request
    return json.dumps(whole).encode()


@pytest.mark.faults
@pytest.mark.shows("bounds size, ratio, points and strings of payloads before memory grows")
def test_bad_lines_cost_exactly_themselves(cluster: LocalCluster, conf: Conf) -> None:
    make_topic(cluster, "bad-lines")
    good = push(1)
    bad = {
        b"": "empty_line",
        good[:100]: "not_json",
        b'{"level":"INFO","message":"hello"}': "not_a_request_line",
        b'{"isForwarded":false,"x":"' + b"y" * (5 << 20) + b'"}': "line_too_long",
        push(2, metrics="%%% not base64"): "bad_base64",
        push(3, compressionType=9): "unknown_codec",
        push(4, compressionType=1): "corrupt_payload",
    }
    send(cluster, "bad-lines", [good, *bad, push(5)])
    assert run(of_topic(conf, "bad-lines")) == len(bad) + 2
    rows = query(conf, "SELECT target, reason, source_offset FROM quarantine")
    by_offset = {row["source_offset"]: row["reason"] for row in rows}
    assert by_offset == dict(enumerate(bad.values(), start=1))
    whole = query(
        conf,
        "SELECT source_offset, payload_sha256 FROM telemetry_pushes "
        "WHERE unreadable_reason IS NULL",
    )
    assert sorted(row["source_offset"] for row in whole) == [0, len(bad) + 1]
    assert len({row["payload_sha256"] for row in whole}) == 1
    heads = [row["head"] for row in query(conf, "SELECT head FROM quarantine")]
    assert 0 < max(len(head) for head in heads if head) <= 4_096


@pytest.mark.faults
def test_lines_that_a_shipper_sends_again_count_once(cluster: LocalCluster, conf: Conf) -> None:
    """As one does that crashed, or whose file was copied and truncated."""
    make_topic(cluster, "sent-again")
    own, at_ms = of_topic(conf, "sent-again"), time.time_ns() // 1_000_000
    lines = [b'{"ts":%d,"broker":1,"r":%b}' % (at_ms + number, push(number)) for number in range(4)]
    send(cluster, "sent-again", [*lines[:3], lines[0]])
    assert run(own) == 4
    send(cluster, "sent-again", [*lines, *reversed(lines)])
    assert run(own) == 8
    for table in ("requests", "telemetry_pushes"):
        (counted,) = query(conf, f"SELECT count(*) AS n FROM {table}")
        assert counted["n"] == 4
    (health,) = query(conf, f"SELECT rows_in, rows_duplicate FROM job_health WHERE job = '{JOB}'")
    assert health == {"rows_in": 12, "rows_duplicate": 8}


@pytest.mark.faults
@cases("lines", ("fewer records", 3), ("more records", 20))
def test_a_topic_made_again_is_noticed(cluster: LocalCluster, conf: Conf, lines: int) -> None:
    topic = f"remade-{lines}"
    make_topic(cluster, topic)
    send(cluster, topic, map(line, range(10)))
    own = of_topic(conf, topic)
    assert run(own) == 10
    remake_topic(cluster, topic)
    send(cluster, topic, map(line, range(100, 100 + lines)))
    with pytest.raises(CheckpointError, match=r"was made again.*--accept-new-topic"):
        run(own)
    assert run(own, accept_new_topic=True) == lines
    assert run(own) == 0
    rows = query(conf, "SELECT correlation_id FROM requests")
    numbers = Counter(row["correlation_id"] for row in rows)
    assert numbers == Counter([*range(10), *range(100, 100 + lines)])


@pytest.mark.faults
def test_a_lost_or_an_old_checkpoint_is_noticed(
    cluster: LocalCluster, conf: Conf, tmp_path: Path
) -> None:
    make_topic(cluster, "checkpoints")
    own = of_topic(conf, "checkpoints")
    checkpoint = Warehouse(own.warehouse).checkpoint(JOB)
    for numbers in (range(5), range(5, 9)):
        send(cluster, "checkpoints", map(line, numbers))
        assert run(own) == len(numbers)
        if numbers.start == 0:
            shutil.copytree(checkpoint, tmp_path / "copy")
    shutil.move(checkpoint, tmp_path / "newest")
    with pytest.raises(CheckpointError, match="is missing, but the tables have rows"):
        run(own)
    shutil.copytree(tmp_path / "copy", checkpoint)
    with pytest.raises(CheckpointError, match="old copy"):
        run(own)
    shutil.rmtree(checkpoint)
    shutil.move(tmp_path / "newest", checkpoint)
    assert run(own) == 0
    rows = query(conf, "SELECT correlation_id FROM requests")
    assert sorted(row["correlation_id"] for row in rows) == list(range(9))


def test_no_such_topic(conf: Conf) -> None:
    with pytest.raises(KafkaError, match=r"no-such-topic does not exist.*request_log_topic: null"):
        run(of_topic(conf, "no-such-topic"))


def test_another_cluster_than_conf_pins(conf: Conf) -> None:
    kafka = conf.kafka.model_copy(update={"cluster_id": "another"})
    with pytest.raises(KafkaError, match=r"kafka\.cluster_id is another"):
        run(conf.model_copy(update={"kafka": kafka}))


def test_a_wrong_password_is_one_clear_error(conf: Conf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "LIVE_TEST_JAAS",
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="admin" password="guessed-wrong";',
    )
    with pytest.raises(KafkaError, match="refused the login") as error:
        run(conf)
    assert "guessed-wrong" not in str(error.value)


@pytest.mark.faults
def test_no_broker_at_start_is_one_clear_error(conf: Conf) -> None:
    properties = conf.kafka.properties | {"bootstrap.servers": "127.0.0.1:9"}
    kafka = conf.kafka.model_copy(update={"properties": properties})
    with pytest.raises(KafkaError, match=r"no broker of 127\.0\.0\.1:9 answered"):
        run(conf.model_copy(update={"kafka": kafka}))


def test_two_runners_do_not_meet(conf: Conf) -> None:
    with Warehouse(conf.warehouse).lock(), pytest.raises(LockedError, match="is being written by"):
        run(conf)
