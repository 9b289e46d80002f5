"""The shipper configurations for operators leave out the same lines as the demo's shipper."""

import re
from importlib.resources import files
from typing import Any

import pytest
import yaml

from quotaflow.demo.line_filter import CLIENT_ID, SECRET_APIS, OwnLines, holds_secret
from quotaflow.demo.shipper import MAX_LINE_BYTES
from quotaflow.pipelines.config import IngestSection


def conf(name: str) -> Any:
    return yaml.safe_load((files("quotaflow.broker") / name).read_text())


VECTOR, FLUENT_BIT = conf("vector.yaml"), conf("fluent-bit.yaml")
COLLECTOR = conf("otel-collector-logs.yaml")
RSYSLOG = (files("quotaflow.broker") / "rsyslog.conf").read_text("utf-8")
_CONDITION = VECTOR["transforms"]["shippable"]["condition"]["source"]
VECTOR_CLIENT, VECTOR_USER, VECTOR_SECRET = re.findall(r"r'(.*?)'\)", _CONDITION)
FLUENT_OWN, FLUENT_SECRET = (
    rule["exclude"].removeprefix("line ") for rule in FLUENT_BIT["pipeline"]["filters"]
)
RSYSLOG_OWN, RSYSLOG_SECRET = (
    each.replace("\\\\", "\\") for each in re.findall(r"re_match\(\$msg, '(.*)'\)", RSYSLOG)
)
COLLECTOR_OWN, COLLECTOR_SECRET = (
    re.findall("body matches `(.*)`", each["expr"])[0]
    for each in COLLECTOR["receivers"]["filelog"]["operators"]
)


def line(api_key: int = 0, client_id: str = "rdk-alice", principal: str = "User:alice") -> str:
    return (
        f'{{"ts":1,"broker":1,"r":{{"isForwarded":false,"requestHeader":{{"requestApiKey":{api_key},'
        f'"requestApiVersion":10,"correlationId":7,"clientId":"{client_id}",'
        '"requestApiKeyName":"X"},"request":{},"response":{},"securityProtocol":"SASL_SSL",'
        f'"principal":"{principal}","listener":"EXTERNAL"}}}}'
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(line(), id="somebody's line"),
        pytest.param(line(0, CLIENT_ID, "User:shipper"), id="the shipper's line"),
        pytest.param(line(0, CLIENT_ID), id="somebody under the shipper's client id"),
        pytest.param(line(0, f'\\"clientId\\":\\"{CLIENT_ID}\\"'), id="a client id that quotes it"),
        pytest.param(line(0, "x", "User:shipper"), id="the shipper's user with another client"),
        pytest.param(line(510), id="an api key that begins like a secret one"),
        *(pytest.param(line(key), id=f"secret api {key}") for key in SECRET_APIS),
    ],
)
def test_configurations_leave_out_what_the_demo_leaves_out(text: str) -> None:
    is_own = OwnLines(principal="User:shipper")(text.encode())
    is_secret = holds_secret(text.encode())
    assert bool(re.search(VECTOR_CLIENT, text) and re.search(VECTOR_USER, text)) is is_own
    for own in (FLUENT_OWN, RSYSLOG_OWN, COLLECTOR_OWN):
        assert bool(re.search(own, text)) is is_own
    assert bool(re.search(VECTOR_SECRET, text)) is is_secret
    for secret in (FLUENT_SECRET, RSYSLOG_SECRET, COLLECTOR_SECRET):
        assert bool(re.search(secret, text)) is is_secret


def test_the_longest_line_fits_everywhere() -> None:
    source, sink = VECTOR["sources"]["request_log"], VECTOR["sinks"]["kafka"]
    tail, kafka = FLUENT_BIT["pipeline"]["inputs"][0], FLUENT_BIT["pipeline"]["outputs"][0]
    assert source["max_line_bytes"] == MAX_LINE_BYTES
    assert tail["buffer_max_size"] == f"{MAX_LINE_BYTES >> 20}M"
    assert int(sink["librdkafka_options"]["message.max.bytes"]) > MAX_LINE_BYTES
    assert kafka["rdkafka.message.max.bytes"] > MAX_LINE_BYTES
    assert f'maxMessageSize="{MAX_LINE_BYTES >> 20}m"' in RSYSLOG
    assert f"message.max.bytes={MAX_LINE_BYTES + 1024}" in RSYSLOG


def test_records_of_the_collector_stay_below_the_bound_of_ingest() -> None:
    exporter = COLLECTOR["exporters"]["kafka"]
    batch = exporter["sending_queue"]["batch"]
    assert batch["sizer"] == "bytes"
    assert batch["max_size"] < IngestSection().max_line_bytes
    assert COLLECTOR["receivers"]["filelog"]["max_log_size"] == "3MiB"
    assert batch["max_size"] > 3 << 20
    assert exporter["logs"]["encoding"] != "raw"


FILE_KEYS = {
    *("acknowledgements", "data_dir", "encoding", "exclude", "file_key", "fingerprint"),
    *("glob_minimum_cooldown_ms", "host_key", "ignore_checkpoints", "ignore_not_found"),
    *("ignore_older_secs", "include", "internal_metrics", "line_delimiter", "max_line_bytes"),
    *("max_read_bytes", "multiline", "offset_key", "oldest_first", "read_from"),
    *("remove_after_secs", "rotate_wait_secs", "type"),
}
KAFKA_KEYS = {
    *("acknowledgements", "batch", "bootstrap_servers", "compression", "encoding", "headers_key"),
    *("healthcheck_topic", "key_field", "librdkafka_options", "message_timeout_ms"),
    *("rate_limit_duration_secs", "rate_limit_num", "sasl", "socket_timeout_ms", "tls", "topic"),
    # Of every sink.
    *("buffer", "healthcheck", "inputs", "proxy", "type"),
}


def test_vector_has_keys_and_values_of_its_published_schema() -> None:
    source, sink = VECTOR["sources"]["request_log"], VECTOR["sinks"]["kafka"]
    assert source.keys() <= FILE_KEYS
    assert source["fingerprint"].keys() <= {"ignored_header_bytes", "lines", "strategy"}
    assert source["fingerprint"]["strategy"] in ("checksum", "device_and_inode")
    assert source["read_from"] in ("beginning", "end")
    assert sink.keys() <= KAFKA_KEYS
    assert sink["compression"] in ("gzip", "lz4", "none", "snappy", "zstd")
    assert sink["encoding"] == {"codec": "raw_message"}
    assert sink["sasl"].keys() <= {"enabled", "mechanism", "password", "username"}
    assert {type(value) for value in sink["librdkafka_options"].values()} == {str}
    assert sink["buffer"].keys() <= {"type", "max_events", "max_size", "when_full"}


def test_no_configuration_holds_a_password() -> None:
    assert VECTOR["sinks"]["kafka"]["sasl"]["password"] == "SECRET[kafka.password]"
    password = FLUENT_BIT["pipeline"]["outputs"][0]["rdkafka.sasl.password"]
    assert password == "${SHIPPER_PASSWORD}"
    sasl = COLLECTOR["exporters"]["kafka"]["auth"]["sasl"]
    assert sasl["password"] == "${env:SHIPPER_PASSWORD}"
    metrics = conf("otel-collector-metrics.yaml")
    for side in (metrics["receivers"]["kafka"], metrics["exporters"]["kafka"]):
        assert side["auth"]["sasl"]["password"] == "${env:COLLECTOR_PASSWORD}"
    assert '"sasl.password=EDIT"' in RSYSLOG
