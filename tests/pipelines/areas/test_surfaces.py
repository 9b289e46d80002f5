"""Every surface names the same problems by the same codes, and none where all is well.

One warehouse has a cluster for each case. There `bad` is the name of a principal, client, group and
topic with the planted problem, and `fine` that of a twin that looks alike and has none. What `bad`
does today, `fine` did some weeks ago.
"""

import ast
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.finding import NOW, Finding
from quotaflow.pipelines.areas.pipeline import DATA_OLD, MAX_AGE_S
from quotaflow.pipelines.areas.problems import PROBLEMS, beside_incidents
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.areas.why import why
from quotaflow.pipelines.commands import status
from quotaflow.pipelines.dashboard.questions import QUESTIONS
from quotaflow.pipelines.monitoring import health, own_metrics
from quotaflow.pipelines.monitoring.notifications import (
    ALERT_CLOSED,
    ALERT_OPENED,
    CHECK_FAILED,
    INCIDENT_OPEN,
    PRODUCER_IDS,
    open_tables,
    read_notifications,
)
from quotaflow.pipelines.report import plan
from quotaflow.pipelines.report.incidents import cards, repeated
from quotaflow.pipelines.report.report import SECTIONS
from quotaflow.pipelines.serve import subjects
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import EVENTS

from ...delta_tables import violation
from ...rows import (
    HOSTILE,
    Row,
    alert,
    at,
    choice,
    fetched,
    moved,
    push,
    read_remotely,
    reassigned,
    request,
    times,
    used,
)
from ...rows import config as config_row
from ...schemas.views.test_snapshots_alone import listing, moving, size, taken, throttle
from ...schemas.views.view_tables import make_answers, make_tables, make_tables_and_answers
from ..report.pages import CONTENT, PROGRESS, progress, scope

Tables = dict[str, list[Row]]
BAD, FINE = "bad", "fine"
HOUR, WEEKS = Period(None, timedelta(hours=1)), timedelta(weeks=6)
THROTTLED: Row = {"throttled_requests": 9, "throttle_time_ms": 900.0}
THROTTLED |= {"throttled_by": "producer_byte_rate"}


def client(name: str) -> Row:
    return {"principal": f"User:{name}", "client_id": name}


def usage(name: str, bytes_per_s: float = 10.0, **others: Any) -> Row:
    row = used(60, "producer_byte_rate", bytes_per_s, **client(name), quota_bucket_user=name)
    return row | others


def burst(name: str, cause: str, *, is_accused: bool) -> Row:
    row = client(name) | {"started_at": at(30), "ended_at": at(50), "ids": 40, "cause": cause}
    return row | {"is_accused": is_accused, "clients": 1, "hosts": 1}


def lag(name: str, trend: str) -> Row:
    row: Row = {"group_id": name, "topic": name, "lag": 5_000, "lag_s": 300.0, "trend": trend}
    row |= {"known_at": at(60), "since": at(-240)}
    return row | {"rank": 1, "cause": "unknown", "confidence": None, "evidence": []}


def read(name: str, advice: str | None) -> Row:
    seen = {"first_seen": at(20), "last_seen": at(50), "resets": 4}
    return client(name) | seen | {"topic": name, "advice": advice}


def move(name: str, state: str) -> Row:
    row: Row = {"topic": name, "partition": 0, "replica_id": 2, "state": state}
    return row | {"requested_time": at(10), "requested_by": "User:op"}


def waiting(name: str) -> Row:
    row: Row = client(name) | {"since": at(0), "until": at(60), "known_until": at(60)}
    row |= {"api": "PRODUCE", "symptom": "slow", "waited_ms": 900.0, "requests": 10, "rank": 1}
    return row | {"cause": "slow_replicas", "share": 1.0, "confidence": 0.5, "client_ids": 1}


def waits(name: str) -> Row:
    return times(60, "PRODUCE", each={"local": 2.0}, **client(name))


def slow(broker_id: int, *, is_slow: bool) -> Row:
    row: Row = {"event_time": at(60), "event_date": at(60).date(), "broker_id": broker_id}
    return row | {"is_slow": is_slow, "produce_p99_ms": 900.0, "usual_produce_p99_ms": 5.0}


