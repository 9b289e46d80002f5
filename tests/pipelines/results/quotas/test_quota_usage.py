"""Usage of client quotas, and what limits clients, against the rules in Python."""

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.config import Conf, QuotasSection
from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules.quota import EXEMPT_APIS, QuotaEntity

from ....cases import cases
from ....examples import EXPENSIVE
from ....oracle.rules.quota import EffectiveQuota, effective
from ....rows import Row
from ....rule_rows import compute
from ..splits import assert_same_however_split
from .quota_rows import (
    APIS,
    RATE_PERIOD_S,
    START,
    Context,
    at,
    made_up_quotas,
    made_up_requests,
    of_bytes,
    quota,
    request,
    seen,
)

RESULT = result_of("quota_usage")


def computed(facts: list[Row], context: Context) -> list[Row]:
    rows = compute(RESULT, requests=facts, **context)
    keys = [tuple(row[name] for name in TABLES["quota_usage"].key) for row in rows]
    assert len(set(keys)) == len(keys)
    return rows


def picked(rows: list[Row], quota_type: str, *names: str) -> list[tuple[Any, ...]]:
    """Some columns of the rows of a kind, by time, broker and client."""
    of_kind = [row for row in rows if row["quota_type"] == quota_type]
    by = ("event_time", "broker_id", "principal", "client_id")
    of_kind.sort(key=lambda row: tuple((row[name] is not None, row[name]) for name in by))
    return [tuple(row[name] for name in names) for row in of_kind]


@dataclass(frozen=True, slots=True)
class QuotaChanges:
    """Rows of client_quotas, and by the rules the effective quota of a client at a time."""

    rows: list[Row]

    def limit(
        self, cluster_id: str, quota_type: str, user: str, client_id: str, time: datetime
    ) -> EffectiveQuota | None:
        quotas = dict[QuotaEntity, float]()
        for row in sorted(self.rows, key=lambda row: row["event_time"]):
            is_of = (row["cluster_id"], row["config_key"]) == (cluster_id, quota_type)
            if is_of and (row["set_at"] or row["event_time"]) < time:
                names = ("user", "is_default_user", "client_id", "is_default_client_id")
                entity = QuotaEntity(**{name: row[name] for name in names})
                quotas.pop(entity, None)
                if not row["is_removed"]:
                    quotas[entity] = row["quota"]
        return effective(quotas, user, client_id)


def expected(facts: list[Row], quotas: list[Row]) -> dict[tuple[Any, ...], Row]:
    """What the rules say, request by request: usage, limit, bucket, and the window's end."""
    rows: dict[tuple[Any, ...], Row] = defaultdict(lambda: {"usage": 0.0, "request_count": 0})
    for fact in facts:
        window = (fact["event_time"] - START) // timedelta(seconds=RATE_PERIOD_S) * RATE_PERIOD_S
        client = (fact["cluster_id"], fact["broker_id"], fact["principal"], fact["client_id"] or "")
        key = (at(window), *client)
        moved = APIS.get(fact["api"])
        if moved:
            rows[*key, moved]["usage"] += (
                sum(p["bytes"] for p in fact["partitions"]) / RATE_PERIOD_S
            )
        percent = (fact["local_time_ms"] or 0) / 10 / RATE_PERIOD_S
        rows[*key, "request_percentage"]["usage"] += percent
        rows[*key, moved or "request_percentage"]["request_count"] += 1
    changes, shared = QuotaChanges(quotas), defaultdict[tuple[Any, ...], float](float)
    for (time, cluster_id, broker, principal, client_id, kind), row in rows.items():
        user = principal.partition(":")[2]
        limit = changes.limit(
            cluster_id, kind, user, client_id, time + timedelta(seconds=RATE_PERIOD_S)
        )
        row["quota_level"] = limit.level if limit else None
        row["quota"] = limit.quota if limit else None
        row["quota_bucket_user"] = limit.quota_bucket_user if limit else user
        row["quota_bucket_client_id"] = limit.quota_bucket_client_id if limit else client_id
        owner = (row["quota_bucket_user"], row["quota_bucket_client_id"])
        row["bucket"] = (time, cluster_id, broker, kind, *owner)
        shared[row["bucket"]] += row["usage"]
    for row in rows.values():
        row["quota_bucket_usage"] = shared[row.pop("bucket")]
        if row["quota"] is not None:
            row["headroom"] = row["quota"] - row["quota_bucket_usage"]
            row["is_over"] = row["headroom"] < 0
    return dict(rows)


