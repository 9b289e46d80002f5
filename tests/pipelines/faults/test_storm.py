"""A storm of garbage: the stream lives, what is good is read, and every bad one is a row."""

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from . import recorded, storm
from .conftest import Made, Topic
from .driver import contents

if TYPE_CHECKING:
    from quotaflow.pipelines.jobs.job import JobEnvironment

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(3_600)]

BATCHES = 2
COPIES = 10
BAD_LINES = 20_000
BAD_PUSHES = 2_000
JOBS = ("ingest_request_log", "client_metrics")
Numbered = list[tuple[int, bytes]]
# Where a line is a good one's neighbour.
PLACE = "source_partition, source_offset"


def good_lines() -> list[bytes]:
    """Recorded lines, many times, each of a request of its own; a push once, for the same push
    twice is decoded once.

    Of those recorded some are bad on purpose.
    """
    bad = (b'{"level"', b"raw-telemetry")
    lines = [line for line in recorded.golden_lines() if not any(sign in line for sign in bad)]
    others = [line for line in lines if b"PUSH_TELEMETRY" not in line] * COPIES
    return lines + [storm.numbered(line, BAD_PUSHES + at) for at, line in enumerate(others)]


def stormy(good: list[bytes]) -> tuple[Numbered, Numbered]:
    """All lines in their places, and the good ones in theirs."""
    rng = random.Random(714)
    pushes = [line for line in good if b"PUSH_TELEMETRY" in line and b'"metrics":"KLUv' in line]
    bad = [*storm.lines(rng, good, BAD_LINES), *storm.pushes(rng, pushes, BAD_PUSHES), b"", b"\n"]
    marked = [(line, True) for line in good] + [(line, False) for line in bad]
    rng.shuffle(marked)
    lines = [(at, line) for at, (line, _) in enumerate(marked)]
    return lines, [(at, line) for at, (line, is_good) in enumerate(marked) if is_good]


def ran(setting: "JobEnvironment") -> dict[str, Counter[str]]:
    for job in JOBS:
        recorded.run(setting, job)
    return contents(setting.warehouse.conf.folder, JOBS)


def rows(setting: "JobEnvironment", sql: str) -> list[Any]:
    """Rows of a query over the tables of a warehouse, as Spark reads them."""
    for name in ("requests", "telemetry_pushes", "quarantine", "pipeline_progress"):
        setting.warehouse.read(setting.spark, name).createOrReplaceTempView(name)
    return setting.spark.sql(sql).collect()


def test_a_storm_of_garbage_costs_exactly_itself(made: Made, topic: Topic, tmp_path: Path) -> None:
    lines, good = stormy(good_lines())
    too_long = [(len(lines), b'{"r":"' + b"x" * (5 << 20) + b'"}')]
    topic([good])
    calm = made("calm", *JOBS)
    expected = ran(calm)
    (tmp_path / "topic").rename(tmp_path / "topic-of-calm")
    topic([*(lines[first::BATCHES] for first in range(BATCHES)), too_long])
    setting = made("storm", *JOBS)
    stormed = ran(setting)
    assert not expected["quarantine"]
    assert stormed["client_metrics"] == expected["client_metrics"]
    assert stormed["telemetry_subscriptions"] == expected["telemetry_subscriptions"]
    good_at = {at for at, _ in good}
    bad_at = {at for at, _ in lines} - good_at | {at for at, _ in too_long}
    for name in ("requests", "telemetry_pushes"):
        assert not expected[name] - stormed[name], name
    check_places(setting, bad_at)
    check_counts(setting, len(lines) + len(too_long), bad_at)


def check_places(setting: "JobEnvironment", bad_at: set[int]) -> None:
    """Every bad one is in quarantine with a reason, once, and no good one is."""
    quarantined = rows(setting, f"SELECT {PLACE}, target, reason FROM quarantine")
    places = Counter(row["source_offset"] for row in quarantined)
    assert set(places) == bad_at
    assert set(places.values()) == {1}
    assert all(row["reason"] for row in quarantined)
    lines_at = {row["source_offset"] for row in quarantined if row["target"] == "requests"}
    requests = rows(setting, f"SELECT {PLACE} FROM requests")
    assert not lines_at & {row["source_offset"] for row in requests}


def check_counts(setting: "JobEnvironment", came: int, bad_at: set[int]) -> None:
    """Every record is kept, left out on purpose, or quarantined."""
    counted = Counter[tuple[str, str | None]]()
    for row in rows(setting, "SELECT * FROM pipeline_progress WHERE job LIKE 'ingest%'"):
        counted[row["outcome"], row["target"]] += row["row_count"]
    bad_lines, bad_pushes = (
        counted["quarantined", "requests"],
        counted["quarantined", "client_metrics"],
    )
    assert counted["in", None] == came
    left_out = counted["left_out", None]
    assert came == counted["out", "requests"] + bad_lines + left_out
    assert (bad_lines + bad_pushes, bad_pushes) == (len(bad_at), BAD_PUSHES)
    reasons = {row["reason"] for row in rows(setting, "SELECT DISTINCT reason FROM quarantine")}
    assert reasons >= {
        *("not_json", "empty_line", "line_too_long", "not_a_request_line"),
        *("unknown_codec", "corrupt_payload", "not_otlp", "bad_base64"),
        *("payload_too_large", "ratio_too_high"),
    }
