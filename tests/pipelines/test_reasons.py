"""Every code of a view has one sentence, which stands on the columns that are its evidence."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from quotaflow.pipelines import reasons
from quotaflow.pipelines.reasons import producer_id_limits
from quotaflow.pipelines.reference import reasons as reasons_page
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules import lag_cause

from ..delta_tables import NOON

TOKEN = re.compile(r"'[^']*'|[\w.]+|\S")
PLURAL = re.compile(
    r"(?<![\w.,=-])1 (?:new |client |producer )?"
    r"(?!does|gets|has|is|lags|reads|says|sends|waits|was)\w+[a-rt-z]s\b"
)
MORE_READ = {"reason_code", "entity_type", "entity_name", "config_value", "evidence_table"}
"""Columns of every row, which a sentence may read beside its evidence."""

RATE = {
    "entity_name": "1",
    "evidence_table": "replication_rate_advice",
    "observed": 2e6,
    "bound": 100e6,
    "reason_detail": "conf",
    "written_bytes_per_s": 1_500_000.0,
    "rate_bytes_per_s": 3e6,
    "subject": "User:admin",
}
RATE_TEXT = (
    "of 100.0 MB/s (conf) other traffic takes 2.0, the throttled replicas are written at 1.5, and "
    "3.0 MB/s are set by User:admin"
)
SLOW = {
    "produce_p99_ms": 2_000.0,
    "usual_produce_p99_ms": 10.4,
    "fetch_p99_ms": None,
    "usual_fetch_p99_ms": None,
    "shrunk_partitions": 2,
}
SLOW_TEXT = (
    "; clients suffer: p99 of PRODUCE 2000 ms, usually 10, of FETCH ? ms, usually ?, partitions "
    "down to their min.insync.replicas 2"
)
WINDOWS = {"matching": 3, "total": 5, "observed": 20_117.66, "bound": 2e4, "unit": "bytes/s"}
BURST = {
    "ids": 183,
    "clients": 2,
    "hosts": 1,
    "started_at": NOON,
    "ended_at": NOON + timedelta(seconds=61.25),
    "source_ids": 180,
    "source": "clicks-* at 10.0.0.7",
    "source_clients": 1,
    "median_gap_ms": 333.4,
    "requests_per_id": 1.04,
    "new_transactional_ids": 0,
    "abandoned_ids": 179,
}
BURST_TEXT = (
    "183 new ids of 2 clients on 1 host in 61.2 s; 180 by clicks-* at 10.0.0.7 under 1 client "
    "id, 333 ms apart, 1.0 PRODUCE requests each, 0 for new transactional ids, 179 not named "
    "again later"
)
ADVISED = {
    **{code: f"{code}: {RATE_TEXT}" for code in ("headroom", "floor", "step_bound", "unchanged")},
    **{code: f"{code}: {RATE_TEXT}" for code in ("cooldown", "floor_exceeds_capacity")},
}

LIMIT = {
    "entity_type": "ip",
    "config_value": "1",
    "matching": 1_200,
    "total": 3,
    "broker_id": 2,
    "reason_detail": "producer_per_batch",
    "subject": "User:eve as app at 10.0.0.5",
}
LIMIT_TEXT = (
    "User:eve as app at 10.0.0.5 took 1200 producer ids; cause: producer_per_batch: keep one "
    "producer and close it at the end"
)
EXPECTED = (
    "; every broker takes 1 new connection per second from the address then, which is 3 per second "
    "at 3 brokers"
)
Case = tuple[Mapping[str, Any], str]
REASONS: dict[str, Case] = {
    "producer_ids_over_quota": (
        LIMIT | {"observed": 20.0, "bound": 1.5},
        f"{LIMIT_TEXT}; that is 20.000 per second on broker 2, its quota is 1.500{EXPECTED}",
    ),
    "producer_ids_fill_heap": (
        LIMIT | {"observed": 458e6, "bound": 67.1e6},
        f"{LIMIT_TEXT}; producer ids come to 458.0 MB of heap at broker 2, and 67.1 MB are the "
        f"bound{EXPECTED}",
    ),
    "producer_ids_slow_clients": (
        LIMIT | SLOW | {"entity_type": "user"},
        f"{LIMIT_TEXT}; clients of broker 2 wait: p99 of PRODUCE 2000 ms, usually 10, of FETCH ? "
        "ms, usually ?, partitions down to their min.insync.replicas 2",
    ),
    "producer_ids_of_many": (
        LIMIT | {"unit": "bytes", "matching": 7, "total": 5, "observed": 458e6, "bound": 67.1e6},
        "7 users take producer ids faster than the default, and a plan limits 5 of them one by "
        "one; most are of User:eve as app at 10.0.0.5, cause: producer_per_batch; producer ids "
        "come to 458.0 MB of heap at broker 2, and 67.1 MB are the bound",
    ),
    "producer_ids_outlast_heap": (
        {
            "observed": 458e6,
            "bound": 67.1e6,
            "matching": 86_400_000,
            "total": 21_600_000,
            "broker_id": 2,
        },
        "producer ids come to 458.0 MB of heap at broker 2 before they expire, and 67.1 MB are the "
        "bound; they expire after 24.0 h now, and 6.0 h cost no producer its id that snapshots "
        "have seen. The price: what a producer retries after a longer pause may be stored twice",
    ),
    "alert_open": (
        {
            "reason_detail": "slow",
            "matching": 2,
            "subject": "a.x",
            "bound": 5e3,
            "unit": "ms",
            "pushes_per_s": 0.2,
            "wire_bytes_per_s": 120.0,
        },
        "alert slow is open for 2 clients: a.x is past 5000.0 ms; asks these clients alone for "
        "more: about 0.2 pushes and 120 bytes per second",
    ),
    "alerts_closed": ({}, "no alert that asked for it is open any more: takes it back"),
    "troubleshoot_ended": (
        {},
        "quotaflow troubleshoot left it behind: takes it back after its lease",
    ),
    "quota_throttles": (
        WINDOWS,
        "its quota limits it: throttled in 3 of 5 windows; what it used most of the time is "
        "20117.7 bytes/s",
    ),
    "no_quota": (
        WINDOWS,
        "no quota binds it: throttled in 3 of 5 windows; what it used most of the time is "
        "20117.7 bytes/s",
    ),
    "quota_fits": (WINDOWS, "its use fits this quota: throttled in 3 of 5 windows"),
    "quota_altered_today": (
        WINDOWS,
        "it is raised once a day at most, and was altered less than a day ago: throttled in 3 of "
        "5 windows",
    ),
    **{code: (RATE, text) for code, text in ADVISED.items()},
    "capacity_unknown": (
        RATE | {"bound": None, "reason_detail": None, "rate_bytes_per_s": None},
        "capacity_unknown: of a capacity that is not known other traffic takes 2.0, the throttled "
        "replicas are written at 1.5, and no rate is set",
    ),
    "clients_degraded": (RATE | SLOW, f"clients_degraded: {RATE_TEXT}{SLOW_TEXT}"),
    "floor_exceeds_capacity_and_clients_degraded": (
        RATE | SLOW,
        f"floor_exceeds_capacity_and_clients_degraded: {RATE_TEXT}{SLOW_TEXT}",
    ),
    "stale_rate": (
        {"subject": None},
        "left over: no replica that it limits was moved or behind recently; set by somebody before "
        "the request log began",
    ),
    "stale_list": (
        {"matching": 1, "total": 3, "subject": "User:us"},
        "left over: no replica that it names was moved or behind recently; User:us named 1 of "
        "3 entries",
    ),
    **dict.fromkeys(
        ("leftover_rate", "leftover_list"),
        (
            {"observed": 900.0, "unit": "s"},
            "left over: snapshots of 900 s show it, and no replica that it slows down was moved or "
            "behind recently; only a request log shows who set it",
        ),
    ),
    "moved_unlisted": (
        {"matching": 2, "rate_bytes_per_s": 2e6},
        "replicas that are moved and that it does not name: 2; they take what they can get, though "
        "a rate of 2.0 MB/s is set",
    ),
}
LIMITS = {each.code: each for each in producer_id_limits.BLOCKED_REASONS}
"""What forbids a limit: each has fixed words."""
FITS = RATE | {"reason_code": "headroom", "config_value": "4000000"}
BLOCKED: dict[str, Case] = {
    "usage_estimated": (
        {},
        "brokers charge the time of network threads and bytes of SHARE_FETCH too, and the request "
        "log has neither: a quota from it would be too low",
    ),
    "no_capacity_for_raise": (
        {},
        "replication.capacity_bytes_per_s of conf is not set, so no quota is raised",
    ),
    "raise_over_budget": (
        {},
        "all raised quotas together would be more than quotas.raise_budget_share of the capacity "
        "of a broker",
    ),
    **{code: ({}, wording.words({})) for code, wording in LIMITS.items()},
    "capacity_unknown": (
        {},
        "replication.capacity_bytes_per_s of conf is not set, and what the broker carried so far "
        "is no bound",
    ),
    "floor_exceeds_capacity": (
        SLOW,
        "what is written into its throttled replicas, or 1 MB/s, is more than what is left of its "
        f"capacity: move fewer at once{SLOW_TEXT}",
    ),
    "rate_without_list": (
        FITS,
        "no list names its replicas, and a rate alone does nothing; 4.0 MB/s fit, by headroom: "
        + RATE_TEXT,
    ),
    "changed_recently": (
        {},
        "its rate was changed so short a time ago that nobody sees yet what that did",
    ),
    "not_managed": (
        FITS,
        f"replication.manage of conf is false; 4.0 MB/s fit, by headroom: {RATE_TEXT}",
    ),
    "malformed_list": ({}, "its list has entries that mean nothing: set it again by hand"),
    "rate_not_above_writes": (
        {"written_bytes_per_s": 2e6},
        "the rate that is set is no more than what is written into all replicas it would limit "
        "then, 2.0 MB/s: raise it first, or the move never ends",
    ),
    "set_by_other": (
        {"subject": "User:admin"},
        "left over, but set by User:admin, who is not in replication.cleanup_principals of conf",
    ),
    "leftovers_not_managed": (
        {},
        "replication.remove_leftovers of conf is false, and without a request log nobody knows who "
        "set it",
    ),
    "default_of_all_brokers": (
        {},
        "left over as the default of all brokers, which no plan touches",
    ),
}
BURSTS: dict[str, Case] = dict.fromkeys(reasons.BURSTS, (BURST, BURST_TEXT))
RECOMMENDATIONS: dict[str, Case] = {
    "quota_of_conf": ({}, "conf: no second outside accused bursts"),
    "no_ordinary_seconds": ({}, "none: no second outside accused bursts, and conf sets no quota"),
    "p99": ({}, "99th percentile of ordinary seconds and a fifth"),
    "peak": ({}, "peak of ordinary seconds"),
    "protected": ({}, "none: no quota may slow this principal down"),
}
TRACES: dict[str, Case] = {
    "requests": ({"evidence": "ALTER_CLIENT_QUOTAS"}, "ALTER_CLIENT_QUOTAS"),
    "topic": ({"evidence": "__strimzi_store_topic"}, "topic __strimzi_store_topic"),
    "quota_callback": ({"evidence": "com.x.C"}, "client.quota.callback.class = com.x.C"),
}
TRADE_OFFS: dict[str, Case] = {
    "longer_wait": ({"max_wait_ms": 500}, "a record can wait up to 500 ms"),
    "more_memory": (
        {"brokers": 3, "recommended_value": 2**20},
        "answers of 3 brokers can each be as large as 1048576 bytes",
    ),
    "slower_catch_up": ({}, "a consumer that is behind needs more fetches"),
}
SETTING = {"setting": "fetch.max.bytes", "recommended_value": 2_000, "current_value": 1_000}
SET = "set fetch.max.bytes to 2000, which is 1000 now: "
FULL = SETTING | {"max_bytes_fetches": 7, "answers": 9}
FETCH_STEPS: dict[str, Case] = {
    "raise_max_partition_fetch_bytes": (
        SETTING | {"oversized_batches": 3},
        f"{SET}3 batches were larger than that",
    ),
    "raise_fetch_max_bytes": (
        FULL,
        f"{SET}7 of 9 answers ended there, and other partitions waited",
    ),
    "raise_fetch_min_bytes": (
        SETTING | {"fetches_per_s": 6.63, "expected_fetches_per_s": 2.0},
        f"{SET}6.6 small fetches per second at its busiest broker become 2.0",
    ),
    "lower_max_partition_fetch_bytes": (
        SETTING | {"bound_bytes": 300_000_000, "observed_bytes": 1_500_000},
        f"{SET}answers can be 300.0 MB, and were 1.5 MB at most",
    ),
    "rotate_partitions": (
        {"starved_partitions": 4},
        "update the client or read fewer partitions: its full answers always begin with the same "
        "one, and 4 wait",
    ),
    "raise_replica_fetch_response_max_bytes": (
        FULL,
        f"{SET}7 of 9 answers of the follower ended there",
    ),
}
STEP = {"broker_id": 2, "client_id": "c", "principal": "User:a", "topic": "t", "partition": 3}
STEP |= {"client_rack": "az-b", "read_share": 0.5}
REPLICA_STEPS: dict[str, Case] = {
    "set_broker_rack": (STEP, "set broker.rack of broker 2"),
    "update_client": (STEP, "update client c of User:a: its FETCHes are too old for racks"),
    "place_replica": (STEP, "place a replica of t in az-b"),
    "set_selector": (STEP, "set replica.selector.class of broker 2"),
    "set_client_rack": (STEP, "set client.rack=az-b at client c of User:a"),
    "check_client": (STEP, "see why c of User:a reads 50.0 % of its bytes out of az-b"),
    "move_leader": (STEP, "move the leader of t-3 to az-b"),
}
SOFTWARE = {"client_software_name": "librdkafka", "client_software_version": "2.3.0"}
READ_STEPS: dict[str, Case] = {
    "align_log_starts": (
        STEP,
        "broker 2 deleted records of t that the leader has: give all replicas the same retention, "
        "see log_start_divergence",
    ),
    "update_client": (
        STEP | SOFTWARE,
        "update the library of c, librdkafka 2.3.0: it repeats a refused request, or stays on a "
        "follower that lags",
    ),
    "extend_retention": (STEP, "it reads t too late: let it catch up, or extend retention.ms"),
    "check_offsets": (
        STEP,
        "it reads t past its end: its offsets are of another topic, or records were lost",
    ),
    "check_replication": (STEP, "broker 2 lags with t: see lagging_reads"),
    "refresh_metadata": (
        STEP,
        "broker 2 does not lead t any more: lower metadata.max.age.ms of the client",
    ),
}
NO_TELEMETRY: dict[str, Case] = {
    "too_old": (SOFTWARE, "librdkafka 2.3.0 cannot push metrics: update it"),
    "switched_off": (
        SOFTWARE,
        "librdkafka 2.3.0 can push metrics: set enable.metrics.push=true",
    ),
    "other_software": (
        SOFTWARE,
        "whether librdkafka 2.3.0 can push metrics is not known: ask its makers",
    ),
}
TRIGGER = {"trigger_client_id": "app-1", "trigger_principal": "User:bob", "reason": "closing"}
TRIGGERS: dict[str, Case] = {
    "member_joined": (TRIGGER, "app-1 of User:bob joined"),
    "member_left": (TRIGGER, "app-1 of User:bob left; its reason: closing"),
    "missed_heartbeats": (
        TRIGGER,
        "app-1 of User:bob did not come back and had not left: it died, was cut off, or paused for "
        "longer than session.timeout.ms",
    ),
    "subscription_changed": (TRIGGER, "app-1 of User:bob subscribed to other topics"),
    "partitions_changed": (
        TRIGGER,
        "partitions of a topic changed, as app-1 of User:bob says",
    ),
    "unknown": (TRIGGER, "nothing in the request log shows what caused it"),
}
PRODUCER = {
    **{"client_id": "app", "principal": "User:bob", "topic": "orders", "client_rack": "az-b"},
    "rack_source": "client_id",
}
PRODUCER_RACK_STEPS: dict[str, Case] = {
    "set_producer_rack": (
        PRODUCER,
        "set client.rack=az-b and partitioner.rack.aware=true at producer app of User:bob for "
        "orders (Java clients from 4.4): it is there, as its client id claims",
    ),
    "check_producer": (
        PRODUCER,
        "see why app of User:bob sends records of orders out of az-b: their keys choose the "
        "partition, or partitioner.rack.aware is not set",
    ),
    "move_leaders": (
        PRODUCER,
        "move leaders of orders to az-b, which has replicas and producers",
    ),
}
REMOTE_READ = {
    **{"client_id": "reader", "principal": "User:bob", "topic": "orders", "broker_id": 1},
    **{"read_age_ms": 9_000_000, "local_retention_ms": 3_600_000, "recommended_ms": 10_800_000},
    **{"extra_local_bytes": 5e9, "fetch_quota": 150_000, "empty_time_ms_per_hour": 90_500.0},
}
REMOTE_READ_STEPS: dict[str, Case] = {
    "read_sooner": (
        REMOTE_READ,
        "let reader of User:bob read orders sooner: records are 2.5 hours old then, and on disk "
        "for 1.0",
    ),
    "raise_local_retention": (
        REMOTE_READ,
        "set local.retention.ms of orders to 10800000, which is 3600000 now: that takes 5.0 GB "
        "more of brokers' disks",
    ),
    "raise_remote_fetch_quota": (
        REMOTE_READ,
        "raise remote.log.manager.fetch.max.bytes.per.second of broker 1, which is 150000: clients "
        "waited 90.5 s per hour",
    ),
}
ON_TOPIC = {"group_id": "g", "topic": "t", "detail": "3"}
LAG_CAUSES: dict[str, Case] = {
    "throttled": (
        {"detail": "consumer_byte_rate"},
        "raise consumer_byte_rate of its clients step by step, or spread what they read over more "
        "brokers: each has a bucket of its own",
    ),
    "fetch_limited": (
        {"detail": "first_batch"},
        "raise max.partition.fetch.bytes: one answer brings too little",
    ),
    "far_replica": (
        {},
        "let it read within its rack (client.rack and replica.selector.class, KIP-392), run it "
        "nearer, or let one answer bring more",
    ),
    "out_of_range": (
        ON_TOPIC,
        "see read_problems of t, and auto.offset.reset of its clients; if somebody set its offsets "
        "back, let it catch up",
    ),
    "rebalancing": (
        ON_TOPIC,
        "see rebalances of g for who causes them; group.instance.id, cooperative-sticky or "
        "group.protocol=consumer keep members at work",
    ),
    "not_polling": (
        {},
        "look what its application waits for, and restart it: it does not poll",
    ),
    "slow_processing": (
        ON_TOPIC,
        "let it work on records in parallel, or add members, up to the number of partitions of t",
    ),
    "skewed_partitions": (
        ON_TOPIC,
        "choose keys that spread: partition 3 of t gets most records",
    ),
    "slow_broker": (
        ON_TOPIC,
        "see disks and request queues of broker 3, or move leaders away from it",
    ),
    "producers_faster": (
        ON_TOPIC,
        "add members, up to the number of partitions of t, or limit producers by "
        "producer_byte_rate",
    ),
    "no_members": (
        ON_TOPIC,
        "start the members of g, or delete the group if nobody needs it",
    ),
    "paused": (
        {},
        "look why its application paused the partitions, and does not resume them",
    ),
    "unknown": (
        {},
        "let its clients push telemetry (KIP-714), or ship the request log: what is there does not "
        "show the cause",
    ),
}
CASES: dict[tuple[str, str], dict[str, Case]] = {
    ("desired_configs", "reason_code"): REASONS,
    ("desired_configs", "blocked_reason"): BLOCKED,
    ("producer_id_bursts", "cause"): BURSTS,
    ("producer_id_advice", "recommended_by"): RECOMMENDATIONS,
    ("other_config_managers", "evidence_code"): TRACES,
    ("fetch_advice", "trade_off"): TRADE_OFFS,
    ("fetch_advice", "advice"): FETCH_STEPS,
    ("replica_advice", "advice"): REPLICA_STEPS,
    ("producer_rack_advice", "advice"): PRODUCER_RACK_STEPS,
    ("remote_read_advice", "advice"): REMOTE_READ_STEPS,
    ("read_problems", "advice"): READ_STEPS,
    ("clients_without_telemetry", "reason"): NO_TELEMETRY,
    ("rebalances", "trigger"): TRIGGERS,
    ("why_groups_lag", "cause"): LAG_CAUSES,
}
EACH = [
    pytest.param(wording, column, *CASES[view, column][wording.code], id=f"{column}-{code}")
    for (view, column), wordings in reasons.WORDINGS.items()
    for code, wording in wordings.items()
]
WORDINGS = [
    pytest.param(view, wording, id=f"{column}-{code}")
    for (view, column), wordings in reasons.WORDINGS.items()
    for code, wording in wordings.items()
]
HOSTILE = "\x1b[31m\u202e`<b>" + "x" * 5_000


class ReadRow(dict[str, Any]):
    """A row of any columns that remembers which were read."""

    def __init__(self, content: Mapping[str, Any], missing: Any = None) -> None:
        super().__init__(content)
        self.read: set[str] = set()
        self.missing = missing

    def __getitem__(self, column: str) -> Any:
        self.read.add(column)
        return self.get(column, self.missing)


def codes(sql: list[str], column: str) -> set[str]:
    """Values that the CASEs and texts under this name in the queries can give."""
    values: set[str] = set()
    for query in sql:
        tokens = TOKEN.findall(re.sub("--.*", "", query))
        for place, (word, name) in enumerate(pairwise(tokens)):
            if (word.upper(), name) == ("AS", column):
                for value in given(tokens[:place]):
                    values |= values_of(sql, value, column)
    return values


def values_of(sql: list[str], value: str, column: str) -> set[str]:
    """A text itself, or what a column of another name can be."""
    if value.startswith("'"):
        return {value.strip("'")}
    name = value.rpartition(".")[2]
    return set() if name == column else codes(sql, name)


def given(tokens: list[str]) -> Iterator[str]:
    """What the expression that ends here can be: a text, a column, or one of a CASE's branches."""
    if tokens[-1].upper() != "END":
        if re.fullmatch(r"'[^']*'|[a-z][\w.]*", tokens[-1]):
            yield tokens[-1]
        return
    depth = 0
    for place in range(len(tokens) - 1, -1, -1):
        depth += {"END": 1, "CASE": -1}.get(tokens[place].upper(), 0)
        if depth == 0:
            return
        if tokens[place].upper() in {"THEN", "ELSE"} and tokens[place + 1].upper() != "CASE":
            yield tokens[place + 1]