def limit_at_start(quotas: list[Row], client: tuple[Any, ...]) -> tuple[Any, ...]:
    """Level and quota by the rules, as of the start of the window."""
    start, cluster_id, _, principal, client_id, kind = client
    user, time = principal.partition(":")[2], start + timedelta(microseconds=1)
    limit = QuotaChanges(quotas).limit(cluster_id, kind, user, client_id, time)
    return (limit.level, limit.quota) if limit else (None, None)


def limit_of(row: Row) -> tuple[Any, ...]:
    return row["quota_level"], row["quota"]


def test_sql_says_what_the_rules_say() -> None:
    dice = random.Random(5)
    facts, quotas = made_up_requests(dice), made_up_quotas(dice)
    rows = computed(facts, {"client_quotas": quotas})
    key = ("event_time", "cluster_id", "broker_id", "principal", "client_id", "quota_type")
    got = {tuple(row[name] for name in key): row for row in rows}
    rules = expected(facts, quotas)
    assert got.keys() == rules.keys()
    differing = []
    for client, row in got.items():
        numbers = {name: x for name, x in rules[client].items() if isinstance(x, float)}
        from_sql = {name: row[name] for name in rules[client]}
        of_sql = {name: from_sql[name] for name in numbers}
        if from_sql | numbers != rules[client] or of_sql != pytest.approx(numbers):
            differing.append((client, from_sql, rules[client]))
    assert differing == []
    changed = {client_window for client_window, row in got.items() if row["is_quota_changed"]}
    started_otherwise = {key for key in got if limit_at_start(quotas, key) != limit_of(got[key])}
    assert started_otherwise <= changed
    assert len(changed) < len(got) / 2
    assert {row["quota_level"] for row in rows} == {None, *range(1, 9)}
    assert sum(row["request_count"] for row in rows) == len(facts)
    throttled_ms = sum(fact["throttle_time_ms"] or 0 for fact in facts)
    assert sum(row["throttle_time_ms"] for row in rows) == throttled_ms


SLOW = {"throttle_time_ms": 250.0}
CAUSES = [
    # 110 kB in a window: full at 10 kB/s, and an idle thread.
    request(1, "PRODUCE", **of_bytes(60_000, 50_000)),
    # Throttled in the next window by what was before it.
    request(12, "PRODUCE", **of_bytes(100), **SLOW),
    # A second of a thread is 9 % of 11 s: over 5 %, while the bytes are few.
    request(34, "PRODUCE", local_time_ms=1_000.0, **of_bytes(100), **SLOW),
    request(35, "METADATA", **SLOW),
    request(35, "FETCH", **SLOW),
    request(35, "PRODUCE", principal="User:nobody knows a quota of", **SLOW),
]
CAUSING = [
    quota(-5, "producer_byte_rate", 10_000.0, user="alice"),
    quota(-5, "request_percentage", 5.0, user="alice"),
]

CHANGED = [
    request(11 * window + 1, "PRODUCE", client_id=client_id, **of_bytes(11))
    for window in range(4)
    for client_id in ("orders", "clicks")
]
CHANGES = [
    quota(-5, "producer_byte_rate", 100.0, user="alice"),
    quota(40, "producer_byte_rate", 50.0, user="alice", client_id="orders", set_at=at(15)),
    quota(50, "producer_byte_rate", None, user="alice", client_id="orders", set_at=at(30)),
]


def body(**parts: Any) -> Row:
    return {"body": json.dumps({"request": {}, "response": {}} | parts)}


OLD = {"topics": [{"name": "old", "numPartitions": 5, "assignments": []}]}
CREATED = [
    {"name": "a", "errorCode": 0, "numPartitions": 3},
    {"name": "b", "errorCode": 0, "numPartitions": 4},
    {"name": "there", "errorCode": 36, "numPartitions": -1},
    {"name": "throttled", "errorCode": 89, "numPartitions": -1},
]
GROW = {"topics": [{"name": "a", "count": 10}, {"name": "unknown", "count": 7}]}
GREW = [{"name": "a", "errorCode": 0}, {"name": "unknown", "errorCode": 0}]
DELETED = [{"name": "a", "errorCode": 0}, {"name": "b", "errorCode": 3}]
MUTATIONS = [
    request(1, "CREATE_TOPICS", throttle_time_ms=40.0, **body(response={"topics": CREATED})),
    # Before version 5 only the request says how many.
    request(
        2, "CREATE_TOPICS", **body(request=OLD, response={"topics": [GREW[0] | {"name": "old"}]})
    ),
    request(12, "CREATE_PARTITIONS", **body(request=GROW, response={"results": GREW})),
    request(23, "DELETE_TOPICS", broker_id=2, **body(response={"responses": DELETED})),
    request(34, "DELETE_TOPICS", **body(response={"responses": []})),
    request(45, "CREATE_TOPICS", body='{"omitted_bytes":300000}'),
]


