"""What the rules say of the demo's made week: what was planted, and nothing of others."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from quotaflow.demo.past import week
from quotaflow.demo.past.clock import Clock
from quotaflow.demo.past.week import Week
from quotaflow.pipelines import config
from quotaflow.pipelines.results.declared import result_of
from quotaflow.udfs.facts import task
from quotaflow.udfs.facts.requests import RequestLog

from ...invariants.recorded_facts import unpacked
from ...record_batches import record_batch
from ...rule_rows import Rows, compute
from ...schemas.views.memory_tables import MemoryTables

NOON_MS = round(datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp() * 1e3)
TOPIC_IDS = {topic: f"{topic:A<22}" for topic in week.PLACED_BEFORE}
RESULTS = ("request_times", "quota_usage", "traffic", "config_alterations", "topic_names")
CONF = config.Conf()


def test_a_small_quota_and_a_loud_report_are_named_and_nobody_else() -> None:
    made = Week(Clock(NOON_MS), TOPIC_IDS, 1)
    # The hours around both: a whole week takes long to parse.
    first, last = (made.clock.ago(hours) for hours in (week.QUOTA_H + 2, week.NOISY_H - 2))
    content = tables_of(made, first, last)
    tables = MemoryTables()
    for name, rows in content.items():
        tables.put(name, rows)
    causes = defaultdict[str, set[str]](set)
    for each in tables.rows("SELECT principal, cause FROM client_diagnoses WHERE rank = 1"):
        causes[each["cause"]].add(each["principal"])
    assert causes.keys() == {"quota", "noisy_neighbour"}
    assert causes["quota"] == {"User:search"}
    # Others whose requests go to that broker wait too; the report itself does not.
    assert {"User:shop", "User:billing"} <= causes["noisy_neighbour"]
    assert "User:reports" not in causes["noisy_neighbour"]
    (search,) = tables.rows(
        "SELECT max(confidence) AS confidence FROM client_diagnoses WHERE cause = 'quota'"
    )
    # A snapshot knows the quota.
    assert search["confidence"] > 0.9


def tables_of(made: Week, first_ms: int, last_ms: int) -> dict[str, Rows]:
    """Facts of the lines of a time, their results, and what snapshots saw."""
    lines = [each for each in made.lines() if first_ms <= each[0] < last_ms]
    times = [at(ts_ms) for ts_ms, *_ in lines]
    log = RequestLog("cluster", CONF.ingest.line_options, CONF.payloads.limits, None)
    batch = record_batch([line for *_, line in lines], time=times)
    packed = list(task.to_rows(log)(iter([batch])))
    assert unpacked(packed, "quarantine").num_rows == 0
    content = defaultdict[str, Rows](list, requests=unpacked(packed, "requests").to_pylist())
    of_cluster = {"cluster_id": "cluster", "is_removed": False}
    content["client_quotas"] = [
        of_cluster | quota | {"event_time": at(ts_ms)} for ts_ms, quota in made.quotas()
    ]
    content["topics"] = [
        of_cluster | {"event_time": at(made.clock.start_ms), "topic_id": id_, "topic": topic}
        for topic, id_ in TOPIC_IDS.items()
    ]
    for name in RESULTS:
        result = result_of(name, CONF)
        read = {result.facts.name, *(lookup.table.name for lookup in result.lookups)}
        given: dict[str, Any] = {table: content[table] for table in read & {*content}}
        content[name] = compute(result, **given)
    return content


def at(ts_ms: int) -> datetime:
    """A time in ms."""
    return datetime.fromtimestamp(ts_ms / 1e3, UTC)