def instance(name: str, state: str) -> Row:
    seen = {"first_seen": at(5), "last_seen": at(60), "missing_pushes": 0, "expected_pushes": 4}
    row = client(name) | seen | {"client_instance_id": f"i-{name}", "state": state}
    return row | {"missing_share": 0.0, "rejected_pushes": 0}


def opened(name: str, state: str = "opened", second: float = 5) -> Row:
    row = alert(second, state, **client(name), client_instance_id=f"i-{name}", alert_id=name)
    times = {"event_time": at(second), "event_date": at(second).date(), "first_breach": at(1)}
    return row | times | {"bound": 1.0, "unit": "ms"}


def checked(suite: str, *, success: bool, severity: str = "critical") -> Row:
    row: Row = {"suite": suite, "expectation": "is_there", "severity": severity, "run_id": "r"}
    counts = {"checked_rows": 9, "failed_rows": 0 if success else 1}
    return row | counts | {"success": success, "event_time": at(60), "event_date": at(60).date()}


def replica(name: str, *, is_in_sync: bool) -> Row:
    row: Row = {"topic_id": name, "topic": name, "partition": 0, "broker_id": 2}
    row |= {"event_time": at(0), "is_leader": False, "is_removed": False}
    return row | {"is_in_sync": is_in_sync, "is_offline": False, "is_preferred": False}


def in_sync(second: float, name: str, *replicas: int) -> list[Row]:
    """What the leader of partition 0 asked to be in sync."""
    entity = {"topic_id": name, "topic": name}
    return [reassigned(second, "in_sync", n, **entity) for n in replicas]


def racked(name: str, size: int, crossed: int, avoidable: int) -> Row:
    """What a client read of a follower, and how much of it in another rack than its own."""
    read = {"topic": name, "topic_id": name, "partition": 0, "broker_id": 3}
    bytes_read = {"cross_rack_bytes": crossed, "avoidable_bytes": avoidable}
    return choice(50, size, **client(name), **read, **bytes_read)


def oversized(name: str, size: int) -> Row:
    """Fetches with a first batch of this size, where a partition may return 65,536 bytes."""
    batch = {"bytes": size, "topic": name, "topic_id": name, "partition": 0, "fetch_offset": 0}
    of_client = client(name) | {"oversized_batches": 1, "largest_oversized": [batch]}
    return fetched(50, 5, 100, **of_client)