MUTATED: Context = {
    "topics": [
        seen("topics", second, topic="a", topic_id="a", partition_count=count)
        for second, count in ((5, 3), (20, 10), (40, 99))
    ],
    "brokers": [
        seen("brokers", second, broker_id=broker_id, is_controller=broker_id == controller)
        for second, controller in ((11, 3), (30, 2))
        for broker_id in (3, 2)
    ],
    "client_quotas": [quota(-5, "controller_mutation_rate", 1.0, user="alice")],
}


def config(second: float, broker_id: int, key: str, value: str | None) -> Row:
    entity = {"entity_type": "broker", "entity_name": str(broker_id)}
    return seen("configs", second, **entity, config_key=key, config_value=value)


CALLBACK = "client.quota.callback.class"
DECIDED = [
    request(second, "METADATA", broker_id=broker_id)
    for second in (1, 12, 56)
    for broker_id in (1, 2, 3)
]
DECIDING = [
    config(12, 1, "log.dirs", "x"),
    config(12, 2, CALLBACK, "com.example.Quotas"),
    config(50, 2, CALLBACK, None),
    config(12, 3, CALLBACK, None),
    config(1, 1, CALLBACK, "of a topic") | {"entity_type": "topic"},
    config(1, 1, CALLBACK, "of no broker") | {"entity_name": "default"},
]

COUNTED = [
    request(1, "PRODUCE", **of_bytes(1_100)),
    request(1, "FETCH", replica_id=2, local_time_ms=5.0, **of_bytes(7)),
    request(1, "FETCH", principal=None, **of_bytes(7)),
    request(1, "PRODUCE", client_id=None, partitions=[{"topic": "t", "bytes": None}]),
]


def test_what_throttled_a_client() -> None:
    names = ("throttled_by", "throttled_requests", "throttle_time_ms")
    rows = computed(CAUSES, {"client_quotas": CAUSING})
    alice = [row for row in rows if row["principal"] == "User:alice"]
    assert picked(alice, "producer_byte_rate", *names) == [
        (None, 0, 0.0),
        ("producer_byte_rate", 1, 250.0),
        ("request_percentage", 1, 250.0),
    ]
    assert picked(alice, "request_percentage", *names)[2:] == [("request_percentage", 1, 250.0)]
    assert picked(alice, "consumer_byte_rate", *names) == [("request_percentage", 1, 250.0)]
    others = [row for row in rows if row["principal"] != "User:alice"]
    assert picked(others, "producer_byte_rate", *names) == [(None, 1, 250.0)]


def test_a_window_in_which_the_limit_changed_says_so() -> None:
    names = ("client_id", "quota", "is_quota_changed")
    rows = picked(computed(CHANGED, {"client_quotas": CHANGES}), "producer_byte_rate", *names)
    assert [row[1:] for row in rows if row[0] == "orders"] == [
        (100.0, False),
        (50.0, True),
        (100.0, True),
        (100.0, False),
    ]
    assert {row[1:] for row in rows if row[0] == "clicks"} == {(100.0, False)}


def test_bytes_that_the_line_does_not_have_make_usage_an_estimate() -> None:
    part = {"topic": "t", "partition": 0, "in_request": True, "in_response": True}
    sizes: dict[str, Row] = {
        "all sizes": {"partitions": [part | {"bytes": 5}]},
        "no size": {"partitions": [part | {"bytes": 5}, part | {"partition": 1}]},
        "no partitions": {"partitions": None},
        "refused": {"api": "FETCH", "partitions": [part | {"error_code": 6}]},
        "not answered": {"api": "FETCH", "partitions": [part | {"in_response": False}]},
        "no size in an answer": {"api": "FETCH", "partitions": [part]},
    }
    facts = [request(0, "PRODUCE", client_id=case) | row for case, row in sizes.items()]
    rows = [row for row in computed(facts, {}) if row["quota_type"].endswith("byte_rate")]
    estimated = {row["client_id"] for row in rows if row["is_estimated"]}
    assert estimated == {"no size", "no partitions", "no size in an answer"}


