"""notify with a fake of each receiver: what opens and closes, filters, silences, hostile names."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf, addresses
from quotaflow.pipelines.config.cluster import Team
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import notifications, notifier, senders
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...http_endpoint import Endpoint, listening
from ...rows import CLIENT, HOSTILE, Row, at, row
from ...schemas.views.view_tables import make_tables
from ...smtp_endpoint import MailEndpoint, mail_server

NOW = at(3_600)
KEY = "R0UTINGKEY"
GROUP = f"<!channel> [a](http://x) *b* {HOSTILE}\x1b[2J\r\nBcc: eve@example.com"
FORMATS = ("webhook", "slack", "teams", "pagerduty", "alertmanager", "mail")


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with listening("/hook", json.loads) as endpoint:
        yield endpoint


@pytest.fixture
def mails() -> Iterator[MailEndpoint]:
    with mail_server() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _references(server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", server.url)
    monkeypatch.setenv("KEY", KEY)
    monkeypatch.setattr(addresses, "_BACKOFF_S", 0.0)
    monkeypatch.setattr(senders, "_BACKOFF_S", 0.0)


def of_format(form: str, mails: MailEndpoint, **others: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"name": form, "format": form, "timeout_s": 2.0}
    if form == "mail":
        given |= {"smtp": mails.place, "sender": "q@example.com", "to": ["ops@example.com"]}
    else:
        given |= {"url": "env:HOOK"}
    if form == "pagerduty":
        given |= {"routing_key": "env:KEY"}
    return given | others


def conf_of(warehouse: Warehouse, *receivers: Mapping[str, Any], **alerts: Any) -> Conf:
    given = {"receivers": list(receivers)} | alerts
    pairs = [f"alerts.{name}={json.dumps(value)}" for name, value in given.items()]
    return config.load(overrides=[f"warehouse.path={warehouse.conf.folder}", *pairs])


def lag(second: float, state: str, group: str = "billing", **others: Any) -> Row:
    given = {"alert_id": f"lag of {group}", "rule": "lag", "state": state, "watched": "group_lag"}
    given |= {"severity": "critical", "owner": "payments", "reason": None}
    given |= {"attributes": [("group_id", group)], "first_breach": at(0)}
    given |= {"shown": [("lag_s", "734")] if state == "opened" else []}
    ended = {"reason": "cleared"} if state == "closed" else {}
    empty = dict.fromkeys(("metric", "principal", "client_id", "broker_id"))
    return row("metric_alert_events", at(second), given | empty | ended | others)


def reading(second: float, **others: Any) -> Row:
    given = {"alert_id": "a", "rule": "queue", "state": "opened", "metric": "m", "unit": "ms"}
    return row("metric_alert_events", at(second), CLIENT | given | {"severity": "info"} | others)


def fill(warehouse: Warehouse, *events: Row) -> None:
    make_tables(warehouse, {"metric_alert_events": list(events)})


def sent(conf: Conf, now: datetime = NOW) -> list[tuple[str, int]]:
    return [(each.receiver, each.sent) for each in notifier.deliver(conf, now)]


OPENED = "alert lag opened: group_lag of group_id billing: lag_s 734"
CLOSED = "alert lag closed (its row is gone): group_lag of group_id billing"


@cases("form", *((form, form) for form in FORMATS))
def test_each_format_has_the_opening_and_the_end_once(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint, form: str
) -> None:
    conf = conf_of(warehouse, of_format(form, mails))
    fill(warehouse, lag(1, "pending"), lag(60, "opened"), lag(90, "closed"))
    assert sent(conf) == [(form, 2)]
    assert sent(conf) == [(form, 0)]
    if form == "mail":
        return check_mails(mails)
    (path, headers, opened), (_, others, closed) = server.came
    assert headers["Idempotency-Key"] != others["Idempotency-Key"]
    assert path == ("/hook/api/v2/alerts" if form == "alertmanager" else "/hook")
    return CHECKS[form](opened, closed)


def check_mails(mails: MailEndpoint) -> None:
    opened, closed = mails.came
    assert opened["Subject"] == f"[quotaflow] critical: {OPENED}"
    assert closed["Subject"] == f"[quotaflow] critical: {CLOSED}"
    assert (opened["From"], opened["To"]) == ("q@example.com", "ops@example.com")
    assert opened["References"] == closed["References"]
    assert opened["Message-ID"] != closed["Message-ID"]
    assert opened.get_content().splitlines()[:3] == [OPENED, "", "{"]


def check_webhook(opened: Any, closed: Any) -> None:
    assert (opened["text"], closed["text"]) == (OPENED, CLOSED)
    assert (opened["kind"], closed["kind"]) == ("alert_opened", "alert_closed")
    assert opened["subject_id"] == closed["subject_id"]
    assert (opened["severity"], opened["owner"]) == ("critical", "payments")
    assert opened["labels"] == closed["labels"] == {"rule": "lag", "group_id": "billing"}
    assert opened["event_time"] == "2026-11-21T12:01:00+00:00"


def check_slack(opened: Any, closed: Any) -> None:
    assert (opened["text"], closed["text"]) == (OPENED, CLOSED)
    assert opened["unfurl_links"] is opened["mrkdwn"] is False


def check_teams(opened: Any, closed: Any) -> None:
    for body, text in ((opened, OPENED), (closed, CLOSED)):
        ((attachment),) = body["attachments"]
        assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
        ((block),) = attachment["content"]["body"]
        assert block["inlines"] == [{"type": "TextRun", "text": text}]


def check_pagerduty(opened: Any, closed: Any) -> None:
    assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == closed["dedup_key"]
    assert opened["routing_key"] == closed["routing_key"] == KEY
    payload = opened["payload"]
    assert (payload["summary"], payload["severity"]) == (OPENED, "critical")
    assert (payload["source"], payload["group"]) == ("c1", "payments")
    assert payload["custom_details"]["group_id"] == "billing"
    assert "payload" not in closed


def check_alertmanager(opened: Any, closed: Any) -> None:
    ((opened,), (closed,)) = opened, closed
    assert opened["labels"] == closed["labels"]
    assert opened["labels"].items() >= {"alertname": "lag", "severity": "critical"}.items()
    assert opened["labels"].items() >= {"group_id": "billing", "owner": "payments"}.items()
    assert opened["annotations"] == {"summary": OPENED}
    assert opened["startsAt"] == "2026-11-21T12:01:00+00:00"
    assert opened["endsAt"] == (NOW + timedelta(days=7)).isoformat()
    assert closed["endsAt"] == "2026-11-21T12:01:30+00:00"


CHECKS = {
    "webhook": check_webhook,
    "slack": check_slack,
    "teams": check_teams,
    "pagerduty": check_pagerduty,
    "alertmanager": check_alertmanager,
}


@cases("form", *((form, form) for form in FORMATS))
def test_what_may_pass_is_tried_again_and_what_does_not_waits(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint, form: str
) -> None:
    conf = conf_of(warehouse, of_format(form, mails, max_attempts=2))
    fill(warehouse, lag(60, "opened"))
    server.answers, mails.answers = [503, 503], [451, 451]
    (delivery,) = notifier.deliver(conf, NOW)
    assert (delivery.sent, delivery.pending) == (0, 1)
    assert str(delivery.problem).startswith(f"{form}: it ")
    server.answers, mails.answers = [503], [451]
    assert sent(conf) == [(form, 1)]


@cases("form", *((form, form) for form in FORMATS))
def test_a_hostile_name_is_inert_in_each_format(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint, form: str
) -> None:
    conf = conf_of(warehouse, of_format(form, mails))
    fill(warehouse, lag(60, "opened", GROUP), lag(90, "closed", GROUP))
    assert sent(conf) == [(form, 2)]
    for mail in mails.came:
        assert mail["Bcc"] is None
        assert len(mail.keys()) == len(set(mail.keys()))
        assert mail.get_content_type() == "text/plain"
    for _, _, body in server.came:
        texts = list(strings(body))
        assert not any(set(text) & set("\x1b\r\n\u202e") for text in texts)
        if form == "slack":
            assert "&lt;!channel&gt;" in body["text"]
            assert "<" not in body["text"]
        if form == "teams":
            assert '"TextBlock"' not in json.dumps(body)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from (name, *strings(each))
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str):
        yield value


def test_one_receiver_that_fails_keeps_nothing_from_others(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint
) -> None:
    broken = of_format("slack", mails, name="broken", max_attempts=1)
    conf = conf_of(warehouse, broken, of_format("mail", mails))
    server.status = 500
    fill(warehouse, lag(60, "opened"))
    first, second = notifier.deliver(conf, NOW)
    assert (first.problem, first.pending) == ("broken: it answered 500 each time", 1)
    assert (second.sent, second.problem) == (1, None)
    server.status = 200
    assert sent(conf) == [("broken", 1), ("mail", 0)]


@cases(
    ("given", "rules"),
    ("all", {}, ["lag", "queue"]),
    ("a severity", {"severities": ["critical"]}, ["lag"]),
    ("two severities", {"severities": ["critical", "info"]}, ["lag", "queue"]),
    ("the owner of the rule", {"teams": ["payments"]}, ["lag"]),
    ("the team of the client", {"teams": ["shop"]}, ["queue"]),
    ("another cluster", {"clusters": ["c2"]}, []),
    ("its cluster", {"clusters": ["c1", "c2"]}, ["lag", "queue"]),
    ("another kind", {"kinds": ["incident"]}, []),
    ("its kind", {"kinds": ["alert"]}, ["lag", "queue"]),
)
def test_filters_of_a_receiver(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint, given: Any, rules: list[str]
) -> None:
    shop = Team(team="shop", principals=["User:ali*"])
    conf = conf_of(warehouse, of_format("webhook", mails, **given))
    conf = conf.model_copy(update={"teams": [shop]})
    fill(warehouse, lag(60, "opened"), reading(61))
    notifier.deliver(conf, NOW)
    assert [body["labels"]["rule"] for _, _, body in server.came] == rules


IN_IT = {"since": "2026-11-21T12:00:50Z", "until": "2026-11-21T12:02:00"}


@cases(
    ("silence", "texts"),
    ("everything", {}, []),
    ("its rule", {"rules": ["la*"]}, []),
    ("its labels", {"labels": {"group_id": "bill*"}}, []),
    ("another rule", {"rules": ["queue"]}, [OPENED, CLOSED]),
    ("another label", {"labels": {"group_id": "shop*"}}, [OPENED, CLOSED]),
    ("another kind", {"kinds": ["incident"]}, [OPENED, CLOSED]),
    ("another time", {"since": "2026-11-20", "until": "2026-11-21T12:01:00Z"}, [OPENED, CLOSED]),
)
def test_a_silence(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint, silence: Any, texts: list[str]
) -> None:
    conf = conf_of(warehouse, of_format("webhook", mails), silences=[IN_IT | silence])
    fill(warehouse, lag(60, "opened"), lag(90, "closed"))
    notifier.deliver(conf, NOW)
    assert [body["text"] for _, _, body in server.came] == texts


def test_a_silence_lets_the_end_of_what_was_sent_pass(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint
) -> None:
    since = {"since": "2026-11-21T12:01:20Z", "until": "2027-01-01"}
    conf = conf_of(warehouse, of_format("pagerduty", mails), silences=[since])
    fill(warehouse, lag(60, "opened"), lag(90, "closed"), lag(91, "opened", "b"))
    assert sent(conf) == [("pagerduty", 2)]
    assert [body["event_action"] for _, _, body in server.came] == ["trigger", "resolve"]


@cases("form", *((form, form) for form in ("webhook", "pagerduty", "alertmanager")))
def test_each_end_over_the_limit_is_sent_to_who_has_the_alert_open(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint, form: str
) -> None:
    opened = [lag(second, "opened", f"g{second}") for second in (60, 61, 62)]
    fill(warehouse, *opened)
    assert sent(conf_of(warehouse, of_format(form, mails))) == [(form, 3)]
    ends = [lag(second + 30, "closed", f"g{second}") for second in (60, 61, 62)]
    fill(warehouse, *opened, *ends, lag(99, "opened", "d"), lag(100, "closed", "d"))
    (delivery,) = notifier.deliver(conf_of(warehouse, of_format(form, mails, max_events=1)), NOW)
    assert (delivery.sent, delivery.summarized, delivery.pending) == (3, 2, 0)
    assert len(server.came) == 3 + 3 + 1


@cases("form", *((form, form) for form in FORMATS))
def test_an_end_is_that_of_the_opening_though_the_rule_changed(
    warehouse: Warehouse, server: Endpoint, mails: MailEndpoint, form: str
) -> None:
    only = {"severities": ["critical"], "teams": ["payments"]}
    conf = conf_of(warehouse, of_format(form, mails, **only))
    opened, retired = lag(60, "opened"), lag(90, "closed", severity="info", owner="shop")
    fill(warehouse, opened)
    assert sent(conf) == [(form, 1)]
    fill(warehouse, opened, retired)
    assert sent(conf) == [(form, 1)]
    if form == "mail":
        return check_mails(mails)
    (_, _, first), (_, _, last) = server.came
    return CHECKS[form](first, last)


@cases(
    ("answers", "came", "problem"),
    ("for good", {"gone@example.com": [550]}, 1, "it refused 1 of the addresses: 550"),
    ("each time", {"gone@example.com": [450] * 9}, 1, "it refused 1 of the addresses: 450"),
    ("once", {"gone@example.com": [450]}, 2, None),
)
def test_an_address_that_is_refused_keeps_the_mail_from_no_other_and_sends_it_to_none_again(
    warehouse: Warehouse, mails: MailEndpoint, answers: Any, came: int, problem: str | None
) -> None:
    to = ["ops@example.com", "gone@example.com"]
    conf = conf_of(warehouse, of_format("mail", mails, to=to))
    mails.refused = answers
    fill(warehouse, lag(60, "opened"))
    (delivery,) = notifier.deliver(conf, NOW)
    assert [each.partition(": ")[2] for each in delivery.refused] == ([problem] if problem else [])
    assert (delivery.sent, delivery.pending, len(mails.came)) == (1, 0, came)
    expected = ["ops@example.com"] + ["gone@example.com"] * (came - 1)
    assert mails.recipients == expected
    assert sent(conf) == [("mail", 0)]


def test_one_secret_that_is_missing_keeps_nothing_from_others(
    warehouse: Warehouse, mails: MailEndpoint
) -> None:
    broken = of_format("slack", mails, name="broken", url="env:NO_SUCH_SECRET")
    fill(warehouse, lag(60, "opened"))
    conf = conf_of(warehouse, broken, of_format("mail", mails))
    first, second = notifier.deliver(conf, NOW)
    assert "NO_SUCH_SECRET" in str(first.problem)
    assert (first.pending, second.sent, second.problem) == (1, 1, None)


def test_a_mail_server_elsewhere_gets_nothing_without_tls(
    warehouse: Warehouse, mails: MailEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "is_loopback", lambda _: False)
    conf = conf_of(warehouse, of_format("mail", mails, max_attempts=1))
    fill(warehouse, lag(60, "opened"))
    (delivery,) = notifier.deliver(conf, NOW)
    assert delivery.problem == "mail: it was not reached: SMTPNotSupportedError"
    assert mails.came == []


MAIL = {"format": "mail", "url": None, "smtp": "h:25", "sender": "a@b", "to": ["a@b"]}


@cases(
    ("given", "message"),
    ("a literal address", {"url": "https://x/hunter2"}, "write env:NAME or secret:scope/key"),
    ("no address", {"url": None}, "slack needs url"),
    ("no key", {"format": "pagerduty"}, "pagerduty needs routing_key"),
    ("no mail server", {"format": "mail", "url": None}, "mail needs smtp"),
    ("another's key", {"to": ["a@b"]}, "slack has no to"),
    ("a user alone", MAIL | {"user": "env:USER"}, "mail needs password, because it has user"),
    ("a password alone", MAIL | {"password": "env:P"}, "needs user, because it has password"),
    ("two lines", {"format": "mail", "sender": "a@b\nBcc: c@d"}, "write an address"),
)
def test_a_receiver_that_cannot_be_is_refused(given: Any, message: str) -> None:
    receiver = {"name": "x", "format": "slack", "url": "env:HOOK"} | given
    with pytest.raises(ConfigError, match=message) as caught:
        config.load(overrides=[f"alerts.receivers={json.dumps([receiver])}"])
    assert "hunter2" not in str(caught.value)


def test_attributes_of_a_client_replace_no_label() -> None:
    names = ("rule", "principal")
    chosen = [("rule", "maintenance"), ("principal", "User:vip"), ("zone", "a")]
    row = {"rule": "slow", "principal": "User:bob", "attributes": chosen, "watched": None}
    assert notifications._labels(row, names) == {"rule": "slow", "principal": "User:bob"}
    of_rows = row | {"watched": "group_lag", "attributes": [("group_id", "g")]}
    assert notifications._labels(of_rows, names)["group_id"] == "g"
