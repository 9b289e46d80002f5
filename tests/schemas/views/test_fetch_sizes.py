"""Which settings would let clients fetch better, and what they would change."""

from typing import Any

from ...cases import cases
from ...rows import Row, fetched
from .view_tables import Picked, picked, view

MIB = 2**20
NAMES = ("advice", "current_value", "recommended_value", "fetches_per_s", "expected_fetches_per_s")


def batches(*sizes: int) -> list[Row]:
    """largest_oversized of these."""
    return [{"bytes": size, "topic": "orders", "partition": 0} for size in sizes]


def idle(**others: Any) -> Row:
    """A minute of a client whose answers may be 400 MiB, and were 10 MiB at most."""
    return fetched(
        0, 60, 60 * MIB, **({"bound_bytes": 400 * MIB, "max_response_bytes": 10 * MIB} | others)
    )


def advised(sizes: list[Row]) -> Picked:
    return picked(view("fetch_advice ORDER BY advice", {"fetch_sizes": sizes}), *NAMES)


@cases(
    ("sizes", "expected"),
    ("all is well", [fetched(0, 60, 60 * 5_000)], None),
    (
        "a batch larger than its partition may bring, in an answer of several",
        [fetched(0, 60, MIB, oversized_batches=2, largest_oversized=batches(900_000, 70_000))],
        ("raise_max_partition_fetch_bytes", 2**16, 900_000, 1.0, 1.0),
    ),
    (
        "full answers that leave partitions out",
        [fetched(0, 60, 60 * MIB, max_bytes_fetches=45, starved_fetches=9)],
        ("raise_fetch_max_bytes", MIB, 2 * MIB, 1.0, 0.625),
    ),
    ("full answers that leave nothing out", [fetched(0, 60, 60 * MIB, max_bytes_fetches=60)], None),
    ("many small answers", [fetched(0, 600, 60_000)], ("raise_fetch_min_bytes", 1, 500, 10.0, 2.0)),
    (
        "of a client that was there for a quarter of the minute",
        [fetched(0, 151, 60_400, active_s=15.0)],
        ("raise_fetch_min_bytes", 1, 2_000, 10.0, 2.0),
    ),
    ("a burst of small answers", [fetched(0, 20, 8_000, active_s=0.1)], None),
    (
        "a burst of small answers in each minute",
        [fetched(60 * n, 60, 24_000, active_s=1.5) for n in range(30)],
        None,
    ),
    (
        "few small answers, and many empty ones",
        [fetched(0, 600, 60_000, wait_timeout_fetches=500)],
        None,
    ),
    ("min_bytes is set", [fetched(0, 600, 60_000, min_bytes=500)], None),
    (
        "memory that is never needed",
        [idle(partition_max_bytes=50 * MIB)],
        ("lower_max_partition_fetch_bytes", 50 * MIB, 10 * MIB, 1.0, 1.0),
    ),
    (
        "the largest answer is larger than the limit of a partition",
        [idle(partition_max_bytes=MIB)],
        None,
    ),
    (
        "the memory for the answers of one broker is not known",
        [
            idle(partition_max_bytes=50 * MIB),
            idle(partition_max_bytes=50 * MIB, broker_id=2, bound_bytes=None),
        ],
        None,
    ),
    (
        "one partition is always the first",
        [fetched(0, 60, 60 * MIB, filled_fetches=20, starved_fetches=20, first_partitions=1)],
        ("rotate_partitions", None, None, 1.0, 1.0),
    ),
    (
        "a follower that is always full",
        [fetched(0, 60, 60 * MIB, replica_id=2, max_bytes_fetches=60)],
        ("raise_replica_fetch_response_max_bytes", MIB, 2 * MIB, 1.0, 0.5),
    ),
)
def test_one_setting_is_advised(sizes: list[Row], expected: tuple[Any, ...] | None) -> None:
    assert advised(sizes) == ([expected] if expected else [])


FULL = fetched(0, 120, 120 * MIB, max_bytes_fetches=110, starved_fetches=9)
LARGER = {"max_bytes": 8 * MIB, "bound_bytes": None}


@cases(
    ("second", "others", "expected"),
    ("as before", 7_200, {}, ("raise_fetch_max_bytes", MIB)),
    ("it was raised just now", 60, LARGER, ("raise_fetch_max_bytes", 8 * MIB)),
    ("it was raised more than an hour ago", 7_200, LARGER, None),
    ("another setting was changed then", 7_200, {"min_bytes": 9}, None),
)
def test_a_setting_that_was_changed_since_is_not_advised(
    second: float, others: Row, expected: tuple[Any, ...] | None
) -> None:
    sizes = [FULL, fetched(second, 10, 10 * MIB, **others)]
    advice = picked(view("fetch_advice", {"fetch_sizes": sizes}), *NAMES[:2])
    assert advice == ([expected] if expected else [])


def test_memory_adds_up_over_brokers() -> None:
    limits = {"bound_bytes": 100 * MIB, "partition_max_bytes": 50 * MIB}
    sizes = [idle(**limits, max_response_bytes=MIB, broker_id=n) for n in (1, 2, 3)]
    advice = view("fetch_advice", {"fetch_sizes": sizes})
    bounds = (300 * MIB, 3 * MIB, 3)
    assert picked(advice, "bound_bytes", "observed_bytes", "brokers") == [bounds]


def test_an_answer_of_a_batch_larger_than_a_limit_has_no_bound() -> None:
    """The first batch comes whole, so the largest answer can exceed what limits add up to."""
    larger = {"bound_bytes": MIB, "max_response_bytes": 2 * MIB, "oversized_batches": 1}
    sizes = [
        fetched(0, 60, MIB, **larger, largest_oversized=batches(2 * MIB)),
        fetched(0, 60, MIB, bound_bytes=MIB, max_response_bytes=MIB, broker_id=2),
    ]
    (advice,) = view("fetch_advice", {"fetch_sizes": sizes})
    assert (advice["bound_bytes"], advice["observed_bytes"]) == (None, 3 * MIB)
