"""Clients that never asked for a telemetry subscription, and why."""

from typing import Any

import pytest

from ...rows import INSTANCE, at, request
from .view_tables import picked, served, view

CLIENT = {"principal": "User:alice", "client_id": "orders"}


def software(name: str | None, version: str | None) -> dict[str, Any]:
    return CLIENT | {"client_software_name": name, "client_software_version": version}


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (software("apache-kafka-java", "3.6.2"), "too_old"),
        (software("apache-kafka-java", "3.7.0"), "switched_off"),
        (software("apache-kafka-java", "4.3.1"), "switched_off"),
        (software("apache-kafka-java", "3.10.0"), "switched_off"),
        (software("apache-kafka-java", "7.6.1-ccs"), "too_old"),
        (software("apache-kafka-java", "5.5.1-ce"), "too_old"),
        (software("apache-kafka-java", "7.7.0-ccs"), "switched_off"),
        (software("apache-kafka-java", "8.0.0-ce"), "switched_off"),
        (software("librdkafka", "2.4.0"), "too_old"),
        (software("librdkafka", "2.10.1"), "switched_off"),
        (software("confluent-kafka-python", "2.16.1-rdkafka-2.4.9"), "too_old"),
        (software("confluent-kafka-python", "2.3.0-rdkafka-2.16.0"), "switched_off"),
        (software("sarama", "1.46.0"), "other_software"),
        (software("apache-kafka-java", "unknown"), "other_software"),
        (software(None, None), "other_software"),
    ],
)
def test_a_client_that_never_asked(client: dict[str, Any], reason: str) -> None:
    seen = [request(1, "PRODUCE", **client), request(2, "METADATA", **client)]
    (row,) = view("clients_without_telemetry", served(seen))
    assert (row["reason"], row["requests"]) == (reason, 1)
    assert {name: row[name] for name in client} == client


@pytest.mark.parametrize(
    ("name", "version"), [("apache-kafka-java", "4.3.1"), (None, None), ("sarama", "1.46.0")]
)
def test_who_asked_is_not_among_them(name: str | None, version: str | None) -> None:
    client = software(name, version)
    answer = {**INSTANCE, "event_time": at(1), "error_code": 0, **client}
    seen = [request(1, "FETCH", **client), request(1, "FETCH", replica_id=2)]
    assert (
        view("clients_without_telemetry", served(seen) | {"telemetry_subscriptions": [answer]})
        == []
    )


@pytest.mark.parametrize(
    ("second", "reasons"), [(60, ["switched_off", "too_old"]), (7_200, ["switched_off"])]
)
def test_a_client_that_was_updated_is_no_longer_too_old(second: int, reasons: list[str]) -> None:
    versions = ((0, "3.6.2"), (second, "4.3.1"))
    seen = [
        request(at_s, "PRODUCE", **software("apache-kafka-java", each)) for at_s, each in versions
    ]
    rows = view("clients_without_telemetry ORDER BY reason", served(seen))
    assert [row["reason"] for row in rows] == reasons


def test_a_program_of_many_client_ids_is_one_row() -> None:
    pods = [f"orders-6f4b7c9d88-{suffix}" for suffix in ("8xmbj", "hqz2x", "bcdfg")]
    seen = [request(n, "PRODUCE", **CLIENT | {"client_id": pod}) for n, pod in enumerate(pods)]
    seen += [request(9, "PRODUCE", **CLIENT | {"client_id": name}) for name in ("alone-7", None)]
    answer = {**INSTANCE, "event_time": at(1), "error_code": 0, **CLIENT, "client_id": pods[0]}
    content = served(seen) | {"telemetry_subscriptions": [answer]}
    rows = view("clients_without_telemetry ORDER BY client_id NULLS LAST", content)
    assert picked(rows, "client_id", "client_ids", "requests", "first_seen", "last_seen") == [
        ("alone-7", 1, 1, at(9), at(9)),
        ("orders-*", 2, 2, at(1), at(2)),
        (None, 0, 1, at(9), at(9)),
    ]
