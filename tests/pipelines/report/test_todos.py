"""What a report advises: each sentence follows from rows, and agrees with the other parts."""

from datetime import UTC, datetime, timedelta

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.finding import NOW as AT_ONCE
from quotaflow.pipelines.feedback.planning import planning
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.report import fetches, health, plan, producer_ids, quotas, telemetry
from quotaflow.pipelines.report.report import SECTIONS
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...rows import (
    Row,
    altered,
    fault,
    fetched,
    fresh,
    moved,
    request,
    setting,
    used,
)
from ...schemas.views.limit_rows import offenders, offending_now
from ...schemas.views.view_tables import make_answers, make_tables, make_tables_and_answers, served
from .pages import NOW, PROGRESS, progress, scope

OWN = {"principal": "User:receiver", "client_software_name": "apache-kafka-java"}
OWN |= {"client_software_version": "3.6.0"}
# Somebody altered a throttle, our own receiver pushes no telemetry, and nothing is wrong.
QUIET: dict[str, list[Row]] = {
    "pipeline_progress": PROGRESS[:3],
    "settings": [setting("excluded.User:receiver", "ingest.shipper_principals")],
    "requests": [request(1, "PRODUCE", **OWN)],
    "traffic": [moved(1, 10)],
    "fetch_sizes": [fetched(1, 5, 100)],
    "quota_usage": [used(0, "producer_byte_rate", 10.0)],
    "config_alterations": [
        altered(5, "leader.replication.throttled.rate", "9", entity_type="broker", entity_name="1")
    ],
}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A cluster without a problem."""
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path_factory.mktemp("quiet"))))
    make_tables(warehouse, QUIET)
    return warehouse


@pytest.mark.parametrize("title", [title for title, _ in SECTIONS])
def test_where_nothing_is_wrong_nothing_is_to_do(quiet: Warehouse, title: str) -> None:
    section = dict(SECTIONS)[title](scope(quiet, now=NOW - timedelta(hours=2)))
    assert section.alarms == ()
    if title == "Quality of the tables":
        assert section.advice == "Run `quotaflow check`, best on a schedule."
    else:
        assert section.advice == "" or section.advice.startswith("No step is needed"), section


def alarms(section: ReportSection, rank: int) -> str:
    return " ".join(alarm.text for alarm in section.alarms if alarm.severity == rank)


DAVE = {"quota": 20_000.0, "quota_bucket_user": "dave", "principal": "User:dave"}
# Just below its quota, as brokers count more than the log has.
FULL = DAVE | {"quota_bucket_usage": 19_988.0, "headroom": 12.0, "peak_usage": 19_988.0}
BY_BYTES = {"throttled_requests": 40, "throttle_time_ms": 900.0}
BY_BYTES |= {"throttled_by": "producer_byte_rate"}


def test_a_quota_that_throttled_is_not_near_at_the_same_time(warehouse: Warehouse) -> None:
    near = FULL | {"quota_bucket_user": "eve", "principal": "User:eve"}
    usage = [
        used(0, "producer_byte_rate", 19_988.0, **FULL, **BY_BYTES),
        used(0, "producer_byte_rate", 19_988.0, **near),
    ]
    make_tables(warehouse, {"pipeline_progress": PROGRESS, "quota_usage": usage})
    section = quotas.section(scope(warehouse))
    assert alarms(section, AT_ONCE) == "Quotas throttled User:dave for 900 ms in all."
    assert "eve" in alarms(section, AT_ONCE + 1)
    assert "dave" not in alarms(section, AT_ONCE + 1)
    assert "1 of 2 quotas in use throttled their clients; 1 more came near" in section.sentences[1]


def test_a_throttled_share_consumer_is_named_and_its_use_is_a_lower_bound(
    warehouse: Warehouse,
) -> None:
    share = {"throttled_by": "consumer_byte_rate", "share_requests": 9, "is_lower_bound": True}
    used_up = {"quota_bucket_usage": 0.0, "peak_usage": 0.0, "client_id": "shares"}
    usage = [used(0, "consumer_byte_rate", 0.0, **(DAVE | used_up | BY_BYTES | share))]
    make_tables(warehouse, {"pipeline_progress": PROGRESS, "quota_usage": usage})
    section = quotas.section(scope(warehouse))
    assert section.sentences[1].startswith("Share consumers use more than is shown: shares.")
    (nearest,) = [part for part in section.grids if part.caption.startswith("Quotas by how full")]
    assert "at least 20.0 kB/s" in " ".join(str(cell) for row in nearest.rows for cell in row)


def test_the_report_shows_the_changes_that_a_plan_makes(warehouse: Warehouse) -> None:
    now = datetime.now(UTC)
    make_tables_and_answers(warehouse, offending_now("mallory", "broker"))
    of_report = scope(warehouse, now=now, since=now - timedelta(days=1), until=now)
    made = planning.make(context.of_plans(of_report.conf), of_report.reader, now)
    section = plan.section(of_report)
    waiting, left_out = section.grids[0].rows, section.grids[1].rows
    assert len(waiting) == len(made.changes) == 1
    assert section.sentences[0] == "1 change waits."
    assert alarms(section, AT_ONCE + 1).startswith("1 change waits: user mallory")
    assert len(left_out) == len(made.blocked) > 0
    assert all(cells[-1] for cells in left_out), "each says why it is not planned"


def test_old_facts_leave_nothing_that_should_change(warehouse: Warehouse) -> None:
    then = NOW - timedelta(hours=9)
    content = offenders(("User:mallory",), then)
    make_tables_and_answers(warehouse, content | {"pipeline_progress": fresh(then)})
    section = plan.section(scope(warehouse))
    assert section.sentences[0] == "No change waits."
    assert section.advice == "No step is needed."
    assert section.alarms == ()
    assert all("age of" in cells[-1] for cells in section.grids[1].rows)


@cases(
    ("version", "advice"),
    ("too old", "3.6.0", "Update clients of old versions"),
    ("switched off", "4.3.1", "Check enable.metrics.push"),
)
def test_what_helps_a_client_without_telemetry_is_by_its_reason(
    warehouse: Warehouse, version: str, advice: str
) -> None:
    client = {"client_software_name": "apache-kafka-java", "client_software_version": version}
    make_tables(warehouse, served([request(1, "PRODUCE", **client)]))
    section = telemetry.section(scope(warehouse))
    assert section.advice.startswith(advice)
    assert "; " not in section.advice


def test_without_a_quota_of_conf_no_one_is_said_to_stay_within_it(warehouse: Warehouse) -> None:
    row = {"cluster_id": "c1", "principal": "User:alice", "broker_id": 1, "kind": "allocation"}
    row |= {"event_time": NOW - timedelta(hours=2), "new_ids": 4, "rate_per_s": 0.3}
    row |= {"event_date": NOW.date(), "is_violating": False}
    given = {"cluster_id": "c1", "principal": "User:alice", "allocations": 1, "broker_id": 1}
    given |= {"event_time": NOW - timedelta(hours=2), "first_seen": NOW - timedelta(hours=2)}
    uses = [given | {"event_date": NOW.date(), "producer_id": n} for n in (1, 2, 3, 3)]
    make_tables(warehouse, {"producer_id_rates": [row], "producer_id_uses": uses})
    section = producer_ids.section(scope(warehouse))
    assert section.sentences == (
        "1 principal took 3 new ids; conf sets no quota for them (producer_ids).",
    )
    assert section.advice == "No step is needed: no burst accuses a principal."


@cases(
    ("outcome", "advice"),
    ("unreadable rows", "quarantined", "`quotaflow show quarantine`"),
    ("late rows", "late", "`quotaflow rebuild`"),
    ("results that fail", "failed", "`quotaflow doctor`"),
    ("rows left out on purpose", "left_out", "No step is needed."),
)
def test_what_helps_against_unused_rows_is_by_their_outcome(
    warehouse: Warehouse, outcome: str, advice: str
) -> None:
    counted = [progress(60, "in", 12, target=None), progress(60, outcome, 3, reason="why")]
    make_tables(warehouse, {"pipeline_progress": counted})
    section = health.section(scope(warehouse, now=NOW - timedelta(hours=2)))
    assert section.advice.startswith(advice)
    assert "; " not in section.advice


def test_reads_that_went_wrong_call_for_no_setting(warehouse: Warehouse) -> None:
    content = {"fetch_sizes": [fetched(1, 5, 100)], "fetch_faults": [fault(0, "offset_too_small")]}
    make_tables(warehouse, content)
    make_answers(warehouse, "SELECT * FROM read_problems")
    section = fetches.section(scope(warehouse))
    assert section.advice.startswith("Run `quotaflow why orders`: it says why reads fail")
    assert "settings" not in section.advice