WELL = [row for row in PROGRESS if row["outcome"] in {"in", "out"}]
CASES: dict[str, Tables] = {
    "client_suffers": {"client_diagnoses": [waiting(BAD)], "request_times": [waits(FINE)]},
    "client_throttled": {
        "quota_usage": [
            usage(BAD, **THROTTLED),
            usage(FINE, **THROTTLED | {"throttle_time_ms": 5.0}),
        ]
    },
    "quota_near": {"quota_usage": [usage(BAD, 900.0), usage(FINE, 700.0)]},
    "producer_ids_accused": {
        "producer_id_bursts": [
            burst(BAD, "producer_per_batch", is_accused=True),
            burst(FINE, "deploy_burst", is_accused=False),
        ]
    },
    "producer_ids_over_quota": {
        "producer_id_rates": [violation(f"User:{name}", at(60)) for name in (BAD, FINE)],
        "producer_id_bursts": [burst(FINE, "deploy_burst", is_accused=False)],
    },
    "group_falls_behind": {"why_groups_lag": [lag(BAD, "growing"), lag(FINE, "shrinking")]},
    "group_behind": {"why_groups_lag": [lag(BAD, "steady"), lag(FINE, "shrinking")]},
    "read_fails": {"read_problems": [read(BAD, "extend_retention"), read(FINE, None)]},
    "move_stuck": {"reassignments": [move(BAD, "stuck"), move(FINE, "moving")]},
    "throttle_wrong": {
        "throttle_checks": [{"finding": "stale_list", "topic": BAD, "side": "leader"}]
    },
    "partition_under_min_isr": {
        # One has fewer than it may have, the other one may have as few.
        "reassignment_changes": [
            row
            for name in (BAD, FINE)
            for row in (*in_sync(10, name, 1, 2, 3), *in_sync(50, name, 1, 2))
        ],
        "configs": [
            config_row(0, "min.insync.replicas", least, entity_type="topic", entity_name=name)
            for name, least in ((BAD, "3"), (FINE, "1"))
        ],
    },
    "partition_at_min_isr": {
        # Both come down to as few as they may have, and one has more again.
        "reassignment_changes": [
            *(
                row
                for name in (BAD, FINE)
                for row in (*in_sync(10, name, 1, 2, 3), *in_sync(50, name, 1, 2))
            ),
            *in_sync(51, FINE, 1, 2, 3),
        ],
        "configs": [
            config_row(0, "min.insync.replicas", "2", entity_type="topic", entity_name=name)
            for name in (BAD, FINE)
        ],
    },
    "reads_leave_rack": {
        "preferred_replicas": [racked(BAD, 10**6, 10**6, 10**6), racked(FINE, 10**6, 0, 0)]
    },
    "reads_cross_racks": {
        # No step is known for either; a tenth may cross.
        "preferred_replicas": [racked(BAD, 10**8, 10**8, 0), racked(FINE, 10**8, 10**7, 0)]
    },
    "writes_leave_rack": {
        "producer_rack_advice": [
            {"advice": "check_producer", **client(BAD), "topic": BAD, "client_rack": "az-b"}
            | {"saved_bytes_per_hour": 5e7, "bytes_per_hour": 6e7, "since": at(0), "until": at(60)}
            | {"saved_bytes": 10**6, "lasted_ms": 120_000}
        ]
    },
    "fetch_setting": {"fetch_sizes": [oversized(BAD, 100_000), oversized(FINE, 60_000)]},
    "remote_reads": {
        "remote_reads": [read_remotely(50, 900, **client(n), topic=n) for n in (BAD, FINE)],
        "remote_read_advice": [
            {"advice": "read_sooner", **client(BAD), "topic": BAD, "bytes_per_hour": 900.0}
            | {"read_age_ms": 7_200_000, "local_retention_ms": 3_600_000}
            | {"bytes": 900, "lasted_ms": 60_000}
        ],
    },
    "broker_slow": {
        "broker_degradation": [slow(1, is_slow=True), slow(2, is_slow=False)],
        "quota_usage": [usage(BAD), usage(FINE, broker_id=2)],
    },
    "metric_alert_open": {
        "metric_alert_events": [opened(BAD), opened(FINE), opened(FINE, "closed", 9)]
    },
    "client_cut_off": {"client_coverage": [instance(BAD, "cut_off"), instance(FINE, "terminated")]},
    "push_refused": {
        "telemetry_pushes": [
            push(3, **client(BAD), client_instance_id="i-bad", error_code=87, accepted=False),
            # A client with an old subscription asks for the new one, and pushes again.
            push(3, **client(FINE), client_instance_id="i-fine", error_code=117, accepted=False),
            push(4, **client(FINE), client_instance_id="i-fine"),
            # One that pushed too early waits.
            push(5, **client(FINE), client_instance_id="i-fine", error_code=89, accepted=False),
        ]
    },
    "throttle_left_over": {
        # One list is older than replication.stale_throttle_s, the other is of a minute ago.
        **throttle(listing(0, entity_name=BAD), listing(3_540, entity_name=FINE)),
        "requests": [],
    },
    "move_stalled": {
        "moving_replicas": [moving(10, topic=name) for name in (BAD, FINE)],
        "replica_sizes": [
            *(size(0, 1, 1_000, topic=name) for name in (BAD, FINE)),
            *(size(10, 3, 100, topic=name) for name in (BAD, FINE)),
            size(30, 3, 300, topic=FINE),
        ],
        "pipeline_progress": taken(10, 30),
        "requests": [],
    },
    "replicas_out_of_sync": {
        # A replica that a move adds is not in sync until it has all records.
        "replicas": [replica(name, is_in_sync=False) for name in (BAD, FINE)],
        "moving_replicas": [moving(10, topic=FINE) | {"broker_id": 2}],
    },
    "check_failed": {"quality_results": [checked(BAD, success=False), checked(FINE, success=True)]},
    "check_warns": {
        "quality_results": [
            checked(BAD, success=False, severity="warning"),
            checked(FINE, success=True),
        ]
    },
    "result_failed": {
        "pipeline_progress": [
            *WELL,
            progress(60, "failed", target=BAD, reason="error"),
            progress(60, "left_out", target=FINE, reason="raft"),
        ]
    },
    "rows_unused": {
        "pipeline_progress": [
            *WELL,
            progress(60, "quarantined", target=BAD, reason="not_json"),
            progress(60, "left_out", target=FINE, reason="raft"),
        ]
    },
    "points_not_sent": {
        "pipeline_progress": [
            *WELL,
            progress(60, "refused", target=BAD, reason="answer_400"),
            progress(60, "left_out", target=FINE, reason="raft"),
        ]
    },
}
"""By the code that every surface is to name."""
OF_NO_NAME = {
    *("move_stalled", "throttle_left_over"),
    *("check_failed", "check_warns", "result_failed", "rows_unused", "points_not_sent"),
}
"""What `why` does not name: it needs a request log, which says more of moves and throttles than
snapshots, and the pipeline is about no name."""


