"""Topics full of what nobody can read, and batches larger than the heap."""

import hashlib
from collections import Counter

import pytest

from ...live.tables_read import query
from . import recorded
from .conftest import Made, Topic
from .test_kills import killed

pytestmark = [pytest.mark.spark, pytest.mark.faults]

JOB = "ingest_request_log"


def garbage(number: int) -> bytes:
    """Bytes that look like nothing, the same each time."""
    return hashlib.sha256(str(number).encode()).digest() * (1 + number % 40)


@pytest.mark.timeout(600)
def test_a_storm_of_garbage_is_quarantined_to_the_last_line(made: Made, topic: Topic) -> None:
    lines = [garbage(number) for number in range(40_000)]
    topic(recorded.dealt([*lines, *recorded.golden_lines()[:5]], 2))
    setting = made("storm", JOB)
    recorded.run(setting, JOB)
    folder = setting.warehouse.conf.folder
    found = query(folder, "SELECT source_offset, reason FROM quarantine")
    assert len({row["source_offset"] for row in found}) == len(found) == len(lines)
    assert Counter(row["reason"] for row in found) == {"not_json": len(lines)}
    assert query(folder, "SELECT count(*) AS n FROM requests") == [{"n": 5}]
    told = query(
        folder,
        "SELECT outcome, sum(row_count) AS n FROM pipeline_progress GROUP BY outcome",
    )
    counts = {row["outcome"]: row["n"] for row in told}
    assert counts["in"] == len(lines) + 5 == counts["quarantined"] + 5


@pytest.mark.timeout(900)
def test_a_batch_larger_than_the_heap_is_read(topic: Topic) -> None:
    """Bad lines as long as conf allows, kept until they are in quarantine: 600 MB in 512 MB."""
    folder = topic([list(enumerate([b"y" * (4 << 20)] * 150))]).parent
    assert killed(folder, JOB, batch=-1, writes=0, memory="512m") == 0
    found = query(folder / "warehouse", "SELECT reason, size_bytes FROM quarantine")
    assert Counter(row["reason"] for row in found) == {"not_json": 150}
    assert {row["size_bytes"] for row in found} == {4 << 20}
