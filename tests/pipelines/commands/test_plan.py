"""The command plan."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.sql_dialects import tables_in
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

from ...cases import cases
from ...command_line import Command, Printed, in_options, read_in_part
from ...delta_tables import NOON, recent_time, violation
from ...own_process import python
from ...rows import HOSTILE, fresh, limited, setting, throttled
from ...schemas.views.limit_rows import offenders, offending_now
from ...schemas.views.view_tables import Tables, make_table, make_tables_and_answers

Plan = Callable[..., Printed]


SOME = ("mallory", "broker", "o'b\x1b[2J")
"""Of these the first changes, the second is excluded, and the last waits."""


def seen_now(content: Tables) -> Tables:
    """Tables with current facts and a current snapshot: older ones block a plan."""
    return content | {"pipeline_progress": fresh(recent_time())}


@pytest.fixture
def plan(table_command: Command) -> Plan:
    """Plans over the test's tables."""
    ways = in_options(
        "producer_ids.default_quota_per_s=1",
        "replication.manage=true",
        "replication.capacity_bytes_per_s=100000000",
    )
    return partial(table_command, "plan", *ways)


def test_changes_wait_with_exit_code_three(plan: Plan, warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, offending_now(*SOME))
    printed = plan(code=3)
    assert "1 change waits in plan " in printed.err
    assert "at most 1 user may change in one plan (plan.max_entity_share)" in printed.err
    assert "Nothing was written" in printed.err
    assert "--entity-name mallory --add-config producer_ids_rate=1.5" in printed.out
    assert "blocked: user broker (producer_ids_rate): excluded" in printed.err
    assert printed.err.count("(plan.max_entity_share)") == 1, "users of one reason are in one line"
    assert all(line.isprintable() for line in (printed.out + printed.err).splitlines())


@pytest.mark.faults
def test_a_plan_is_saved_without_pyspark(plan: Plan, warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, offending_now("mallory"))
    code = (
        "import sys\nfrom quotaflow.pipelines.__main__ import execute\n"
        "sys.modules['pyspark'] = None\n"
        f"words = ['plan', '--save', '--set', 'warehouse.path={warehouse.conf.folder}',\n"
        "    '--set', 'producer_ids.default_quota_per_s=1']\n"
        "sys.exit(execute(words))"
    )
    plan("--save", code=3)
    process = python(code)
    assert process.returncode == 3, process.stderr
    (saved,) = open_reader(config.Conf(warehouse=warehouse.conf)).rows("SELECT * FROM plans")
    assert f"quotaflow apply {saved['plan_id']} --yes" in process.stderr
    assert (saved["entity_name"], saved["config_value"]) == ("mallory", "1.5")


@pytest.mark.faults
def test_nobody_reading_on_changes_no_exit_code(
    table_command: Command, warehouse: Warehouse
) -> None:
    users = [f"{number}-{'x' * 200}" for number in range(100)]
    make_tables_and_answers(warehouse, offending_now(*users))
    ways = in_options("plan.max_entities=100", "producer_ids.default_quota_per_s=1")
    process = read_in_part("plan", "--json", *table_command.options, *ways)
    assert process.returncode == 3
    assert "1 change waits" in process.stderr
    assert sum(f"user {user}" in process.stderr for user in users) == 99, "each is named, uncut"


def test_json_is_one_object_a_change_and_the_same_again(plan: Plan, warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, offending_now(*SOME))
    first, second = (plan("--json", "--set", "kafka.cluster_id=c1", code=3) for _ in range(2))
    assert first.out == second.out
    rows = first.rows
    assert [row["entity_name"] for row in rows if row["blocked_reason"] is None] == [SOME[0]]
    assert {row["entity_name"] for row in rows if row["blocked_reason"]} >= {*SOME[1:]}


def test_a_plan_of_blocked_changes_alone_prints_them_with_their_reasons(
    plan: Plan, warehouse: Warehouse
) -> None:
    make_tables_and_answers(warehouse, offending_now("broker"))
    rows = plan("--csv").csv_rows
    reasons = {(row["entity_name"], row["config_key"]): row["blocked_reason"] for row in rows}
    assert "excluded" in reasons["broker", "producer_ids_rate"]
    assert len(rows) == len(reasons)


def test_what_somebody_else_set_last_is_not_planned(plan: Plan, warehouse: Warehouse) -> None:
    """What snapshots and this command set by their logins is ours."""
    writers = {"mallory": "User:eve", "bob": "User:us", "carol": "User:operator"}
    content = offending_now(*writers)
    content["settings"].append(setting("own_principal", "User:us"))
    content["config_alterations"] = [
        limited(0, "producer_ids_rate", None, entity_name=user, principal=writer)
        for user, writer in writers.items()
    ]
    make_tables_and_answers(warehouse, content)
    errors = plan("--set", "kafka.principal=User:operator", code=3).err
    (line,) = [line for line in errors.splitlines() if "so it is theirs" in line]
    assert line.startswith("blocked: user mallory (producer_ids_rate): ")
    assert "User:eve (adminclient-1) at 2026-11-21 12:00:00 UTC removed it" in line


CAPACITY = setting("replication.capacity_bytes_per_s", 1e8)
RATE = "leader.replication.throttled.rate"


