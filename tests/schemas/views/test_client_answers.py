"""Which answers show that a broker failed, and not its client."""

from ...rows import request
from .view_tables import picked, view

OF_BROKERS = {
    "UNKNOWN_SERVER_ERROR",
    "REQUEST_TIMED_OUT",
    "BROKER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "KAFKA_STORAGE_ERROR",
}


def test_errors_that_a_broker_causes() -> None:
    names = {row["error_code"]: row["error_name"] for row in view("error_names", {})}
    served = [request(code, "HEARTBEAT", error_code=code, principal=names[code]) for code in names]
    failed = view("client_answers WHERE is_broker_error", {"requests": served})
    assert {row["principal"] for row in failed} == OF_BROKERS


def test_one_partition_is_enough() -> None:
    stored, refused = {"partition": 0, "error_code": 0}, {"partition": 1, "error_code": 19}
    answers = [None, [], [stored], [stored, refused], [{"partition": 0, "error_code": None}]]
    served = [request(n, "PRODUCE", partitions=each) for n, each in enumerate(answers)]
    requests = [*served, request(9, "FETCH", replica_id=2)]
    actual = view("client_answers ORDER BY event_time", {"requests": requests})
    assert picked(actual, "is_broker_error") == [(False,), (False,), (False,), (True,), (False,)]