def base(cluster: str) -> Tables:
    """What a cluster has besides: both clients are well, and sections have rows to begin with."""
    names = (BAD, FINE)
    tables: Tables = {
        "pipeline_progress": WELL,
        "quota_usage": [usage(name) for name in names],
        "requests": [request(60, "PRODUCE", **client(name)) for name in names],
        "traffic": [moved(60, 10, **client(name)) for name in names],
        "topics": [{"topic_id": n, "topic": n, "is_removed": False} for n in names],
        "groups": [{"group_id": name, "event_time": at(0), "is_removed": False} for name in names],
        "fetch_sizes": [fetched(60, 5, 100, **client(name)) for name in names],
        "client_coverage": [instance(name, "active") for name in names],
        "group_lag": [
            {"group_id": name, "topic": name, "partition": 0, "lag": 0, "members": 1}
            | {"position_known_at": at(60)}
            for name in names
        ],
    }
    tables |= CASES[cluster]
    tables |= {
        table: [*(weeks_ago(row) for row in rows if BAD in str(row)), *rows]
        for table, rows in tables.items()
        if table in EVENTS - {"metric_alert_events"}
    }
    return {
        table: [row | {"cluster_id": cluster} for row in rows] for table, rows in tables.items()
    }


def weeks_ago(row: Row) -> Row:
    """The row, as if the twin had done the same long before the time that surfaces are about."""
    shifted = {name: each - WEEKS for name, each in row.items() if isinstance(each, date)}
    named = {name: each.replace(BAD, FINE) for name, each in row.items() if isinstance(each, str)}
    return row | shifted | named


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A cluster for each case, of the case's name."""
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path_factory.mktemp("planted"))))
    content: Tables = {}
    for cluster in CASES:
        for table, rows in base(cluster).items():
            content.setdefault(table, []).extend(rows)
    make_tables(warehouse, content)
    make_answers(warehouse, "SELECT 1 FROM client_racks, replica_advice")
    return warehouse


@pytest.fixture(scope="module")
def reader(planted: Warehouse) -> FolderReader:
    return FolderReader(planted)


_ONE_OF = 15
EVERY_CASE = pytest.mark.parametrize(
    "code",
    [
        # A surface plans all its queries for one case: of most only make faults does.
        pytest.param(code, marks=[] if number % _ONE_OF == 0 else pytest.mark.faults)
        for number, code in enumerate(CASES)
    ],
)
"""The dashboard has all cases in one query, and surfaces agree over rows of every kind."""


def alarms_of(one: Scope) -> list[Finding]:
    """What the report names, but for changes that wait."""
    sections = (section(one) for _, section in SECTIONS if section is not plan.section)
    return [alarm for section in sections for alarm in section.alarms]


@EVERY_CASE
def test_the_report_names_the_problem_and_not_its_twin(planted: Warehouse, code: str) -> None:
    alarms = alarms_of(scope(planted, code, until=at(65), now=at(120)))
    assert [alarm.code for alarm in alarms] == [code], alarms
    assert FINE not in alarms[0].text


@EVERY_CASE
def test_why_names_the_problem_of_one_name_and_none_of_its_twin(
    reader: FolderReader, code: str
) -> None:
    assert named_by_why(reader, BAD, code) == (set() if code in OF_NO_NAME else {code})
    assert named_by_why(reader, FINE, code) == set()