def test_a_rate_of_replication_is_planned_where_conf_says_so(
    plan: Plan, warehouse: Warehouse
) -> None:
    managed = setting("replication.manage", "true")
    throttles = [throttled(3_600), throttled(3_600, broker_id=2, rate_set_by="User:" + HOSTILE)]
    content = {"replication_throttles": throttles, "settings": [CAPACITY, managed]}
    make_tables_and_answers(warehouse, seen_now(content))
    printed = plan(code=3).out
    assert f"broker 1 in cluster c1: {RATE} = 4000000" in printed
    assert f"--entity-type brokers --entity-name 1 --add-config {RATE}=4000000" in printed
    assert "the rate is 2.0 MB/s now, set by User:admin" in printed
    assert f"  expires   {RATE} after 60 min unless renewed, then back to 2000000" in printed
    assert all(line.isprintable() for line in printed.splitlines())
    first = plan("--json", code=3).rows[0]
    assert (first["lease_s"], first["prior_value"]) == (3_600, "2000000")
    assert first["blocked_reason"] is None


def test_what_is_not_planned_of_replication_is_told(plan: Plan, warehouse: Warehouse) -> None:
    idle = {"topic": "u", "is_moving": False, "in_isr": True, "offset_lag": 0}
    left = throttled(3_600, broker_id=2, list_set_by="User:" + HOSTILE, **idle)
    content = {"replication_throttles": [throttled(3_600), left], "settings": [CAPACITY]}
    make_tables_and_answers(warehouse, seen_now(content))
    errors = plan().err
    rate = "leader.replication.throttled.rate"
    assert f"broker 1 ({rate}): replication.manage of conf is false: to allow" in errors
    assert "; the advised rate is 4.0 MB/s; the capacity is" in errors
    left_over = "topic u (leader.replication.throttled.replicas): the throttle is left over"
    assert f"{left_over}, but replication.cleanup_principals" in errors
    assert "the login that set it: an unknown login (before the request log began)" in errors
    assert all(line.isprintable() for line in errors.splitlines())


@pytest.mark.faults
@cases(
    ("age_s", "why"),
    (
        "log",
        (1_000, 0, 0, 0),
        r"the age of the request log is 17 min \(plan.max_input_age_s: 15 min\)",
    ),
    ("results", (0, 1_000, 0, 0), r"the age of the producer_id_rates is 17 min"),
    ("snapshot", (0, 0, 1_000, 1_000), r"the age of the last snapshot is 17 min"),
    ("configs", (0, 0, 1_000, 0), r"the age of the last snapshot is 17 min"),
    ("quotas", (0, 0, 0, 1_000), r"the age of the last snapshot is 17 min"),
    ("quotas never read", (0, 0, 0, None), "the age of the last snapshot is not known"),
    ("log never read", (None, 0, 0, 0), "the age of the request log is not known"),
)
def test_a_plan_on_old_tables_is_frozen(
    plan: Plan, warehouse: Warehouse, age_s: tuple[int | None, ...], why: str
) -> None:
    now = datetime.now(UTC)
    make_tables_and_answers(warehouse, offending_now("mallory"))
    progress = zip(fresh(now), age_s, strict=True)
    aged = [
        row | {"event_time": row["event_time"] - timedelta(seconds=age)}
        for row, age in progress
        if age is not None
    ]
    newer = {"cluster_id": "c2", "event_time": now, "outcome": "in", "row_count": 1}
    aged += [newer | {"job": row["job"], "target": row["target"]} for row in fresh(now)]
    # Telemetry and another cluster's jobs go on: neither shows that this cluster's requests do.
    aged.append(newer | {"cluster_id": "c1", "job": "client_metrics"})
    # Nor do a snapshot of another table, and one without an answer on quotas.
    taken = newer | {"cluster_id": "c1", "job": "snapshot"}
    aged.append(taken | {"target": "topics"})
    aged.append(taken | {"target": "client_quotas", "outcome": "left_out"})
    make_table(warehouse, PIPELINE_PROGRESS, aged)
    assert re.search(why, plan("--set", "kafka.cluster_id=c1").err)


@pytest.mark.faults
def test_who_stopped_is_not_asked_to_be_held_for_ever(plan: Plan, warehouse: Warehouse) -> None:
    ago = recent_time() - timedelta(seconds=3_601)
    make_tables_and_answers(warehouse, seen_now(offenders(["User:mallory"], ago)))
    assert plan().out == "no changes wait\n"


def test_no_changes_are_exit_code_zero(plan: Plan, warehouse: Warehouse) -> None:
    rates = [violation("User:a", NOON, is_violating=False)]
    make_tables_and_answers(warehouse, seen_now({"producer_id_rates": rates}))
    assert plan().out == "no changes wait\n"


def test_a_plan_needs_its_table(plan: Plan) -> None:
    assert "was never made" in plan(code=1).err


def test_the_login_of_conf_is_never_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    login = {"sasl.username": "quotaflow", "sasl.password": "env:QF_UNSET"}
    conf = config.Conf(kafka=config.KafkaSection(properties=login))
    assert "User:quotaflow" in context.of_plans(conf).policy.excluded_principals
    monkeypatch.setenv("QF_UNSET", "x")
    assert "User:quotaflow" in context.of_plans(conf).policy.excluded_principals


def test_advice_on_racks_and_fetches_changes_nothing_by_itself() -> None:
    answers = {answer.name: answer for answer in ANSWERS}
    reads = set(tables_in(views.load()["desired_configs"].sql))
    for name in reversed(answers):
        if name in reads:
            reads |= {*answers[name].inputs, *answers[name].views}
    assert not {"replica_advice", "client_racks", "fetch_advice"} & reads
    assert "replication_proposals" in reads
