"""Brokers and clients with wrong clocks: those with a right one get the same tables."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.streaming import sources

from ...live.tables_read import query
from . import clocks, driver, recorded
from .clocks import EVERYONE, SANE, SKEWED
from .command import conf_file

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(3_600)]

# Lines are compared with the watermark of the batch before: the third is the first with one.
BATCHES = 3
RUN_JOBS = ("ingest_request_log", "client_metrics", "request_results", "metric_alerts")
MAX_LATENESS_S, MAX_SKEW_S = 3_600, 60
ALERTS = {
    "rules": [
        {"name": "any", "metric": "org.apache.kafka.producer.*", "above": -1.0, "for_s": 0},
    ]
}
OF_SKEWED = re.compile(
    f"-({'|'.join(broker.name for broker in SKEWED)}|{clocks.FAR})"
    f"|'(broker|leader)_id': [{''.join(str(broker.number) for broker in SKEWED)}]"
)
Numbered = list[tuple[int, bytes]]


@pytest.fixture(autouse=True)
def unpatched(spark: object, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """What a driver of a test changes is put back."""
    monkeypatch.setitem(JOBS, "request_results", JOBS["request_results"])
    driver.keep_few_results()
    monkeypatch.setattr(sources, "read_topic", sources.read_topic)
    for name in ("_check_topics", "_gaps", "_spark_section"):
        monkeypatch.setattr(runner, name, getattr(runner, name))


def in_batches(lines: Numbered, batches: int = BATCHES) -> list[Numbered]:
    """Lines as they come, so many at once."""
    size = -(-len(lines) // batches)
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def filled(folder: Path, batches: list[Numbered]) -> Path:
    """A warehouse after every job."""
    conf = driver.conf_of(conf_file(folder, alerts=ALERTS))
    recorded.write(folder / "topic", batches, clocks.record_time)
    assert driver.error_of(conf, RUN_JOBS) is None
    return folder / "warehouse"


def test_wrong_clocks_change_nothing_for_right_ones(tmp_path: Path) -> None:
    sane = list(clocks.broker_lines(SANE))
    lines = list(clocks.broker_lines(EVERYONE))
    future = list(clocks.from_the_future())
    # In the first batch they could move the watermark that later ones are compared with.
    lines = [*lines[:9], *future, *lines[9:]]
    calm = driver.contents(filled(tmp_path / "calm", in_batches(sane, 1)), RUN_JOBS)
    folder = filled(tmp_path / "skewed", in_batches(lines))
    contents = driver.contents(folder, RUN_JOBS)
    for name in sorted(calm.keys() - {"pipeline_progress"}):
        assert calm[name] - contents[name] == Counter(), name
        others = [row for row in contents[name] - calm[name] if not is_skewed(row)]
        assert others == [], name
    assert {name for name, rows in calm.items() if rows} >= {
        *("requests", "client_metrics", "traffic", "metric_alert_events"),
    }
    times_are_bounded(folder)
    late_ones_are_counted(folder, {at for batch in in_batches(lines)[2:] for at, _ in batch})


def is_skewed(row: str) -> bool:
    """Whether a row is of a broker or a client whose clock is wrong."""
    place = re.search(r"'source_offset': (\d+)", row)
    by_place = place and int(place[1]) % len(EVERYONE) >= len(SANE)
    return bool(by_place or OF_SKEWED.search(row))


def times_are_bounded(folder: Path) -> None:
    """No request is later than its record by more than the bound, and each is there."""
    skew = "date_part('epoch', event_time) - date_part('epoch', record_time)"
    rows = query(
        folder,
        f"SELECT broker_id, count(*) AS rows, min({skew}) AS least, max({skew}) AS most "
        "FROM requests WHERE broker_id > 2 GROUP BY broker_id",
    )
    shipping_s = clocks.SHIPPING.total_seconds()
    assert {row["broker_id"]: (row["least"], row["most"]) for row in rows} == {
        3: (MAX_SKEW_S, MAX_SKEW_S),
        4: (-86_400 - shipping_s, -86_400 - shipping_s),
        5: (MAX_SKEW_S, MAX_SKEW_S),
        6: (0, 0),
        7: (-shipping_s, -shipping_s),
    }
    assert len({row["rows"] for row in rows}) == 1


def late_ones_are_counted(folder: Path, later: set[int]) -> None:
    """What a clock behind makes late has its facts, and no results but a count.

    `later`: what came when there was a watermark.
    """
    late, came = count_of(folder, "late"), count_of(folder, "in")
    # The sane ones share what each of the others tells whole.
    jobs = ("request_results", "traffic")
    assert late[jobs] * (1 + len(SKEWED)) == came[jobs] > 0
    assert query(folder, "SELECT * FROM traffic WHERE broker_id = 4") == []
    pushes = query(
        folder,
        "SELECT source_offset FROM telemetry_pushes "
        "WHERE broker_id = 4 AND unreadable_reason IS NULL",
    )
    stalled = {row["source_offset"] for row in pushes} & later
    assert late["client_metrics", "client_metrics"] == len(stalled) > 0


def count_of(folder: Path, outcome: str) -> dict[tuple[str, str], int]:
    """Rows with an outcome, by job and target."""
    sql = (
        "SELECT job, target, sum(row_count) AS n FROM pipeline_progress "
        f"WHERE outcome = '{outcome}' GROUP BY job, target"
    )
    rows: list[dict[str, Any]] = query(folder, sql)
    return {(row["job"], row["target"]): row["n"] for row in rows}