def test_mutations_are_partitions_charged_by_the_controller() -> None:
    names = ("usage", "broker_id", "request_count", "throttled_by", "is_over", "is_estimated")
    usage = computed(MUTATIONS, MUTATED)
    rows = picked(usage, "controller_mutation_rate", *names)
    assert [(round(rate * RATE_PERIOD_S), *others) for rate, *others in rows] == [
        (3 + 4 + 5, None, 2, "controller_mutation_rate", True, False),
        (7 + 1, 3, 1, None, False, True),
        (10, 3, 1, None, False, False),
        (0, 2, 1, None, False, False),
        (0, 2, 1, None, False, True),
    ]
    times = picked(usage, "request_percentage", "broker_id", "request_count")
    assert times == [(1, 0), (1, 0), (2, 0), (1, 0), (1, 0)]


def test_a_mutation_is_charged_once_also_if_its_line_has_partitions() -> None:
    created = MUTATIONS[:1]
    with_partitions = [created[0] | of_bytes(10, 20, 30)]
    assert computed(with_partitions, MUTATED) == computed(created, MUTATED)


def test_a_callback_class_enforces_the_quotas_of_its_broker() -> None:
    usage = computed(DECIDED, {"configs": DECIDING})
    rows = picked(usage, "request_percentage", "broker_id", "enforcement")
    assert rows == [
        *((n, "unknown") for n in (1, 2, 3)),
        *((1, "stock"), (2, "callback"), (3, "stock")),
        *((n, "stock") for n in (1, 2, 3)),
    ]


@pytest.mark.parametrize("api", EXEMPT_APIS)
def test_what_brokers_exempt_counts_against_no_quota(api: str) -> None:
    facts = [request(1, api, local_time_ms=900.0, error_code=error) for error in (None, 0, 7)]
    assert computed(facts, {}) == []


@cases(
    "others",
    ("refused for missing rights", {"error_code": 31}),
    ("throttled", {"throttle_time_ms": 5.0}),
)
def test_an_exempt_request_that_a_broker_charges_counts(others: Row) -> None:
    (row,) = computed([request(1, "WRITE_TXN_MARKERS", local_time_ms=110.0, **others)], {})
    assert (row["quota_type"], row["usage"]) == ("request_percentage", 1.0)


def test_what_counts_against_client_quotas() -> None:
    names = ("client_id", "usage", "quota_bucket_user", "quota_bucket_client_id", "quota")
    usage = computed(COUNTED, {})
    assert picked(usage, "producer_byte_rate", *names, "is_over") == [
        ("", 0.0, "alice", "", None, False),
        ("orders", 100.0, "alice", "orders", None, False),
    ]
    assert picked(usage, "consumer_byte_rate", *names) == []


@pytest.mark.parametrize("time_ms", [float("nan"), float("inf"), 1e300, -1e300])
def test_a_time_that_no_request_can_take_fails_no_other_row(time_ms: float) -> None:
    times = {"local_time_ms": time_ms, "throttle_time_ms": time_ms}
    requests = [
        request(1, "PRODUCE", **of_bytes(5), **times),
        request(2, "PRODUCE", **of_bytes(7), local_time_ms=1.0),
    ]
    rows = {row["quota_type"]: row for row in compute(RESULT, requests=requests)}
    assert rows["producer_byte_rate"]["usage"] == 12 / RATE_PERIOD_S
    assert rows["producer_byte_rate"]["throttled_requests"] == 0
    assert rows["request_percentage"]["usage"] == pytest.approx(0.1 / RATE_PERIOD_S)


def test_a_window_is_as_long_as_the_rate_period_of_conf() -> None:
    result = result_of("quota_usage", Conf(quotas=QuotasSection(num_windows=3, window_ms=2_000)))
    assert (result.bucket_s, result.lookback_s) == (6, 6)


@EXPENSIVE
@given(
    st.integers(0, 2**32),
    st.sets(st.integers(-2, 8).map(lambda window: at(window * RATE_PERIOD_S)), max_size=4),
)
def test_any_cut_of_the_time_and_any_order_give_the_same_rows(
    seed: int, starts: set[datetime]
) -> None:
    dice = random.Random(seed)
    facts, quotas = made_up_requests(dice, 300), made_up_quotas(dice)
    shuffled = dice.sample(facts, len(facts))
    assert_same_however_split(RESULT, [*starts], shuffled, requests=facts, client_quotas=quotas)
