"""The command metrics: matches, formats, and the error without a match."""

from quotaflow.schemas.kip_metrics import KIP_METRICS
from quotaflow.schemas.metrics import METRICS, PREFIX

from ... import case_tables
from ...cases import cases
from ...command_line import Command


def names(command: Command, line: str) -> list[str]:
    """Matching names, without the prefix."""
    rows = command("metrics", *line.split(), "--json").rows
    return [row["name"].removeprefix(PREFIX) for row in rows]


@cases(("line", "expected"), *case_tables.rows(__file__, "search"))
def test_search(command: Command, line: str, expected: list[str]) -> None:
    assert names(command, line) == expected


def test_words_may_come_as_one_argument(command: Command) -> None:
    assert len(command("metrics", "producer.produce throttle", "--json").rows) == 2


def test_without_words_all_are_listed_by_name(command: Command) -> None:
    listed = sorted([*METRICS, *(metric.name for metric in KIP_METRICS)])
    assert names(command, "") == [name.removeprefix(PREFIX) for name in listed]


def test_json_says_all_there_is(command: Command) -> None:
    (row,) = command("metrics", "producer.connection.creation.rate", "--json").rows
    assert row == {
        "name": "org.apache.kafka.producer.connection.creation.rate",
        "kip_name": "org.apache.kafka.producer.connection.creation.rate",
        "unit": "1/s",
        "kind": "gauge",
        "clients": ["apache-kafka-java", "librdkafka"],
        "meaning": "connections opened: per second",
        "kip": "KIP-714",
        "is_standard": True,
        "sent_as": ["org.apache.kafka.producer.connection.creation.rate"],
        "answers": [],
    }


def test_a_name_of_a_kip_comes_with_what_is_sent_in_its_place(command: Command) -> None:
    assert command("metrics", "client.request.rtt").out.splitlines() == [
        "org.apache.kafka.client.request.rtt  histogram  KIP-714",
        "    average and greatest for each node_id, no histogram",
        "    sent as: org.apache.kafka.producer.node.request.latency.avg,"
        " org.apache.kafka.consumer.node.request.latency.avg,"
        " org.apache.kafka.producer.node.request.latency.max,"
        " org.apache.kafka.consumer.node.request.latency.max",
        "    in quotaflow: client_latency.latency_avg_ms, client_latency.latency_max_ms",
    ]
    assert "    nobody sends it\n" in command("metrics", "client.process.pid").out


def test_csv_has_a_line_a_metric(command: Command) -> None:
    rows = command("metrics", "--csv").csv_rows
    units = dict.fromkeys((metric.name for metric in KIP_METRICS), "")
    assert {row["name"]: row["unit"] for row in rows} == units | {
        name: metric.unit for name, metric in METRICS.items()
    }


def test_people_see_whole_names_and_how_many(command: Command) -> None:
    printed = command("metrics", "share.application.event.queue.processing.time.max")
    assert printed.out.splitlines()[:2] == [
        "org.apache.kafka.consumer.share.application.event.queue.processing.time.max"
        "  ms  gauge  java",
        "    time the background thread took for all events queued: greatest",
    ]
    assert printed.err == f"1 of {len(METRICS) + len(KIP_METRICS)} metrics\n"


@cases(
    ("line", "code", "expected"),
    *case_tables.rows(__file__, "what_cannot_be_found_is_one_line_and_an_exit_code"),
)
def test_what_cannot_be_found_is_one_line_and_an_exit_code(
    command: Command, line: str, code: int, expected: str
) -> None:
    assert expected in command.error("metrics", *line.split(), code=code)
