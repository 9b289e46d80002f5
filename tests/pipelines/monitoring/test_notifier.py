"""notify with a real HTTP server: at least once, no flood, and to no other address."""

import json
import logging
import os
import socket
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf, addresses
from quotaflow.pipelines.errors import ConfigError, NeverMadeError
from quotaflow.pipelines.monitoring import (
    capture_preview,
    notifications,
    notifier,
    sent_log,
)
from quotaflow.pipelines.monitoring.notifications import Notification
from quotaflow.pipelines.monitoring.notifier import Delivery
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...command_line import Command, in_options
from ...http_endpoint import Endpoint, listening
from ...rows import CLIENT, HOSTILE, Row, at, row
from ...schemas.views.view_tables import make_table, make_tables

NOW = at(3_600)
PATH = "/services/T000/TOPSECRET"


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with listening(PATH, json.loads) as endpoint:
        endpoint.headers = {"Location": f"http://localhost:{endpoint.server_port}/elsewhere"}
        yield endpoint


def texts(server: Endpoint) -> list[str]:
    return [body["text"] for _, _, body in server.came]


@pytest.fixture
def conf(warehouse: Warehouse, server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Conf:
    monkeypatch.setenv("HOOK", server.url)
    monkeypatch.setattr(addresses, "_BACKOFF_S", 0.0)
    return config.load(overrides=overrides(warehouse))


def overrides(warehouse: Warehouse, **options: Any) -> list[str]:
    section = {"name": "hook", "url": "env:HOOK", "timeout_s": 1.0} | options
    return [f"warehouse.path={warehouse.conf.folder}", f"alerts.receivers={json.dumps([section])}"]


def deliver(conf: Conf, now: datetime) -> Delivery:
    """What became of the events at the only receiver."""
    (delivery,) = notifier.deliver(conf, now)
    return delivery


def alert(second: float, state: str = "opened", **others: Any) -> dict[str, Any]:
    given = {"alert_id": f"a{second}", "rule": "queue-time", "state": state, "unit": "ms"}
    given |= {"metric": "org.apache.kafka.producer.record.queue.time.avg", "bound": 5_000.0}
    given |= {"value": 6_000.0, "peak_value": 7_000.5}
    return row("metric_alert_events", at(second), CLIENT | given | others)


def change(second: float, step: str, **others: Any) -> dict[str, Any]:
    given = {"run_id": "r1", "number": 0, "plan_id": "p1", "purpose": "apply", "step": step}
    given |= {"change_id": f"c{second}", "entity_type": "user", "entity_name": "mallory"}
    given |= {"config_key": "producer_byte_rate", "config_value": "1000", "detail": "42 no"}
    return row("config_changes", at(second), given | others)


def test_a_quota_that_is_given_back_without_gain_is_for_a_person(
    conf: Conf, server: Endpoint
) -> None:
    returned = {"direction": "revert", "purpose": "restore", "config_value": None}
    returned |= {"reason": "the quota does not help"}
    changes = [
        change(3, "done", **returned, observed=7.0),
        change(4, "done", **returned, observed=None),
        change(2, "begun", **returned, observed=7.0),
    ]
    make_tables(Warehouse(conf.warehouse), {"config_changes": changes})
    assert deliver(conf, NOW).sent == 1
    assert texts(server) == [
        "quota restored: user mallory: producer_byte_rate = removed: the quota does not help"
    ]
    assert server.came[0][2]["kind"] == "quota_without_gain"


def suffering(client_id: str, until_s: float, symptom: str = "slow", **others: Any) -> Any:
    """A client that waits for its quota from the first second on, where tables end at an hour."""
    given = {"principal": "User:bad", "client_id": client_id, "api": "PRODUCE", "rank": 1}
    given |= {"since": at(0), "until": at(until_s), "known_until": NOW, "symptom": symptom}
    given |= {"cause": "quota", "detail": "producer_byte_rate", "facts": []}
    return row("client_diagnoses", 0, given | others)


def replace_diagnoses(warehouse: Warehouse, rows: list[Any]) -> None:
    make_table(warehouse, TABLES["client_diagnoses"], rows)


def test_an_incident_is_sent_when_it_opens_and_ten_minutes_after_it_ended(
    conf: Conf, server: Endpoint
) -> None:
    warehouse = Warehouse(conf.warehouse)
    make_tables(warehouse, {})
    days_ago = NOW - timedelta(hours=24)
    replace_diagnoses(warehouse, [suffering("a", 3_600), suffering("b", 3_600)])
    assert deliver(conf, NOW).sent == 1
    replace_diagnoses(warehouse, [suffering("a", 3_100), suffering("b", 3_060)])
    assert deliver(conf, at(3_690)).sent == 0
    assert deliver(conf, at(3_710)).sent == 1
    # Its start moves on with the day that is diagnosed.
    replace_diagnoses(warehouse, [suffering("c", 3_600, since=days_ago)])
    assert deliver(conf, NOW).sent == 0
    waits = "2 clients wait for a quota (producer_byte_rate of the default): a and b"
    assert [text.partition(" (")[0] for text in texts(server)] == [waits.partition(" (")[0]] * 2
    assert [body["kind"] for _, _, body in server.came] == ["incident_open", "incident_ended"]
    assert texts(server)[1] == f"{waits} (ended: 2026-11-21 12:00 to 12:51 UTC)"


LAGS: Row = {"cluster_id": "c1", "known_at": at(60), "rank": 1, "cause": "no_members"}
LAGS |= {"evidence": [], "lag": 5_000, "lag_s": 300.0, "trend": "growing", "confidence": 0.9}


def test_a_lag_is_sent_again_when_another_group_has_it_too(conf: Conf, server: Endpoint) -> None:
    warehouse = Warehouse(conf.warehouse)
    make_tables(warehouse, {})
    # Its oldest record is another one as the group reads.
    for groups, lag_s, sent in (("a", 300, 1), ("a", 240, 0), ("ab", 240, 1), ("ab", 300, 0)):
        given = LAGS | {"lag_s": float(lag_s), "since": at(60 - lag_s)}
        rows = [given | {"group_id": group, "topic": group} for group in groups]
        make_table(warehouse, TABLES["why_groups_lag"], rows)
        assert deliver(conf, NOW).sent == sent
    assert len(server.came) == 2


def moving(state: str) -> list[Row]:
    given = {"topic": "orders", "partition": 0, "replica_id": 3, "state": state}
    return [row("reassignments", 0, given | {"requested_time": at(0), "last_fetch_time": at(60)})]


@pytest.mark.parametrize("what", ["lag", "move"])
def test_the_end_of_a_lag_and_of_a_stuck_move_is_sent(
    conf: Conf, server: Endpoint, what: str
) -> None:
    table = {"lag": "why_groups_lag", "move": "reassignments"}[what]
    lag = [LAGS | {"group_id": "a", "topic": "a"}]
    going_on, done = {"lag": (lag, []), "move": (moving("stuck"), moving("done"))}[what]
    warehouse = Warehouse(conf.warehouse)
    make_tables(warehouse, {})

    def sent(rows: list[Row], minutes: int) -> int:
        make_table(warehouse, TABLES[table], rows)
        return deliver(conf, NOW + timedelta(minutes=minutes)).sent

    assert [sent(going_on, 0), sent(going_on, 1), sent(done, 2), sent(done, 11)] == [1, 0, 0, 0]
    # It was missed for less than ten minutes, so it is the same incident.
    assert [sent(going_on, 12), sent(done, 13), sent(done, 23), sent(done, 24)] == [0, 0, 1, 0]
    # It begins once more.
    assert [sent(going_on, 25), sent(going_on, 26)] == [1, 0]
    kinds = [body["kind"] for _, _, body in server.came]
    assert kinds == ["incident_open", "incident_ended", "incident_open"]
    assert len({body["subject_id"] for _, _, body in server.came}) == 1
    assert "ended" in texts(server)[1]
    assert texts(server)[1].partition(" (")[0] == texts(server)[0].partition(" (")[0]


def test_an_incident_between_two_runs_is_sent_once_it_ended(conf: Conf, server: Endpoint) -> None:
    warehouse = Warehouse(conf.warehouse)
    make_tables(warehouse, {})
    assert deliver(conf, at(0)).sent == 0
    replace_diagnoses(warehouse, [suffering("a", 600)])
    assert deliver(conf, NOW).sent == 1
    assert [body["kind"] for _, _, body in server.came] == ["incident_ended"]


@pytest.mark.parametrize("shown", ["those of clients", "too many"])
def test_an_incident_that_a_limit_cuts_has_not_ended(
    conf: Conf, server: Endpoint, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    warehouse = Warehouse(conf.warehouse)
    make_tables(warehouse, {})
    make_table(warehouse, TABLES["why_groups_lag"], [LAGS | {"group_id": "a", "topic": "a"}])
    make_table(warehouse, TABLES["reassignments"], moving("stuck" if shown == "too many" else ""))
    deliver(conf, NOW)
    monkeypatch.setattr(notifications, "_MAX_ROWS", 1 if shown == "too many" else 2)
    if shown == "those of clients":
        clients = [suffering(f"{n}", 3_600, symptom="slow") for n in range(2)]
        clients += [suffering(f"{n}", 3_600, symptom="failing") for n in range(2)]
        replace_diagnoses(warehouse, clients)
    for minutes in (13, 24):
        deliver(conf, NOW + timedelta(minutes=minutes))
    assert {body["kind"] for _, _, body in server.came} == {"incident_open"}


@pytest.mark.usefixtures("conf")
@cases(
    ("silences", "kinds"),
    ("silenced", [{"since": "2026-11-21", "until": "2026-11-21T13:00:01Z"}], []),
    ("only counted", [], ["alert_opened", "summary"]),
)
def test_the_end_of_an_incident_goes_to_nobody_who_was_not_sent_its_beginning(
    server: Endpoint, warehouse: Warehouse, silences: Any, kinds: list[str]
) -> None:
    pairs = [*overrides(warehouse, max_events=1), f"alerts.silences={json.dumps(silences)}"]
    conf = config.load(overrides=pairs)
    make_tables(warehouse, {"metric_alert_events": [alert(1)]})
    lag = [LAGS | {"group_id": "a", "topic": "a"}]
    for minutes, rows in ((0, lag), (2, []), (13, [])):
        make_table(warehouse, TABLES["why_groups_lag"], rows)
        deliver(conf, NOW + timedelta(minutes=minutes))
    assert [body["kind"] for _, _, body in server.came] == kinds


def planned(second: float, plan_id: str) -> dict[str, Any]:
    return row("plans", second, {"plan_id": plan_id, "number": 0, "planned_by": "ops@host"})


def elsewhere(conf: Conf, path: str) -> Conf:
    """The conf with another warehouse."""
    return conf.model_copy(update={"warehouse": config.WarehouseSection(path=path)})


@cases(
    ("reason", "start"),
    ("not known", None, "alert queue-time closed: "),
    ("of a newer version", "paused", "alert queue-time closed (paused): "),
)
def test_an_alert_closes_for_what_is_known(
    conf: Conf, server: Endpoint, reason: str | None, start: str
) -> None:
    closed = alert(9, "closed", alert_id="a1", reason=reason)
    make_tables(Warehouse(conf.warehouse), {"metric_alert_events": [closed]})
    deliver(conf, NOW)
    assert [text.startswith(start) for text in texts(server)] == [True]


def test_each_thing_is_told_once_in_the_order_it_happened(conf: Conf, server: Endpoint) -> None:
    closed = alert(9, "closed", alert_id="a1", reason="cleared")
    ongoing, ahead = alert(5, "still_open"), alert(9_999, "closed", alert_id="a1")
    make_tables(
        Warehouse(conf.warehouse),
        {
            "metric_alert_events": [alert(1), ongoing, closed, ahead, alert(-90_000)],
            "config_changes": [change(3, "refused"), change(4, "done"), change(2, "begun")],
            "plans": [planned(1.5, "p1"), planned(7, "p2"), planned(7, "p2")],
        },
    )
    delivery = deliver(conf, NOW)
    assert (delivery.sent, delivery.pending, delivery.problem) == (4, 0, None)
    metric_text = "org.apache.kafka.producer.record.queue.time.avg of User:alice as orders"
    assert texts(server) == [
        f"alert queue-time opened: {metric_text} is 6 s (threshold 5 s)",
        "apply: user mallory: producer_byte_rate = 1000 was refused by a broker: 42 no",
        "plan p2 waits with 2 changes, frozen by ops@host; quotaflow apply p2 shows it",
        f"alert queue-time closed (its value is normal again): {metric_text}, worst 7 s",
    ]
    path, headers, body = server.came[0]
    assert (path, headers["Idempotency-Key"]) == (PATH, body["id"])
    assert (body["kind"], body["cluster_id"]) == ("alert_opened", "c1")
    assert body["details"]["client_id"] == "orders"
    assert deliver(conf, NOW).sent == 0
    assert len(server.came) == 4


def test_who_is_accused_is_told_once_with_cause_and_cure(conf: Conf, server: Endpoint) -> None:
    given = {"principal": "User:eve", "cause": "restart_loop", "ids": 40, "is_accused": True}
    given |= {"started_at": at(1), "ended_at": at(5), "source_ids": 39, "hosts": 1}
    given |= {"source": "app-* at 10.0.0.5", "source_address": "10.0.0.5"}
    burst = row("producer_id_bursts", 1, given)
    deploy = burst | {"principal": "User:g", "cause": "deploy_burst", "is_accused": False}
    folder = Warehouse(conf.warehouse)
    for ended_s in (5, 9):
        ongoing = [burst | {"ended_at": at(ended_s)}, deploy]
        make_table(folder, TABLES["producer_id_bursts"], ongoing)
        deliver(conf, NOW)
    assert texts(server) == [
        "User:eve as app-* at 10.0.0.5 took 39 producer ids; the clients restart again "
        "and again, or a loop connects; find out why the clients end, and let their supervisor "
        "wait longer before each restart"
    ]


def test_a_plan_frozen_anew_is_told_again_and_once(conf: Conf, server: Endpoint) -> None:
    tables = {
        "config_changes": [change(3, "done"), change(8, "done", plan_id="p3")],
        "plans": [planned(1, "p1"), planned(1, "p2"), planned(7, "p3")],
    }
    make_tables(Warehouse(conf.warehouse), tables)
    assert deliver(conf, NOW).sent == 1
    again = tables | {"plans": [*tables["plans"], planned(5, "p1"), planned(6, "p1")]}
    other = elsewhere(conf, f"{conf.warehouse.folder}-later")
    make_tables(Warehouse(other.warehouse), again)
    keys = {notice.key: notice.text for notice, _ in notifier.pending(other, NOW)}
    assert sorted(text.partition(" waits")[0] for text in keys.values()) == ["plan p1", "plan p2"]
    assert len(server.came) == 1


def test_a_recompute_that_moves_an_alert_is_no_news(conf: Conf) -> None:
    made = alert(1)
    before, after = made, made | {"event_time": at(2), "value": 1.0}
    keys = set()
    for number, each in enumerate((before, after)):
        other = elsewhere(conf, f"{conf.warehouse.folder}/{number}")
        make_tables(Warehouse(other.warehouse), {"metric_alert_events": [each]})
        keys |= {notice.key for notice, _ in notifier.pending(other, NOW)}
    assert len(keys) == 1


def test_what_is_read_of_tables_is_there(conf: Conf) -> None:
    make_tables(Warehouse(conf.warehouse), {})
    tables = notifications.open_tables(conf, at(0), NOW)
    assert notifications.read_notifications(tables, conf, at(0), NOW) == []


def made(count: int) -> list[Notification]:
    return [
        Notification(f"k{n}", "alert_opened", "c1", at(n), f"alert {n}", {"value": float("nan")})
        for n in range(count)
    ]


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch) -> list[Notification]:
    """Sets the notifications that tables would give."""
    these: list[Notification] = []
    monkeypatch.setattr(notifications, "read_notifications", lambda *_: list(these))
    return these


def test_what_is_over_the_cap_is_summed_up_and_not_told_later(
    conf: Conf, server: Endpoint, happened: list[Notification]
) -> None:
    happened += made(25)
    delivery = deliver(conf, NOW)
    assert (delivery.sent, delivery.summarized, len(server.came)) == (20, 5, 21)
    _, _, last = server.came[-1]
    assert last["text"] == "5 more: 5 alert_opened"
    assert (last["kind"], last["details"]["alert_opened"]) == ("summary", 5)
    assert server.came[0][2]["details"] == {"value": "nan"}
    assert deliver(conf, NOW).sent == 0


@cases("answers", ("it comes back", [500, 503]), ("too many", [429, 200, 502]))
def test_an_answer_that_may_change_is_tried_again(
    conf: Conf, server: Endpoint, happened: list[Notification], answers: list[int]
) -> None:
    happened += made(3)
    server.answers = list(answers)
    assert deliver(conf, NOW).sent == 3
    assert len(server.came) == 5
    keys = [headers["Idempotency-Key"] for _, headers, _ in server.came]
    assert len(set(keys)) == 3


def test_what_was_not_told_waits_and_is_told_once_it_can_be(
    conf: Conf, server: Endpoint, happened: list[Notification]
) -> None:
    happened += made(3)
    server.answers = [200, 500, 500, 500]
    delivery = deliver(conf, NOW)
    assert (delivery.sent, delivery.pending) == (1, 2)
    assert delivery.problem == "hook: it answered 500 each time"
    delivery = deliver(conf, NOW)
    assert (delivery.sent, delivery.pending, delivery.problem) == (2, 0, None)


def test_what_it_refuses_costs_nobody_else_and_is_counted(
    conf: Conf, server: Endpoint, happened: list[Notification]
) -> None:
    happened += made(3)
    server.answers = [200, 400]
    delivery = deliver(conf, NOW)
    refused = ["alert_opened k1: it answered 400"]
    assert (delivery.sent, delivery.refused, delivery.pending) == (2, refused, 0)


def test_it_goes_nowhere_else(conf: Conf, server: Endpoint, happened: list[Notification]) -> None:
    happened += made(1)
    server.answers = [302]
    delivery = deliver(conf, NOW)
    assert "redirects are not followed" in str(delivery.problem)
    assert [path for path, _, _ in server.came] == [PATH]


@pytest.mark.usefixtures("conf")
def test_one_that_hangs_ends_after_its_timeout(
    warehouse: Warehouse, server: Endpoint, happened: list[Notification]
) -> None:
    happened += made(2)
    let_go = threading.Event()
    server.before = lambda: bool(let_go.wait()) and None
    quick = config.load(overrides=overrides(warehouse, timeout_s=0.2, max_attempts=2))
    delivery = deliver(quick, NOW)
    let_go.set()
    assert delivery.problem == "hook: it was not reached: ReadTimeoutError"
    assert (delivery.sent, delivery.pending) == (0, 2)


def test_a_crash_after_it_was_told_tells_it_again_under_the_same_key(
    conf: Conf, server: Endpoint, happened: list[Notification], monkeypatch: pytest.MonkeyPatch
) -> None:
    happened += made(2)

    replace = os.replace

    def crash(*files: Path) -> None:
        if server.came:
            raise KeyboardInterrupt
        replace(*files)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            deliver(conf, NOW)
    assert deliver(conf, NOW).sent == 2
    assert [headers["Idempotency-Key"] for _, headers, _ in server.came] == ["k0", "k0", "k1"]


def test_what_is_too_old_to_be_told_is_forgotten(conf: Conf, happened: list[Notification]) -> None:
    happened += made(2)
    deliver(conf, NOW)
    assert len(sent_log.open_log(conf).times) == 2
    happened.clear()
    deliver(conf, at(0) + timedelta(seconds=86_400))
    assert len(sent_log.open_log(conf).times) == 1


def test_text_of_a_client_steers_nobody(conf: Conf, server: Endpoint) -> None:
    hostile = f"<!channel> & {HOSTILE}\x1b[2J" + "x" * 10_000
    rows = [alert(1, client_id=hostile, principal="User:<http://x|y>", attributes=[])]
    make_tables(Warehouse(conf.warehouse), {"metric_alert_events": rows})
    deliver(conf, NOW)
    ((_, _, body),) = server.came
    assert not set(body["text"]) & set("\x1b\n\u202e")
    assert len(json.dumps(body)) < 2_000


@pytest.mark.usefixtures("conf")
def test_the_address_is_in_no_message(
    command: Command,
    server: Endpoint,
    happened: list[Notification],
    caplog: pytest.LogCaptureFixture,
    warehouse: Warehouse,
) -> None:
    happened += made(1)
    caplog.set_level(logging.DEBUG)
    options = in_options(*overrides(warehouse, max_attempts=2))
    for answers, code in (([500, 500], 1), ([302], 1), ([400], 1), ([200], 0)):
        server.answers = answers
        printed = command("notify", "--csv", *options, code=code)
        assert "TOPSECRET" not in "".join(printed)
    assert "receiver,sent,summarized,refused,pending,problem\nhook,1,0,0,0,\n" in printed.out
    printed = command("notify", "--dry-run", *options)
    assert "TOPSECRET" not in "".join(printed) + caplog.text
    kept = [path.read_text() for path in Path(warehouse.conf.folder).rglob("*.json")]
    assert "TOPSECRET" not in "".join(kept)


def test_a_closed_port_is_told_without_its_name(
    warehouse: Warehouse, happened: list[Notification], monkeypatch: pytest.MonkeyPatch
) -> None:
    happened += made(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HOOK", f"http://127.0.0.1:{free.getsockname()[1]}/x")
        quick = config.load(overrides=overrides(warehouse, max_attempts=1))
        delivery = deliver(quick, NOW)
    assert delivery.problem == "hook: it was not reached: NewConnectionError"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://hooks.example.com/TOPSECRET", "plain http: only https"),
        ("http://127.0.0.1.evil.example/TOPSECRET", "plain http"),
        ("ftp://127.0.0.1/TOPSECRET", "does not refer to an address"),
        ("TOPSECRET", "does not refer to an address"),
        ("https://me:TOPSECRET@host/x", "an address with a login"),
        ("https://[TOPSECRET", "does not refer to an address"),
    ],
)
def test_an_address_that_may_not_be_used_is_refused_unseen(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, url: str, expected: str
) -> None:
    monkeypatch.setenv("HOOK", url)
    problem = str(deliver(config.load(overrides=overrides(warehouse)), NOW).problem)
    assert expected in problem
    assert "TOPSECRET" not in problem