OF_RULES = {("why_groups_lag", "cause"): {*lag_cause.CAUSES, lag_cause.UNKNOWN}}
"""Codes that a rule gives, and no SQL."""


@pytest.mark.parametrize(("view", "column"), reasons.WORDINGS)
def test_codes_of_a_view_and_codes_with_words_are_the_same(view: str, column: str) -> None:
    texts = {each.name: each.sql for each in (*views.load().values(), *ANSWERS)}
    of_plan = ("desired_configs", "proposals", "replication_rate_advice", "producer_id_offenders")
    read = [name for name in texts if name.endswith(of_plan)]
    names = read if view == "desired_configs" else [view]
    of_rule = OF_RULES.get((view, column))
    given_codes = of_rule or codes([texts[name] for name in names], column)
    assert given_codes == reasons.WORDINGS[view, column].keys()


def test_every_code_has_a_case() -> None:
    assert {column: cases.keys() for column, cases in CASES.items()} == {
        column: wordings.keys() for column, wordings in reasons.WORDINGS.items()
    }


@pytest.mark.parametrize(("wording", "column", "row", "text"), EACH)
def test_a_code_and_its_evidence_and_no_more_are_a_sentence(
    wording: reasons.Wording, column: str, row: Mapping[str, Any], text: str
) -> None:
    read = ReadRow({column: wording.code} | dict(row))
    assert wording.words(read) == text
    assert read.read - MORE_READ <= set(wording.evidence)


