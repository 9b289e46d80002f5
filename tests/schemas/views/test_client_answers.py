"""Which answers show that a broker failed, and not its client."""

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import request
from .view_tables import make_tables, picked, rows

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


def test_errors_that_a_broker_causes(warehouse: Warehouse) -> None:
    codes = rows(warehouse, "SELECT * FROM error_names")
    names = {row["error_code"]: row["error_name"] for row in codes}
    served = [request(code, "HEARTBEAT", error_code=code, principal=names[code]) for code in names]
    make_tables(warehouse, {"requests": served})
    failed = rows(warehouse, "SELECT principal FROM client_answers WHERE is_broker_error")
    assert {row["principal"] for row in failed} == OF_BROKERS


def test_one_partition_is_enough(warehouse: Warehouse) -> None:
    stored, refused = {"partition": 0, "error_code": 0}, {"partition": 1, "error_code": 19}
    answers = [None, [], [stored], [stored, refused], [{"partition": 0, "error_code": None}]]
    served = [request(n, "PRODUCE", partitions=each) for n, each in enumerate(answers)]
    make_tables(warehouse, {"requests": [*served, request(9, "FETCH", replica_id=2)]})
    actual = rows(warehouse, "SELECT is_broker_error FROM client_answers ORDER BY event_time")
    assert picked(actual, "is_broker_error") == [(False,), (False,), (False,), (True,), (False,)]
