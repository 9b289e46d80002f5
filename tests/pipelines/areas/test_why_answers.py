"""`quotaflow why` over tables that fill every view: each area answers about each name."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.finding import FACT, NOTHING, PROBLEM, UNKNOWN
from quotaflow.pipelines.areas.why import AREAS, MAX_FINDINGS, why
from quotaflow.pipelines.commands import why as command
from quotaflow.pipelines.terminal.values import json_line
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...rows import (
    HOSTILE,
    Row,
    alert,
    altered,
    at,
    broker_config,
    gauge,
    limited,
    push,
    read_remotely,
    request,
    times,
    used,
)
from ...rows import row as table_row
from ...schemas.views.filled_views import FILLED
from ...schemas.views.limit_rows import offenders
from ...schemas.views.test_remote_reads import AGED
from ...schemas.views.test_remote_reads import LATE_READ as REMOTE_READ
from ...schemas.views.test_why_groups_lag import THROTTLES, USAGE
from ...schemas.views.test_why_groups_lag import scene as lagging
from ...schemas.views.view_tables import make_tables, make_tables_and_answers, served

HOUR = Period(None, timedelta(hours=1))


def rows_of(reader: FolderReader, name: str, period: Period = HOUR) -> list[Row]:
    """The rows of --json."""
    answered = why(reader, name, period, "c1", config.Conf())
    return [json.loads(json_line(row)) for row in command.rows(answered)]


def at_folder(folder: Path) -> Warehouse:
    return Warehouse(config.WarehouseSection(path=str(folder)))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> FolderReader:
    warehouse = at_folder(tmp_path_factory.mktemp("why"))
    make_tables_and_answers(warehouse, FILLED)
    return FolderReader(warehouse)


@pytest.fixture(scope="module")
def of_alice(filled: FolderReader) -> list[Row]:
    return rows_of(filled, "alice")


@pytest.mark.parametrize(
    "name",
    [
        "alice",
        HOSTILE,
        *(pytest.param(each, marks=pytest.mark.faults) for each in ("orders", "10.0.0.7", "i1")),
    ],
)
def test_every_area_answers_about_every_name_in_rows_of_one_shape(
    filled: FolderReader, name: str
) -> None:
    rows = rows_of(filled, name)
    assert {tuple(row) for row in rows} == {command.COLUMNS}
    assert {row["area"] for row in rows} == {area.NAME for area in AREAS}
    assert {row["state"] for row in rows} <= {PROBLEM, FACT, NOTHING, UNKNOWN}
    assert [row["finding"] for row in rows if row["state"] == UNKNOWN] == []
    for row in rows:
        assert row["finding"]
        assert {*row["evidence_table"].split(", ")} <= TABLES.keys() | views.load().keys()
        assert isinstance(row["evidence"], dict)


def test_each_problem_has_its_evidence_and_the_next_step(of_alice: list[Row]) -> None:
    problems = [row for row in of_alice if row["state"] == PROBLEM]
    assert {row["area"] for row in problems} == {
        "diagnoses",
        "racks",
        "groups",
        "read_problems",
        "remote_reads",
        "telemetry",
        "replication",
    }
    assert [row for row in problems if not (row["evidence"] and row["next_step"])] == []
    assert [row for row in problems if "None" in row["finding"] + row["next_step"]] == []


def test_problems_come_before_facts(of_alice: list[Row]) -> None:
    rows = of_alice
    by_area = [[r["state"] for r in rows if r["area"] == area.NAME] for area in AREAS]
    for states in by_area:
        assert states == sorted(states, key=lambda state: state != PROBLEM)
    is_problem = [any(r["state"] == PROBLEM for r in rows if r["area"] == a) for a in areas(rows)]
    assert is_problem == sorted(is_problem, reverse=True)


def areas(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["area"] for row in rows))


def test_no_area_is_left_without_an_answer_when_nothing_is_there(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    make_tables(warehouse, {"quota_usage": [used(0, "producer_byte_rate", 9.0)]})
    rows = [row for row in rows_of(FolderReader(warehouse), "alice") if row["area"] != "quotas"]
    assert {(row["state"], row["finding"]) for row in rows} == {
        (NOTHING, "No row is about this name.")
    }


def test_tables_that_were_never_made_are_not_nothing(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    make_tables(warehouse, {"quota_usage": [used(0, "producer_byte_rate", 9.0)]})
    for name in ("producer_id_bursts", "fetch_sizes", "config_alterations", "traffic"):
        warehouse.folder(name).rename(tmp_path / f"away-{name}")
    unknown = {
        (row["area"], row["evidence_table"], bool(row["next_step"]))
        for row in rows_of(FolderReader(warehouse), "alice")
        if row["state"] == UNKNOWN
    }
    assert unknown >= {
        ("producer_ids", "producer_id_bursts", True),
        ("fetch_limits", "fetch_sizes", True),
        ("changes", "config_alterations", True),
    }


def test_what_is_computed_for_the_last_day_says_nothing_about_an_earlier_one(
    tmp_path: Path,
) -> None:
    warehouse = at_folder(tmp_path)
    early = [used(n, "producer_byte_rate", 9.0) for n in (-3 * 86_400, 0)]
    make_tables(warehouse, {"quota_usage": early})
    period = Period(at(-2 * 86_400), timedelta(hours=1))
    rows = rows_of(FolderReader(warehouse), "User:alice", period)
    unknown = {row["evidence_table"] for row in rows if row["state"] == UNKNOWN}
    assert unknown == {
        "client_racks, replica_advice, producer_rack_advice",
        "remote_read_advice",
        "fetch_advice",
        "clients_without_telemetry",
        "throttle_checks",
        "why_groups_lag",
    }


@pytest.mark.faults
def test_reads_of_remote_storage_have_their_cost_and_what_spares_them(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    window = used(7_140, "consumer_byte_rate", 9.0, client_id="orders")
    reads = {"remote_reads": [REMOTE_READ | {"empty_time_ms": 1_500.0}], "quota_usage": [window]}
    make_tables_and_answers(warehouse, AGED | reads)
    # Steps are problems, and come before what is known.
    *steps, fact = (
        row for row in rows_of(FolderReader(warehouse), "orders") if row["area"] == "remote_reads"
    )
    assert (fact["state"], fact["finding"]) == (
        FACT,
        "User:alice as orders read 3.6 kB of orders from remote storage in 2 answers, which took "
        "brokers 20 ms. It waited 1.5 s for empty answers.",
    )
    # The topic has the name of the client, so both have their step.
    assert [(row["state"], row["evidence"]["advice"]) for row in steps] == [
        (PROBLEM, "raise_local_retention"),
        (PROBLEM, "read_sooner"),
    ]
    assert steps[1]["next_step"].startswith("let User:alice as orders read orders sooner")


def test_the_hour_in_which_the_last_day_begins_counts(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    half_past = 86_400 + 1_800
    window = used(half_past, "consumer_byte_rate", 9.0, client_id="orders")
    early = read_remotely(half_past - 86_400 + 600, 3_600)
    make_tables_and_answers(warehouse, {"remote_reads": [early], "quota_usage": [window]})
    rows = rows_of(FolderReader(warehouse), "orders")
    (fact,) = (row for row in rows if row["area"] == "remote_reads" and row["state"] == FACT)
    assert "read 3.6 kB of orders from remote storage" in fact["finding"]


BIG: dict[str, Any] = {"principal": "User:dave", "client_id": "exports"}
DAVE = used(0, "producer_byte_rate", 9.0, **BIG)
LATE = {"client_software_version": "3.5.0"}


THROTTLED = used(1_100, "consumer_byte_rate", 5e5, quota=5e5, quota_level=3) | USAGE


@pytest.mark.parametrize("name", ["g", pytest.param("User:alice", marks=pytest.mark.faults)])
def test_a_group_that_lags_has_its_cause_and_the_next_step(tmp_path: Path, name: str) -> None:
    warehouse = at_folder(tmp_path)
    tables = lagging(requests=THROTTLES, quota_usage=[THROTTLED])
    make_tables_and_answers(warehouse, tables)
    (row,) = (row for row in rows_of(FolderReader(warehouse), name) if row["area"] == "groups")
    assert (row["state"], row["topic"]) == (PROBLEM, "t")
    assert row["finding"] == (
        "Group g is 1,100 records behind in t, the oldest 11 min old; the lag grows. Cause 1: a "
        "quota stops its fetches (consumer_byte_rate) (sure); evidence: throttle time "
        "51 %, quota 500,000."
    )
    assert row["next_step"].startswith("raise consumer_byte_rate of the group's clients")


@cases(
    ("hours", "shown"),
    ("less than a day is left", 8, "11 min old (retention may delete it in 7.8 h); the lag"),
    ("more than a day is left", 168, "11 min old; the lag"),
    more=[("it is reached", 0, "11 min old (retention may delete it now); the lag")],
)
def test_why_says_how_soon_retention_deletes_what_a_group_did_not_read(
    tmp_path: Path, hours: int, shown: str
) -> None:
    warehouse = at_folder(tmp_path)
    kept = broker_config("log.retention.hours", str(hours))
    topic = table_row("topics", 0, {}, topic="t")
    make_tables_and_answers(
        warehouse, lagging(quota_usage=[THROTTLED], configs=[kept], topics=[topic])
    )
    (lags,) = (row for row in rows_of(FolderReader(warehouse), "g") if row["area"] == "groups")
    assert shown in lags["finding"]


@pytest.mark.faults
def test_a_deploy_is_no_problem_and_an_accused_burst_is_one(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    deploy = {
        "cluster_id": "c1",
        "principal": "User:grace",
        "started_at": at(1),
        "ended_at": at(3),
        "cause": "deploy_burst",
        "is_accused": False,
        "ids": 24,
    }
    content = {"quota_usage": [DAVE, DAVE | {"principal": "User:grace"}]}
    make_tables_and_answers(warehouse, content | offenders(["User:dave"], at(20)))
    (accused,) = [
        row for row in rows_of(FolderReader(warehouse), "dave") if row["state"] == PROBLEM
    ][-1:]
    assert "new producers, each for at most three PRODUCE requests. " in accused["finding"]
    assert accused["next_step"].startswith(
        "keep one producer, and close it when the program ends; "
    )
    make_tables(warehouse, content | {"producer_id_bursts": [deploy]})
    rows = [
        row for row in rows_of(FolderReader(warehouse), "grace") if row["area"] == "producer_ids"
    ]
    assert [(row["state"], row["next_step"]) for row in rows] == [(FACT, None)]
    assert "each takes one or two ids, which is normal. " in rows[0]["finding"]


@cases(
    ("offender", "expected"),
    ("no offender", None, ""),
    ("no plan may limit it", "protected_address", "; no plan limits the ids now: the address is"),
    ("a plan may", "", "; `quotaflow show producer_id_offenders` shows which limit a plan would"),
)
def test_a_limit_is_named_where_the_offender_has_a_row(
    tmp_path: Path, offender: str | None, expected: str
) -> None:
    warehouse = at_folder(tmp_path)
    burst = {"principal": "User:dave", "cause": "restart_loop", "is_accused": True, "ids": 24}
    row = {"principal": "User:eve" if offender is None else "User:dave"}
    tables = {
        "quota_usage": [DAVE],
        "producer_id_bursts": [
            table_row("producer_id_bursts", at(3), {"started_at": at(1), **burst})
        ],
        "producer_id_offenders": [
            table_row("producer_id_offenders", at(20), row | {"blocked_reason": offender or None})
        ],
    }
    make_tables(warehouse, tables)
    (step,) = [
        row["next_step"]
        for row in rows_of(FolderReader(warehouse), "dave")
        if row["area"] == "producer_ids"
    ]
    cure = "find out why the clients end, and let their supervisor wait longer before each restart"
    assert step.startswith(f"{cure}{expected}")
    assert (step == cure) == (offender is None)


@cases(
    ("name", "cause", "expected"),
    ("a cause that threads can bring", "dave", "noisy_neighbour", ["num.io.threads of , 1"]),
    ("a cause that they cannot", "dave", "slow_replicas", []),
    ("it is well", "dave", None, []),
    ("the broker itself", "broker-1", None, ["num.io.threads of , 1", "THROTTLE of 1"]),
)
def test_changes_of_brokers_are_those_that_can_be_why_it_suffers(
    name: str, cause: str | None, expected: list[str], tmp_path: Path
) -> None:
    throttle = "follower.replication.throttled.rate"
    altered_configs = [
        altered(1, key, "9", entity_type="broker", entity_name=broker)
        for key, brokers in (("num.io.threads", ("", "1", "2")), (throttle, ("1",)))
        for broker in brokers
    ]
    content = {"quota_usage": [DAVE], "config_alterations": altered_configs}
    if cause:
        given = {name: DAVE[name] for name in ("principal", "client_id")} | {"cause": cause}
        given |= {"api": "PRODUCE", "symptom": "slow", "rank": 1, "requests": 9, "waited_ms": 9.0}
        given |= {"since": at(0), "until": at(60), "known_until": at(60), "share": 1.0}
        content["client_diagnoses"] = [table_row("client_diagnoses", at(0), given)]
    warehouse = at_folder(tmp_path)
    make_tables(warehouse, content)
    rows = [row for row in rows_of(FolderReader(warehouse), name) if row["area"] == "changes"]
    listed = [
        f"{row['evidence']['config_key']} of {row['evidence']['entity_name']}"
        for row in rows
        if row["state"] == FACT
    ]
    assert sorted(listed) == sorted(each.replace("THROTTLE", throttle) for each in expected)


def test_what_quotaflow_wrote_after_the_end_of_the_log_is_a_change_and_what_the_log_has_is_one(
    tmp_path: Path,
) -> None:
    warehouse = at_folder(tmp_path)
    kept = {"entity_type": "user", "entity_name": "dave", "config_key": "producer_byte_rate"}
    ended = {"step": "done", "purpose": "apply", "operation": "SET", "config_value": "5"}
    taken_back = ended | {"operation": "DELETE", "config_value": None, "purpose": "restore"}
    written = [
        table_row("config_changes", second, kept | given)
        for second, given in ((2, ended), (40, taken_back), (41, ended | {"step": "refused"}))
    ]
    logged = [limited(1, "producer_byte_rate", "5", entity_name="dave")]
    content = {"quota_usage": [DAVE], "config_alterations": logged, "config_changes": written}
    make_tables(warehouse, content)
    rows = rows_of(FolderReader(warehouse), "dave")
    texts = [each["finding"] for each in rows if each["area"] == "changes"]
    assert [text.partition(" UTC: ")[2] for text in texts] == [
        "quotaflow deleted producer_byte_rate of user dave.",
        "User:admin set producer_byte_rate of user dave to 5 bytes/s.",
    ]


def test_a_value_that_the_log_hides_is_left_out(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    hidden = altered(1, "ssl.keystore.password", None, entity_type="broker", entity_name="1")
    hidden["operation"] = "SET"
    make_tables(warehouse, {"quota_usage": [DAVE], "config_alterations": [hidden]})
    rows = rows_of(FolderReader(warehouse), "broker-1")
    (row,) = (row for row in rows if row["area"] == "changes")
    assert row["finding"].endswith(" set ssl.keystore.password of broker 1.")


def of_telemetry(warehouse: Warehouse) -> dict[str, Row]:
    rows = rows_of(FolderReader(warehouse), "dave")
    return {row["evidence_table"]: row for row in rows if row["area"] == "telemetry"}


@pytest.mark.faults
def test_telemetry_says_what_was_open_then_and_who_is_silent(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    client = {**BIG, "client_instance_id": "i7"}
    alerts = [alert(1, "opened", **client), alert(9, "cleared", **client)]
    old = request(5, "PRODUCE", **BIG | LATE)
    make_tables_and_answers(
        warehouse,
        {"quota_usage": [DAVE], "metric_alert_events": alerts} | served([old]),
    )
    rows = of_telemetry(warehouse)
    assert rows["metric_alerts"]["state"] == PROBLEM
    silent = rows["clients_without_telemetry"]
    assert silent["next_step"] == "update apache-kafka-java 3.5.0: it cannot push metrics"


@pytest.mark.faults
def test_a_client_whose_push_was_invalid_stays_silent(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    refused = push(3, **BIG, client_instance_id="i7", error_code=87, accepted=False)
    content = {"quota_usage": [DAVE], "telemetry_pushes": [refused]}
    make_tables_and_answers(warehouse, content)
    rows = of_telemetry(warehouse)
    assert "stopped pushing metrics" in rows["client_coverage"]["finding"]
    assert "INVALID_RECORD" in rows["telemetry_rejections"]["finding"]


def test_a_client_with_many_client_ids_shows_some_of_them(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    make_tables(warehouse, {"quota_usage": [DAVE | {"client_id": f"c{n}"} for n in range(300)]})
    rows = [row for row in rows_of(FolderReader(warehouse), "dave") if row["area"] == "quotas"]
    assert len(rows) == MAX_FINDINGS + 1
    assert rows[-1]["finding"] == "There are more: see quota_usage, client_quotas."


OUTSIDE = "in the network, in the client, in a login or behind earlier requests of the connection"


@pytest.mark.parametrize(
    ("served_by", "parts"),
    [
        (
            {"total_time_ms": 65.0},
            "The longest of its requests in the log took 65 ms in the broker. So at least 800 ms "
            f"were outside the broker: {OUTSIDE}",
        ),
        (
            {"total_time_ms": 900.0},
            "The longest of its requests in the log took 900 ms in the broker",
        ),
        (
            {"total_time_ms": 65.0, "throttle_time_ms": 9.0},
            "The longest of its requests in the log took 65 ms in the broker. A quota throttled 1 "
            "of these",
        ),
        (
            {"total_time_ms": 65.0, "weight": 10},
            "The longest of its requests in the log took 65 ms in the broker. The log may lack "
            "longer ones",
        ),
        ({"broker_id": 2}, "The part of the broker is not known"),
    ],
)
def test_latency_is_split_where_it_can_be(tmp_path: Path, served_by: Row, parts: str) -> None:
    warehouse = at_folder(tmp_path)
    node = {"node_id": 1, "node_kind": "broker", "client_software_name": "librdkafka"}
    metric = "producer.node.request.latency"
    produced = request(5, "PRODUCE", **(BIG | served_by), error_code=0)
    content = {
        "quota_usage": [DAVE],
        **served([produced, request(5, "METADATA", client_id="another")]),
        "client_metrics": [
            gauge(10, f"{metric}.avg", 8.0, **BIG, **node),
            gauge(10, f"{metric}.max", 865.0, **BIG, **node),
        ],
    }
    make_tables(warehouse, content)
    (row,) = [
        row for row in rows_of(FolderReader(warehouse), "exports") if row["area"] == "latency"
    ]
    assert row["finding"] == (
        "User:dave as exports: the slowest request of the producer took 865 ms at broker 1, by "
        f"metrics that the client pushed in the minute from 12:00 UTC. {parts}."
    )


def test_a_library_that_was_updated_is_past(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    lines = [request(5, "PRODUCE", **BIG | LATE), request(7_200, "PRODUCE", **BIG)]
    window = used(7_200, "producer_byte_rate", 9.0, **BIG)
    make_tables(warehouse, {"quota_usage": [window], "requests": lines})
    rows = rows_of(FolderReader(warehouse), "dave", Period(None, timedelta(hours=3)))
    client = "User:dave as exports"
    assert [row["finding"] for row in rows if row["area"] == "clients"] == [
        f"{client} ran apache-kafka-java 3.5.0 on 10.0.0.7 until {at(5):%Y-%m-%d %H:%M:%S} UTC, "
        "and sent 1 request.",
        f"{client} runs apache-kafka-java 4.3.1 on 10.0.0.7, and sent 1 request.",
    ]


def test_a_client_shows_its_library_and_the_errors_of_its_requests(tmp_path: Path) -> None:
    warehouse = at_folder(tmp_path)
    lines = [
        request(5, "PRODUCE", **BIG),
        request(6, "PRODUCE", **BIG | LATE),
        request(7, "PRODUCE", **BIG | {"client_software_name": "unknown"}),
    ]
    # PRODUCE has errors in its partitions alone.
    failed = [
        times(5, api, each={}, **BIG) | {"errors": [{"error_code": code, "requests": 4}]}
        for api, code in (("JOIN_GROUP", 79), ("PRODUCE", 45))
    ]
    content = {"quota_usage": [DAVE], "requests": lines, "request_times": failed}
    make_tables(warehouse, content)
    texts = [
        row["finding"]
        for row in rows_of(FolderReader(warehouse), "dave")
        if row["area"] == "clients"
    ]
    assert (
        "User:dave as exports runs apache-kafka-java 4.3.1 on 10.0.0.7, and sent 1 request."
        in texts
    )
    assert (
        "User:dave as exports runs several versions: apache-kafka-java 3.5.0, apache-kafka-java "
        "4.3.1." in texts
    )
    assert texts[0] == "User:dave as exports: 4 PRODUCE requests got OUT_OF_ORDER_SEQUENCE_NUMBER."
    assert not any("MEMBER_ID_REQUIRED" in text for text in texts)