@pytest.mark.parametrize(("view", "wording"), WORDINGS)
def test_evidence_is_columns_of_the_view(view: str, wording: reasons.Wording) -> None:
    described = TABLES[view] if view in TABLES else views.load()[view]
    assert set(wording.evidence) <= {column.name for column in described.columns}


@pytest.mark.parametrize(
    "wording", [wording for each in reasons.WORDINGS.values() for wording in each.values()]
)
def test_what_is_not_known_is_worded_too(wording: reasons.Wording) -> None:
    row = ReadRow({"started_at": NOON, "ended_at": NOON, "reason_code": "headroom"})
    assert wording.words(row)


@pytest.mark.parametrize(
    ("column", "wording"),
    [
        pytest.param(column, wording, id=f"{column}-{code}")
        for (_, column), wordings in reasons.WORDINGS.items()
        for code, wording in wordings.items()
    ],
)
def test_one_of_each_is_no_plural(column: str, wording: reasons.Wording) -> None:
    row = {column: wording.code, "reason_code": wording.code, "started_at": NOON, "ended_at": NOON}
    assert PLURAL.findall(wording.words(ReadRow(row, missing=1))) == []


@pytest.mark.parametrize("code", reasons.REASONS)
def test_names_of_clients_are_cut_and_escaped(code: str) -> None:
    names = ("entity_name", "subject", "reason_detail", "unit")
    row = ReadRow({"reason_code": code} | dict.fromkeys(names, HOSTILE), missing=1)
    text = reasons.reason(row)
    assert text.isprintable()
    assert len(text) < 1_000


def test_a_code_of_another_version_is_shown_as_it_is() -> None:
    assert reasons.reason({"reason_code": "new_\x1bcode"}) == r"new_\x1bcode"
    assert reasons.blocked_reason({"blocked_reason": None}) is None


def test_the_page_lists_every_code_with_its_evidence() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*?) \|$", reasons_page.text(), re.M)
    assert [(code, re.findall(r"`(\w+)`", evidence)) for code, _, evidence in rows] == [
        (wording.code, list(wording.evidence))
        for wordings in reasons.WORDINGS.values()
        for wording in wordings.values()
    ]