@EVERY_CASE
def test_what_begins_the_answer_about_a_name_is_an_incident_or_listed_beside_them(
    planted: Warehouse, code: str
) -> None:
    one = scope(planted, code, until=at(65), now=at(120))
    verdict = why(FolderReader(planted), BAD, HOUR, code, config.Conf()).verdict
    incidents = one.ask(diagnoses.OPEN)
    names = [name for row in incidents for name in row["names"]]
    others = [f"{each.text} {each.evidence}" for each in beside_incidents(one, incidents)]
    listed = " ".join([*names, *others])
    assert FINE not in listed
    if verdict.rank == NOW:
        # A slow broker is named in place of its clients.
        assert BAD in listed or (code == "broker_slow" and "broker 1" in listed)


def named_by_why(reader: FolderReader, name: str, cluster: str) -> set[str | None]:
    answer = why(reader, name, HOUR, cluster, config.Conf())
    areas = answer.areas
    brief = why(reader, name, HOUR, cluster, config.Conf(), is_brief=True).verdict
    assert replace(brief, when="") == replace(answer.verdict, when="")
    return {finding.code for area in areas for finding in area.findings if finding.problem}


def counted_by_dashboard(reader: FolderReader) -> list[tuple[str, str, int]]:
    """Each cluster and code, with the number of subjects."""
    question = QUESTIONS["attention"].between(at(0).date(), at(0).date())
    return [(row["cluster_id"], row["code"], row["found"]) for row in reader.rows(question)]


def test_the_dashboard_counts_each_problem_once(reader: FolderReader) -> None:
    rows = counted_by_dashboard(reader)
    assert sorted(rows) == sorted((code, code, 1) for code in CASES)


def test_surfaces_agree_over_rows_of_every_kind(tmp_path: Path) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    make_tables_and_answers(warehouse, CONTENT)
    reader = FolderReader(warehouse)
    by_report = {alarm.code for alarm in alarms_of(scope(warehouse))} - {DATA_OLD.code}
    by_dashboard = {code for cluster, code, _ in counted_by_dashboard(reader) if cluster == "c1"}
    names = ("alice", "orders", HOSTILE, "made between two snapshots")
    by_why = {code for name in names for code in named_by_why(reader, name, "c1")}
    assert len(by_report) > 12
    assert by_dashboard == by_report
    assert by_why == by_report - OF_NO_NAME


def test_notify_and_status_name_the_same_problems(planted: Warehouse) -> None:
    conf = config.Conf(warehouse=planted.conf)
    notices = read_notifications(open_tables(conf, at(0), at(120)), conf, at(0), at(120))
    kinds = [(each.cluster_id, each.kind) for each in notices]
    assert kinds.count(("producer_ids_accused", PRODUCER_IDS)) == 1
    assert kinds.count(("check_failed", CHECK_FAILED)) == 1
    opened_at = [each.details["client_id"] for each in notices if each.kind == ALERT_OPENED]
    closed_at = [each.details["client_id"] for each in notices if each.kind == ALERT_CLOSED]
    assert set(opened_at) - set(closed_at) == {BAD}
    state = health.read(conf, at(120))
    assert state.open_alerts == 1
    assert state.failed_checks == {"critical": 1, "warning": 1}


INCIDENTS: Tables = {
    "client_diagnoses": [waiting(BAD) | {"cause": "quota", "detail": "producer_byte_rate"}],
    "quota_usage": [usage(BAD, **THROTTLED), usage(FINE, 100.0)],
    "why_groups_lag": [lag(BAD, "growing"), lag(FINE, "shrinking")],
    "reassignments": [move(BAD, "stuck"), move(FINE, "moving")],
}
OF_BAD = {"slow": "client_suffers", "lag": "group_falls_behind", "move_stalled": "move_stuck"}
"""By the symptom of an incident, the code of its problem."""


