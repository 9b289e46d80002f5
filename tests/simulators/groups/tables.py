"""Tables of simulated worlds: facts by the real parser, results by the jobs' rules, snapshots."""

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from quotaflow.pipelines import config
from quotaflow.pipelines.results.declared import result_of
from quotaflow.udfs.facts import task
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.otlp import decode
from quotaflow.udfs.request_log.records import RECORDS

from ...invariants.recorded_facts import followed, unpacked
from ...rows import Row, counted
from ...rule_rows import Rows, compute
from ...schemas.views.memory_tables import MemoryTables
from .lines import GROUP, TOPIC, TOPIC_ID, lines_of
from .world import BROKERS, HOUR_S, RACKS, Step, World, time_of

SNAPSHOT_EVERY_S = 600
_OF_GROUPS = ("group_offsets", "partition_offsets", "groups", "group_assignments")


def reader_of(worlds: Iterable[World]) -> MemoryTables:
    """All tables that an answer about groups reads, one cluster per world."""
    content = defaultdict[str, Rows](list)
    logs: dict[str, list[bytes]] = {}
    for world in worlds:
        lines: list[bytes] = []
        taken = world.dice.randrange(0, SNAPSHOT_EVERY_S, 10)
        for step, written in lines_of(world):
            lines += written
            if (step.second + taken) % SNAPSHOT_EVERY_S == 0:
                _snapshot(content, world, step)
        logs[world.cluster_id] = lines
        _of_cluster(content, world)
    _facts(content, logs)
    _results(content)
    tables = MemoryTables()
    for name, rows in content.items():
        tables.put(name, rows)
    return tables


def _facts(content: dict[str, Rows], logs: dict[str, list[bytes]]) -> None:
    conf = config.Conf()
    # One parser for all: which cluster a line is of shows by the topic that it is read from.
    log = RequestLog("all", conf.ingest.line_options, conf.payloads.limits, None)
    batches = [_records(cluster, lines) for cluster, lines in logs.items() if lines]
    packed = list(task.to_rows(log)(iter(batches)))
    bad = unpacked(packed, "quarantine").to_pylist()
    assert bad == [], bad[:3]
    requests = _of_clusters(unpacked(packed, "requests"))
    pushes = _of_clusters(unpacked(packed, "telemetry_pushes"))
    with tempfile.TemporaryDirectory() as folder:
        content["fetches"] += followed(requests, Path(folder)).to_pylist()
    content["requests"] += requests.to_pylist()
    for points in decode.decode_pushes(conf.payloads.limits)(iter(pushes.to_batches())):
        content["client_metrics"] += points.to_pylist()


def _records(cluster: str, lines: list[bytes]) -> pa.RecordBatch:
    time = time_of(60)
    rows = [
        {"value": line, "topic": cluster, "partition": 0, "offset": n, "timestamp": time}
        for n, line in enumerate(lines)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORDS)


def _of_clusters(rows: pa.Table) -> pa.Table:
    at = rows.schema.get_field_index("cluster_id")
    return rows.set_column(at, "cluster_id", rows["source_topic"])


def _results(content: dict[str, Rows]) -> None:
    conf = config.Conf()
    for result in (
        result_of("traffic", conf),
        result_of("quota_usage", conf),
        result_of("group_members"),
        result_of("group_commits"),
        result_of("group_member_events"),
        result_of("share_fetches", conf),
        result_of("fetch_sizes", conf),
        result_of("replica_offsets"),
        result_of("fetch_faults"),
    ):
        inputs = {result.facts.name, *(lookup.table.name for lookup in result.lookups)}
        given = {name: content[name] for name in inputs if name in content}
        content[result.table.name] += compute(result, **given)


def _snapshot(content: dict[str, Rows], world: World, step: Step) -> None:
    """Rows of a snapshot: of offsets those of all, which says the same as their changes."""
    state, at = step.state, {"cluster_id": world.cluster_id, "event_time": time_of(step.second)}
    at |= {"is_removed": False}
    of_group = at | {"group_id": GROUP, "group_type": world.group_type}
    there = [m for m in world.members if m.number not in state.absent]
    content["groups"].append(
        of_group
        | {"protocol_type": "consumer", "coordinator_id": BROKERS[0], "members": len(there)}
        | {"state": "Stable" if there else "Empty", "assignor": "range"}
    )
    for member in world.members:
        topic = "another" if state.elsewhere else TOPIC
        assigned = [{"topic": topic, "partition": p} for p in member.partitions]
        _if_changed(
            content["group_assignments"],
            at
            | {"group_id": GROUP, "member_id": member.member_id, "client_id": member.client_id}
            | {"client_address": f"10.1.0.{member.number + 1}", "assigned_partitions": assigned}
            | {"is_removed": member not in there},
        )
    beyond = world.beyond_end and state is world.now
    for p, end in step.ends.items():
        place = {"topic": TOPIC, "partition": p}
        position = int(end * 2) if beyond else int(step.positions[p])
        offset = (
            {"start_offset": position, "reported_lag": int(end) - position}
            if world.is_share
            else {"committed_offset": position}
        )
        if not world.never_committed:
            content["group_offsets"].append(of_group | place | offset)
        stable = int(world.opened.get(p, end))
        content["partition_offsets"].append(
            at | place | {"log_end_offset": int(end), "last_stable_offset": stable}
        )
        if p in world.opened:
            content["active_producers"].append(
                at
                | place
                | {"broker_id": world.leader(p), "producer_id": 7_000 + p}
                | {"coordinator_epoch": 0, "current_transaction_start_offset": stable}
            )
    for table in _OF_GROUPS:
        content["pipeline_progress"].append(
            counted(0, 0, "in", 1, job="snapshot", query_id="snapshot", target=table)
            | {"event_time": at["event_time"], "cluster_id": world.cluster_id}
        )


def _if_changed(rows: Rows, row: Row) -> None:
    """Add a row of a snapshot unless it says what the last one of this member says."""
    before = [each for each in rows if _member(each) == _member(row)][-1:]
    same = [each | {"event_time": row["event_time"]} for each in before]
    if same != [row]:
        rows.append(row)


def _member(row: Row) -> tuple[str, str]:
    return row["cluster_id"], row["member_id"]


def _of_cluster(content: dict[str, Rows], world: World) -> None:
    at = {"cluster_id": world.cluster_id, "event_time": time_of(-HOUR_S), "is_removed": False}
    for broker, rack in RACKS.items():
        content["brokers"].append(at | {"broker_id": broker, "rack": rack})
    content["topics"].append(
        at | {"topic_id": TOPIC_ID, "topic": TOPIC, "partition_count": len(world.partitions)}
    )
    content["client_quotas"] += list(_quotas(world, at))


def _quotas(world: World, at: Row) -> Iterator[Row]:
    if world.now.quota is not None:
        entity = {"user": "billing", "is_default_user": False, "is_default_client_id": True}
        entity |= {"is_default_ip": False, "config_key": "consumer_byte_rate"}
        time = {"event_time": time_of(world.onset)}
        yield at | time | entity | {"quota": world.now.quota}