def test_an_address_in_plain_text_is_no_conf(warehouse: Warehouse) -> None:
    with pytest.raises(ConfigError, match=r"alerts\.receivers\.0\.url"):
        config.load(overrides=overrides(warehouse, url="https://hooks.example.com/x"))


def test_without_a_receiver_it_says_what_to_write(command: Command) -> None:
    assert "alerts.receivers is empty" in command("notify", code=2).err


@pytest.mark.parametrize("content", ["[1]", "{", '{"k": 3}', '{"k": "yesterday"}'])
def test_a_torn_log_is_named(conf: Conf, content: str) -> None:
    sent_log.open_log(conf).file.write_text(content)
    with pytest.raises(ConfigError, match="is not what notify wrote: remove it"):
        notifier.pending(conf, datetime.now(UTC))


def test_a_log_that_cannot_be_written_ends_it_before_anything_is_told(
    conf: Conf, server: Endpoint, happened: list[Notification]
) -> None:
    happened += made(2)
    in_the_way = sent_log.open_log(conf).file.with_suffix(".new")
    in_the_way.mkdir()
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"cannot write .*sent.json.* Is a directory"):
            deliver(conf, NOW)
    assert server.came == []
    in_the_way.rmdir()
    assert deliver(conf, NOW).sent == 2