def test_each_surface_names_each_incident_once(tmp_path: Path) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    others = base("client_suffers") | INCIDENTS
    make_tables(warehouse, {t: [r | {"cluster_id": "c1"} for r in others[t]] for t in others})
    conf, reader = config.Conf(warehouse=warehouse.conf), FolderReader(warehouse)
    one = scope(warehouse, until=at(65), now=at(120))
    shown = reader.rows("SELECT * FROM incidents")
    by_name = why(reader, BAD, HOUR, "c1", conf)
    diagnosed = next(area for area in by_name.areas if area.name == "diagnoses")
    verdict = subjects.page(one, "client", BAD).verdict
    assert verdict
    page = " ".join(verdict.lines())
    waits = f"1 client waits for a quota (producer_byte_rate of the default): {BAD}"
    assert {row["symptom"]: row["names"] for row in shown} == {key: [BAD] for key in OF_BAD}
    assert {each.evidence["symptom"] for each in diagnosed.findings} == set(OF_BAD)
    assert named_by_why(reader, BAD, "c1") == set(OF_BAD.values())
    alarms = {alarm.code: alarm.text for alarm in alarms_of(one)}
    assert alarms.keys() == set(OF_BAD.values())
    assert alarms["client_suffers"] == f"{waits}."
    carded = {card.symptom: card for card in cards(one)}
    assert {(card.rank, card.names) for card in carded.values()} == {(NOW, (BAD,))}
    assert carded.keys() == set(OF_BAD)
    assert carded["slow"].text == f"{waits}."
    assert carded["slow"].action.startswith(
        "Spread the client's requests over time, or raise the quota"
    )
    assert ">since 2026-11-21 12:0" in carded["slow"].line
    assert ">since 2026-11-21 11:56" in carded["lag"].line, "when the oldest record left came"
    assert repeated(list(carded.values())) >= set(OF_BAD.values())
    assert f"{BAD} is slow" in page
    assert f"Group {BAD} is" in page
    assert f"move of {BAD}-" in page
    tables = open_tables(conf, at(-1), at(120))
    every = read_notifications(tables, conf, at(-1), at(120))
    notices = [each for each in every if "inc" in each.kind]
    assert [each.kind for each in notices] == [INCIDENT_OPEN] * len(OF_BAD)
    assert {each.details["symptom"] for each in notices} == set(OF_BAD)
    state = health.read(conf, at(120))
    assert {row["symptom"] for row in state.incidents} == set(OF_BAD)
    assert next(iter(status.lines(state))).startswith("incident  ")
    assert any(line.startswith(f"incident  {waits} (since ") for line in status.lines(state))


def test_an_incident_that_ended_asks_for_nothing(tmp_path: Path) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    (row,) = INCIDENTS["client_diagnoses"]
    others = base("client_suffers") | {"client_diagnoses": [row | {"known_until": at(3_600)}]}
    make_tables(warehouse, {t: [r | {"cluster_id": "c1"} for r in others[t]] for t in others})
    (card,) = cards(scope(warehouse, until=at(3_600), now=at(3_700)))
    assert (card.rank, card.action) == (0, "")


def test_alerts_of_prometheus_have_the_codes_of_problems() -> None:
    assert {alert.problem for alert in own_metrics.alerts() if alert.problem} == {
        *("check_failed", "result_failed", "rows_unused", "data_old", "lease_over"),
    }
    assert str(MAX_AGE_S) in next(
        alert.expression(config.HealthSection())
        for alert in own_metrics.alerts()
        if alert.problem == DATA_OLD.code
    )


def test_codes_are_unique() -> None:
    codes = [problem.code for problem in PROBLEMS]
    assert len(set(codes)) == len(codes)
    assert set(CASES) == set(codes)


SURFACES = ("report", "serve", "dashboard", "monitoring", "areas/why.py", "commands/why.py")


def modules() -> Iterator[Path]:
    root = Path(config.__file__).parents[1]
    for surface in SURFACES:
        path = root / surface
        yield from sorted(path.glob("*.py")) if path.is_dir() else [path]


def texts(path: Path) -> Iterator[str]:
    """Each string of a module that is not a docstring; an f-string in its parts."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_surface_has_sql_of_its_own() -> None:
    with_sql = {
        (path.parent.name, path.name)
        for path in modules()
        for text in texts(path)
        # What a person is told to run is no question of ours.
        if "SELECT" in text and "`quotaflow sql" not in text
    }
    assert with_sql == set()
