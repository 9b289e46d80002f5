"""The queue of receiver and appenders in a JVM: its heap is bounded, no exception stops it."""

import sys
from collections.abc import Callable

import pytest

from ..cases import cases
from .java_check import JavaCheck

BOUND = 16 << 20


@pytest.fixture(scope="module")
def check() -> JavaCheck:
    """Runs one scenario of the Java source; returns what it counted."""
    return JavaCheck("RecordSenderCheck")


@pytest.mark.faults
def test_long_client_ids_stay_within_the_bound(check: JavaCheck) -> None:
    """10,000 pushes of one byte and a client id of 32 KB would take 320 MiB."""
    assert check.counts("headers")["grown"] < 1.25 * BOUND


@pytest.mark.faults
def test_a_push_that_cannot_be_built_is_counted_and_its_bytes_are_released(
    check: JavaCheck,
) -> None:
    counts = check.counts("building")
    assert counts == {
        "memory_errors": 10,
        "received": 20_011,
        "sent": 0,
        "dropped": 0,
        "failed": 20_010,
        "queued": 1,
    }


@cases(
    ("scenario", "counts"),
    ("an exception of the producer ends no thread", "sending", (4, 1, 0, 3, 0)),
    # Each time it writes some hundred lines to the broker's log.
    ("a producer that cannot be built is tried once", "unbuildable", (100, 0, 99, 1, 0, 1)),
    ("a record that is built while the sender closes", "closing", (1, 0, 1, 0, 0)),
)
def test_each_record_is_counted_once(
    check: JavaCheck, scenario: str, counts: tuple[int, ...]
) -> None:
    names = ("received", "sent", "dropped", "failed", "queued", "built")
    assert check.counts(scenario) == dict(zip(names, counts, strict=False))


def test_what_fails_as_the_producer_closes_is_logged(check: JavaCheck) -> None:
    counts = check.counts("unsettled")
    assert (counts["failed"], counts["logged"]) == (1, 1)


@pytest.mark.faults
def test_a_record_of_losses_that_cannot_be_made_is_made_later(check: JavaCheck) -> None:
    counts = check.counts("losses")
    assert (counts["made"], counts["sent"], counts["dropped"]) == (2, 1, 1)


@pytest.mark.faults
@pytest.mark.parametrize("topic", ["there", "gone", "ending"])
def test_100_000_lines_a_second_stay_within_the_bound_and_every_loss_is_counted(
    topic: str, check: JavaCheck, record_property: Callable[[str, object], None]
) -> None:
    """For three seconds. What a line costs its thread is noted, not judged."""
    counts = check.counts("rate", topic)
    for name in ("per_s", "p50_ns", "p99_ns"):
        record_property(name, counts[name])
    sys.stdout.write(f"{topic}: {counts}\n")
    assert counts["received"] == counts["sent"] + counts["dropped"] + counts["failed"]
    assert counts["queued"] == 0
    assert counts["grown"] < 1.25 * BOUND
    lines = 300_000
    assert counts["received"] == lines or topic == "ending"
    assert bool(counts["sent"]) == (topic != "gone")
