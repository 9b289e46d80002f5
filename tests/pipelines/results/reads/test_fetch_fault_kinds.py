"""What is wrong with an answer against the reference rule: random partitions, a cluster each."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from quotaflow.pipelines.results.declared import result_of

from ....oracle.rules import fetch_fault as rule
from ....oracle.rules.fetch_fault import FetchAnswer, ReplicaOffsets
from ....rows import Row
from ....rule_rows import Rows, compute
from .replica_rows import answered, fetch, replica, with_offsets

BROKERS = (1, 2, 10)
FOLLOWER, FETCHED_FROM = 77, 99
BOUNDS = ("log_start_offset", "end_offset", "leader_log_start_offset", "leader_end_offset")
CASES = 5_000


@dataclass(frozen=True, slots=True)
class Report:
    """What one fetch shows of a replica. `is_before`: in the minute before the answer."""

    broker_id: int
    is_before: bool
    is_leader: bool
    log_start_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True)
class Case:
    """An answer to a consumer, and what is known of the partition's replicas."""

    answer: FetchAnswer
    reports: tuple[Report, ...]
    leader_in_snapshot: int | None


def made_up(dice: random.Random) -> Case:
    leader = dice.choice([None, *BROKERS])
    reports = [
        Report(
            *(broker_id, is_before, broker_id == leader or dice.random() < 0.01),
            log_start_offset=dice.choice([None, 10, 20, 30]),
            end_offset=dice.choice([None, *range(40, 60, 5)]),
        )
        for broker_id in BROKERS
        for is_before in (True, False)
        for _ in range(dice.choice([0, 1, 1, 2]))
    ]
    answer = FetchAnswer(
        dice.choice(BROKERS),
        dice.choice([1, 1, 1, 0, 0, 6, 74, 999]),
        dice.choice([None, *range(0, 70, 3), *range(0, 70, 5)]),
        dice.choice([None, 40, 50]),
    )
    return Case(answer, tuple(reports), dice.choice([None, *BROKERS]))


def fetches(case: Case, dice: random.Random) -> Iterable[Row]:
    """The case as rows: reports, and one minute after noon the answer."""
    for report in case.reports:
        second = 1 if report.is_before else 61
        start, end = _or_none(report.log_start_offset), _or_none(report.end_offset)
        if not report.is_leader and dice.random() < 0.5:
            reported = {"follower_log_start_offset": start, "fetch_offset": end, "error_code": 6}
            partition = answered(0, **reported, high_watermark=-1)
            yield fetch(second, FETCHED_FROM, partition, replica_id=report.broker_id)
        else:
            got = answered(9, log_start_offset=start, high_watermark=end)
            replica_id = FOLLOWER if report.is_leader else None
            yield fetch(second, report.broker_id, got, replica_id=replica_id)
    answer = case.answer
    error_code = answer.error_code or dice.choice([0, None])
    reported = {"error_code": error_code, "fetch_offset": answer.fetch_offset}
    high_watermark = _or_none(answer.high_watermark)
    yield fetch(62, answer.broker_id, answered(0, **reported, high_watermark=high_watermark))


def _or_none(offset: int | None) -> int:
    """To Kafka an offset below 0 is none."""
    return -1 if offset is None else offset


def offsets_by_broker(case: Case) -> dict[int, ReplicaOffsets]:
    """The reports as inputs of the rule. The answer reports too, unless it is an error."""
    reports, answer = list(case.reports), case.answer
    if not answer.error_code:
        reports.append(Report(answer.broker_id, False, False, None, answer.high_watermark))
    by_broker = {}
    for broker_id in {report.broker_id for report in reports}:
        own = [report for report in reports if report.broker_id == broker_id]
        ends = [(r.is_before, r.end_offset) for r in own if r.end_offset is not None]
        by_broker[broker_id] = ReplicaOffsets(
            max((r.log_start_offset for r in own if r.log_start_offset is not None), default=None),
            max((end for is_before, end in ends if is_before), default=None),
            min((end for is_before, end in ends if not is_before), default=None),
            max((end for _, end in ends), default=None),
            any(report.is_leader for report in own),
        )
    return by_broker


def test_the_text_finds_the_faults_that_the_rule_finds() -> None:
    dice = random.Random(392)
    cases = {str(n): made_up(dice) for n in range(CASES)}
    facts: Rows = []
    replicas: Rows = []
    for cluster_id, case in cases.items():
        cluster = {"cluster_id": cluster_id}
        facts += [row | cluster for row in fetches(case, dice)]
        leader = case.leader_in_snapshot
        replicas += [replica(n, is_leader=n == leader) | cluster for n in BROKERS]
    result = result_of("fetch_faults")
    rows = compute(result, **with_offsets(result, {"fetches": facts, "replicas": replicas}))
    got = {row["cluster_id"]: row for row in rows}
    assert len(got) == len(rows)
    counted = Counter[str | None]()
    for cluster_id, case in cases.items():
        offsets = offsets_by_broker(case)
        leader_id = rule.leader(offsets, case.leader_in_snapshot)
        fault = rule.fault(case.answer, offsets, leader_id)
        counted[fault] += 1
        if fault is None:
            assert cluster_id not in got, case
            continue
        row = got[cluster_id]
        assert (row["fault"], row["leader_id"]) == (fault, leader_id), case
        has_offset = rule.leader_has_offset(case.answer.fetch_offset, offsets, leader_id)
        assert row["answers_leader_has"] == has_offset, case
        own = offsets.get(case.answer.broker_id, rule.NOTHING)
        leader = offsets.get(leader_id, rule.NOTHING) if leader_id else rule.NOTHING
        bounds = (own.log_start_offset, own.end_offset, leader.log_start_offset, leader.end_offset)
        assert bounds == tuple(row[name] for name in BOUNDS), case
    assert len(counted) == 5 + 1 + 3
    assert min(counted.values()) > 50, counted
