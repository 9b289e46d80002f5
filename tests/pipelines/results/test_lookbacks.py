"""Lookbacks of results: facts from before them change no row, and the oldest within them do."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse.time_ranges import TimeRange

from ...delta_tables import NOON
from ...examples import EXPENSIVE
from ...invariants.made_facts import Rows, made_facts
from ...rows import at
from ...rule_rows import compute
from .groups import share_rows
from .producer_ids import test_address_clients as addresses
from .quotas import quota_rows
from .reads import replica_rows, test_fetch_faults, test_remote_reads
from .replication import throttle_rows
from .splits import sorted_rows

ALERT = {"name": "slow", "metric": "*.latency.*", "above": 1, "for_s": 20, "stale_s": 60}
CONF = Conf.model_validate(
    {"alerts": {"rules": [ALERT]}, "producer_ids": {"default_quota_per_s": 1.0}}
)
RESULTS = [each for job in JOBS.values() if job.results for each in job.results(CONF)]
OF_TIME = {
    each.rule.name: each
    for each in RESULTS
    if each.facts not in {lookup.table for lookup in each.lookups}
}
"""Without the one that looks up all facts ever."""
EVER_S = 10 * 86_400
Tables = dict[str, Rows]


def rows_from(result: Result, start: datetime, lookback_s: int, tables: Tables) -> list[str]:
    """The rows from a time on, by a rule that reads facts of this lookback."""
    read = replace(result, lookback_s=lookback_s)
    return sorted_rows(compute(read, [TimeRange(start)], **tables))


def moved(rows: Rows, before: datetime) -> Rows:
    """Facts with all times so much earlier that the newest is right before this time."""
    newest = max((row["event_time"] for row in rows), default=before)
    earlier = newest - before + timedelta(microseconds=1)
    return [
        {name: v - earlier if isinstance(v, datetime) else v for name, v in row.items()}
        for row in rows
    ]


@pytest.mark.parametrize("name", OF_TIME)
@EXPENSIVE
@given(seed=st.integers(0, 2**32))
def test_facts_from_before_the_lookback_change_no_row(name: str, seed: int) -> None:
    result = OF_TIME[name]
    made = made_facts(seed, CONF)
    names = {result.facts.name, *(lookup.table.name for lookup in result.lookups)}
    tables = {name: rows for name, rows in made.items() if name in names}
    start = result.bucket(NOON, up=True)
    reach = timedelta(seconds=result.warm_up_s + result.lookback_s)
    tables[result.facts.name] += moved(tables[result.facts.name], start - reach)
    expected = rows_from(result, start, EVER_S, tables)
    assert rows_from(result, start, result.lookback_s, tables) == expected


def of_addresses(second: float) -> Tables:
    """A connection that got an id, and then produced."""
    sent = addresses.request(1, "PRODUCE", partitions=[addresses.moved(9)])
    return {"requests": [addresses.given_id(second, 5, "a"), sent]}


def of_faults(second: float) -> Tables:
    """A replica that said how far it has records, and then refused an offset."""
    reported = replica_rows.answered(9, log_start_offset=10, high_watermark=100)
    refused = replica_rows.fetch(4, 2, test_fetch_faults.refused(95))
    facts = [replica_rows.fetch(second, 2, reported, client_id="fine"), refused]
    tables = replica_rows.of_cluster({"fetches": facts, **test_fetch_faults.THREE})
    return replica_rows.with_offsets(OF_TIME["fetch_faults"], tables)


def of_quotas(second: float) -> Tables:
    """A window over the quota of bytes, and then a throttled request with most of its time."""
    late = quota_rows.request(1, "PRODUCE", local_time_ms=100.0, throttle_time_ms=5.0)
    early = quota_rows.request(second, "PRODUCE") | quota_rows.of_bytes(10**9)
    alice = {"principal": "User:alice", "client_id": "a", "broker_id": 1}
    quotas = [
        quota_rows.quota(-100, key, value, user="alice")
        for key, value in (("producer_byte_rate", 1e6), ("request_percentage", 1.0))
    ]
    return {"requests": [early | alice, late | alice], "client_quotas": quotas}


def of_remote_reads(second: float) -> Tables:
    """A remote read that filled the quota, and then an answer that waited almost two minutes."""
    waited = test_remote_reads.read(0.5, 96, 0, remote_time_ms=115_000.0)
    facts = [test_remote_reads.read(second, 0, 10**9), waited]
    lookups = {"topics": [test_remote_reads.TOPIC], "configs": [test_remote_reads.quota("1000")]}
    lookups["partition_offsets"] = [test_remote_reads.starts()]
    return replica_rows.of_cluster({"fetches": facts, **lookups})


def of_replication(second: float) -> Tables:
    """A throttled follower that got bytes, and then more."""
    snapshots = {
        "topics": [throttle_rows.seen(-900, topic_id="id1", topic="orders")],
        "configs": [
            throttle_rows.config(-900, "topic", "orders", throttle_rows.LEADERS, "*"),
            throttle_rows.config(-900, "broker", "1", throttle_rows.LEADER_RATE, "9"),
        ],
    }
    facts = [throttle_rows.fetch(each, 1, 2, throttle_rows.part(1_000)) for each in (second, 0.5)]
    tables = {"requests": facts, **snapshots}
    return {name: throttle_rows.of_cluster(rows) for name, rows in tables.items()}


def of_shares(second: float) -> Tables:
    """Records that a member acquired, and that came again."""
    acquired = [
        share_rows.fetch(second, {(0, 4): 1}, source_offset=1),
        share_rows.fetch(1, {(0, 4): 2}, source_offset=2),
    ]
    return {"requests": acquired}


OLDEST: dict[str, tuple[datetime, Callable[[float], Tables]]] = {
    "address_clients": (at(0), of_addresses),
    "fetch_faults": (at(0), of_faults),
    "quota_usage": (quota_rows.at(0), of_quotas),
    "remote_reads": (at(0), of_remote_reads),
    "replication_rates": (at(0), of_replication),
    "share_fetches": (at(0), of_shares),
}
"""Result -> the start of a bucket, and facts of which the first is so many seconds after it."""


def test_every_lookback_has_facts_that_need_it() -> None:
    """A sequential rule has the property that its parts equal the whole."""
    assert OLDEST.keys() == {name for name, r in OF_TIME.items() if r.lookback_s and not r.carry_s}


@pytest.mark.parametrize("name", OLDEST)
def test_a_lookback_reaches_as_far_as_its_rule_and_no_farther(name: str) -> None:
    result, (start, made) = result_of(name), OLDEST[name]
    lookback_s = result.lookback_s
    oldest = made(-lookback_s)
    read = rows_from(result, start, lookback_s, oldest)
    assert read == rows_from(result, start, EVER_S, oldest)
    assert read != rows_from(result, start, lookback_s - 1, oldest)
    older = made(-lookback_s - 0.001)
    beyond = rows_from(result, start, lookback_s, older)
    assert beyond == rows_from(result, start, EVER_S, older)