@dataclass
class SparkViews:
    """Temporary views in place of tables."""

    spark: SparkSession
    names: Collection[str]

    def rows(self, sql: str, _: Since | None = None) -> list[dict[str, Any]]:
        try:
            return self.spark.sql(sql).toArrow().to_pylist()
        except AnalysisException as error:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
                raise NeverMadeError("a view", "Spark") from None
            raise

    def is_made(self, table: str) -> bool:
        return table in self.names

    def gather_for(self, queries: Iterable[str]) -> None:
        """Nothing: they are in the session."""


@pytest.mark.spark
def test_spark_reads_the_same(spark: SparkSession) -> None:
    made_up = {
        "metric_alert_events": [alert(1), alert(2, "closed", client_id=HOSTILE)],
        "config_changes": [change(3, "refused")],
        "plans": [planned(1.5, "p1"), planned(7, "p2")],
        "requests": [row("requests", n, {}) for n in (1, 31)],
    }
    for name, rows in made_up.items():
        content = pa.Table.from_pylist(rows, schema=TABLES[name].arrow)
        spark.createDataFrame(content).createOrReplaceTempView(name)
    try:
        tables = SparkViews(spark, made_up)
        notices = notifications.read_notifications(tables, config.Conf(), at(0), NOW)
        kinds = ["alert_opened", "alert_closed", "change_failed", "plan_waiting"]
        assert [notice.kind for notice in notices] == kinds
        volume = capture_preview.expected(tables, config.Conf().warehouse, "c1")
        assert volume.lines_per_s == {1: 2 / 30}
    finally:
        for name in made_up:
            spark.catalog.dropTempView(name)
