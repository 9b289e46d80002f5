"""Racks of a client: where it is and reads, and steps that are worth their while."""

import re
from pathlib import Path

from quotaflow.pipelines import config
from quotaflow.pipelines.areas import racks
from quotaflow.pipelines.areas.finding import FACT, NOTHING, PROBLEM
from quotaflow.pipelines.areas.why import why
from quotaflow.pipelines.warehouse.folder_reader import FolderReader

from ...cases import cases
from ...rows import choice, used
from ...schemas.views.test_producer_racks import BROKERS, BY_ADDRESS, LED_THERE, sent
from ...schemas.views.view_tables import make_tables_and_answers
from .test_why_answers import HOUR, at_folder, rows_of

ROOT = Path(__file__).parents[3]
NOBODY_THERE = "no_replica_in_rack"


@cases(
    ("size", "state", "step"),
    ("much", 900_000, PROBLEM, "partitioner.rack.aware=true"),
    ("next to nothing, which is worth no step", 9, NOTHING, ""),
)
def test_what_a_producer_sends_to_other_racks_is_a_problem_of_racks(
    size: int, state: str, step: str, tmp_path: Path
) -> None:
    warehouse = at_folder(tmp_path)
    content = {"traffic": [sent(size, **BY_ADDRESS)], "replicas": LED_THERE, "brokers": BROKERS}
    content = {
        table: [row | {"cluster_id": "c1"} for row in rows] for table, rows in content.items()
    }
    content["quota_usage"] = [used(0, "producer_byte_rate", 9.0)]
    make_tables_and_answers(warehouse, content)
    (row,) = (row for row in rows_of(FolderReader(warehouse), "alice") if row["area"] == "racks")
    assert row["state"] == state
    assert ("to other racks what could have stayed in its own: up to " in row["finding"]) is bool(
        step
    )
    assert step in (row["next_step"] or "")
    assert bool(step) is bool(row["next_step"])


@cases(
    ("unit", "reason", "state", "size"),
    ("much", 10_000_000, "not_eligible_in_rack", PROBLEM, ("80.0 MB", "20.0 MB")),
    ("much, without a replica there", 10_000_000, NOBODY_THERE, FACT, ("80.0 MB", "20.0 MB")),
    ("little", 1_000_000, "not_eligible_in_rack", FACT, ("8.0 MB", "2.0 MB")),
)
def test_what_part_of_its_reads_crossed_racks(
    unit: int, reason: str, state: str, size: tuple[str, str], tmp_path: Path
) -> None:
    warehouse = at_folder(tmp_path)
    near = {"broker_id": 2, "broker_rack": "az-b", "cross_rack_bytes": 0}
    reasons = {"expected_reason": reason, "recommended_reason": reason}
    read = [
        choice(0, 2 * unit, avoidable_bytes=0, **reasons),
        choice(0, 6 * unit, avoidable_bytes=0, **near),
    ]
    window = used(0, "consumer_byte_rate", 9.0, client_id="orders")
    make_tables_and_answers(warehouse, {"preferred_replicas": read, "quota_usage": [window]})
    (row,) = (row for row in rows_of(FolderReader(warehouse), "orders") if row["area"] == "racks")
    assert (row["state"], row["finding"]) == (
        state,
        f"User:alice as orders is in rack az-b. It read {size[0]}, mostly in rack az-b; {size[1]} "
        "(25 %) crossed racks.",
    )


def test_a_client_that_names_a_rack_in_some_fetches_alone_says_both(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    by_address = {"client_rack": "az-a", "is_rack_inferred": True, "rack_source": "address"}
    near = {"cross_rack_bytes": 0, "avoidable_bytes": 0}
    read = [choice(0, 500, **near), choice(0, 500, **near, **by_address)]
    window = used(0, "consumer_byte_rate", 9.0, client_id="orders")
    make_tables_and_answers(warehouse, {"preferred_replicas": read, "quota_usage": [window]})
    (row,) = (row for row in rows_of(FolderReader(warehouse), "orders") if row["area"] == "racks")
    begin = "User:alice as orders names az-b in some fetches and no rack in others, from az-a. It"
    assert row["finding"].startswith(begin)


@cases(
    ("far", "most", "is_fine"),
    ("less than half in its rack", 3, "the largest part in rack az-b; 6.0 kB (60 %)", False),
    ("next to all in its rack", 0, "mostly in rack az-b; no byte", True),
)
def test_what_crosses_racks_is_not_fine(
    far: int, most: str, tmp_path: Path, *, is_fine: bool
) -> None:
    warehouse = at_folder(tmp_path)
    read = [
        choice(0, 4_000, broker_id=2, broker_rack="az-b", avoidable_bytes=0, cross_rack_bytes=0),
        *(
            choice(0, 1_000 * far, avoidable_bytes=0, broker_id=n, broker_rack=f"az-{n}")
            for n in (1, 3)
            if far
        ),
    ]
    window = used(0, "consumer_byte_rate", 9.0, client_id="orders")
    make_tables_and_answers(warehouse, {"preferred_replicas": read, "quota_usage": [window]})
    answered = why(FolderReader(warehouse), "orders", HOUR, "c1", config.Conf())
    (area,) = (each for each in answered.areas if each.name == "racks")
    assert most in area.findings[0].text
    assert ("racks" in answered.verdict.fine) == is_fine
    assert answered.verdict.hints == (0 if is_fine else 1)
    # Nothing is known of its groups.
    assert "groups" not in answered.verdict.fine


@cases(
    "answer",
    ("steps of consumers", "replica_advice"),
    ("steps of producers", "producer_rack_advice"),
    ("costs", "needless_costs"),
)
def test_a_step_is_small_in_each_answer_from_the_same_bytes_on(answer: str) -> None:
    sql = (ROOT / f"schemas/answers/{answer}.sql").read_text(encoding="utf-8")
    assert [float(floor) for floor in re.findall(r" (?:<|>=) (1e\d+)\b", sql)] == [racks.WORTH]
