"""The first page of `why`: one sentence, what a name waits on, causes and what to do."""

import shutil
from datetime import timedelta
from itertools import chain
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.about import Period
from quotaflow.pipelines.areas.verdict import MAX_LINES, WIDTH, CauseLine, WhyVerdict
from quotaflow.pipelines.areas.why import WhyAnswer, why
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...rows import HOSTILE, Row, at, fault, limited, moved, reassigned, row, used
from ...schemas.views.test_client_diagnoses import BAD, RATE, THROTTLED, among_healthy, minutes
from ...schemas.views.view_tables import Tables, make_table, make_tables_and_answers

HALF_AN_HOUR = Period(None, timedelta(minutes=30))
FINE = {"principal": "User:fine", "client_id": "fine"}
SEEN = [
    used(60 * 29, RATE, 10.0, **each, amount=9, quota_bucket_user=each["client_id"])
    for each in (BAD, FINE)
]
SLOW = {"request_queue": 300.0, "local": 100.0}
OF_QUOTA: Tables = among_healthy(
    *minutes("User:bad", {"throttle": 900.0}), *minutes("User:fine")
) | {"quota_usage": [*SEEN, used(60 * 26, RATE, 2_000.0, amount=9, **THROTTLED)]}
"""A client waits for its quota, and its twin does not. The same tables are made once."""
ODD: list[Row] = [
    {"principal": f"User:{HOSTILE}", "client_id": HOSTILE},
    {"principal": "User:" + "x" * 300, "client_id": "y" * 300},
    {"principal": "User:bad", "client_id": None},
]


def verdict_of(folder: Path, content: Tables, name: str = "bad") -> WhyVerdict:
    return answer_of(folder, content, name).verdict


def answer_of(folder: Path, content: Tables, name: str, period: Period = HALF_AN_HOUR) -> WhyAnswer:
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    make_tables_and_answers(warehouse, content)
    return why(FolderReader(warehouse), name, period, None, config.Conf())


def test_a_throttled_client_has_its_quota_its_setter_and_a_command(tmp_path: Path) -> None:
    rows = among_healthy(*minutes("User:bad", {"throttle": 900.0}))
    rows |= {
        "quota_usage": [*SEEN, used(60 * 26, RATE, 2_000.0, amount=9, **THROTTLED)],
        "config_alterations": [limited(60 * 24, RATE, "1000", entity_name="bad")],
    }
    lines = "\n".join(verdict_of(tmp_path, rows).lines("bad"))
    # What is pasted into a shell.
    text = " ".join(lines.replace("\\\n", "").split())
    # A window of a quota that is throttled can begin in the minute before.
    rows["quota_usage"][-1] |= {"event_time": at(60 * 25 - 1), "period_s": 11}
    assert "set by User:admin at " in " ".join(verdict_of(tmp_path / "b", rows).lines("bad"))
    assert text.startswith(
        "bad is slow: PRODUCE waits 905 ms on average, 900 ms of it for a quota."
    )
    assert "quota 900 ms · broker" in text
    assert (
        "producer_byte_rate 1.0 kB/s of user bad, set by User:admin at 2026-11-21 12:24:00" in text
    )
    assert "throttled 50 of 50 requests (sure)" in text
    assert "--entity-type users --entity-name bad --add-config producer_byte_rate=" in text
    assert text.endswith("quotaflow why bad --all")


def test_an_area_gives_the_step_of_the_diagnosis_of_its_cause(tmp_path: Path) -> None:
    answered = answer_of(tmp_path, OF_QUOTA, "bad")
    steps = {
        area.name: area.findings[0].next_step
        for area in answered.areas
        if area.name in {"diagnoses", "quotas"}
    }
    assert steps["quotas"] == steps["diagnoses"] == answered.verdict.causes[0].step
    assert steps["quotas"] is not None


def test_its_harmless_twin_is_well(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, OF_QUOTA, "fine")
    assert verdict.sentence == (
        "fine is well: 300 PRODUCE requests waited 5 ms on average (usually 5 ms)."
    )
    assert verdict.causes == ()


def test_long_polls_are_no_wait(tmp_path: Path) -> None:
    reads = {"request_times": minutes("User:fine", {}, api="FETCH"), "quota_usage": SEEN}
    assert "ms on average, besides the time without records" in (
        verdict_of(tmp_path, reads, "fine").sentence
    )


@cases(
    ("errors", "text"),
    ("of one kind", [(45, 4)], "4 requests got OUT_OF_ORDER_SEQUENCE_NUMBER (PRODUCE)."),
    ("of two", [(2, 1), (45, 3)], "4 requests got errors, most often OUT_OF_ORDER"),
    ("that normal work brings", [(51, 4)], ""),
)
def test_too_few_errors_for_a_symptom_are_said(
    tmp_path: Path, errors: list[tuple[int, int]], text: str
) -> None:
    listed = [{"error_code": code, "requests": requests} for code, requests in errors]
    *rows, last = among_healthy(*minutes("User:fine"))["request_times"]
    rows.append(last | {"request_count": 100, "errors": listed})
    sentence = verdict_of(tmp_path, {"request_times": rows, "quota_usage": SEEN}, "fine").sentence
    assert sentence.partition("). ")[2].startswith(text)
    assert ("got" in sentence) is bool(text)


@cases(
    ("last_minutes", "client_ids", "usual"),
    ("ten minutes", 10, ["fine"], " (usually 5 ms)"),
    ("fewer than ten minutes", 9, ["fine"], ""),
    ("one program", 30, ["fine-1", "fine-2"], " (usually 5 ms)"),
    ("two programs", 30, ["fine", "other"], ""),
)
def test_a_name_that_is_well_has_its_usual_wait_where_that_is_known(
    tmp_path: Path, last_minutes: int, client_ids: list[str], usual: str
) -> None:
    rows = [
        row | {"client_id": client_id}
        for row in minutes("User:fine")[-last_minutes:]
        for client_id in client_ids
    ]
    sentence = verdict_of(tmp_path, {"request_times": rows, "quota_usage": SEEN}, "fine").sentence
    assert sentence.partition(" on average")[2] == f"{usual}."


def test_without_diagnoses_nobody_is_well(tmp_path: Path) -> None:
    verdict_of(tmp_path, OF_QUOTA)
    shutil.rmtree(tmp_path / "why_groups_lag")
    reader = FolderReader(Warehouse(config.WarehouseSection(path=str(tmp_path))))
    verdict = why(reader, "bad", HALF_AN_HOUR, None, config.Conf()).verdict
    expected = "bad: 300 PRODUCE requests waited 155 ms on average. Diagnoses are missing."
    assert verdict.sentence == expected


def test_without_request_times_nothing_is_claimed(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, {"quota_usage": SEEN})
    assert verdict.sentence == "bad: nothing is known to be wrong."


@cases(
    "command",
    ("one that fits", "`quotaflow show read_problems`"),
    (
        "one that goes on in a second line",
        f"kafka-configs.sh --bootstrap-server {'h' * 40}:9092 --alter --entity-type users",
    ),
)
def test_a_command_can_be_pasted(command: str) -> None:
    causes = (CauseLine("", "", None, f"{'word ' * 11}run {command}"),)
    lines = list(WhyVerdict(sentence="a", when="b", causes=causes).lines())
    assert [line for line in lines if len(line) > WIDTH] == []
    text = "\n".join(lines)
    is_whole = any(line.strip().endswith(command) for line in lines)
    assert is_whole or "\\\n" in text
    assert command in " ".join(text.replace("\\\n", " ").split())


@pytest.mark.parametrize("client", ODD, ids=["hostile names", "long names", "no client id"])
def test_a_verdict_is_at_most_twelve_lines_of_eighty_characters(
    client: Row, tmp_path: Path
) -> None:
    slow = [minutes(each["principal"], SLOW, client_id=each["client_id"]) for each in ODD]
    rows = among_healthy(*chain.from_iterable(slow))
    rows |= {"quota_usage": [used(60 * 29, RATE, 10.0, **each, amount=9) for each in ODD]}
    lines = list(verdict_of(tmp_path, rows, client["principal"]).lines(client["principal"]))
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines[:-1])) <= WIDTH
    assert " is slow: PRODUCE waits 40" in " ".join(" ".join(lines).split())


def test_a_topic_has_its_own_symptom_first(tmp_path: Path) -> None:
    rows = among_healthy(*minutes("User:bad", SLOW))
    rows |= {
        "quota_usage": SEEN,
        "traffic": [moved(60 * 26, 100, **BAD)],
        "fetches": [row("fetches", 60 * 26, {})],
        "topics": [row("topics", -600, {}, topic="orders")],
        "reassignment_changes": [reassigned(60 * 20, "requested", n, place=n - 2) for n in (2, 3)],
    }
    verdict = verdict_of(tmp_path, rows, "orders")
    assert verdict.sentence.startswith("The move of orders-0 to broker ")
    assert "throttle_checks" in (verdict.causes[0].step or "")
    assert [each.text.split(":")[0] for each in verdict.others] == ["bad is slow"]
    assert verdict_of(tmp_path, {}, "bad").sentence.startswith("bad is slow: PRODUCE waits ")


def test_a_symptom_with_a_sure_cause_comes_before_one_that_waits_longer(tmp_path: Path) -> None:
    during = {"errors": [{"error_code": 1, "requests": 10}]}
    fails = list(minutes("User:bad", {}, during=during, api="FETCH"))
    weak = among_healthy(*minutes("User:bad", SLOW), *fails) | {"quota_usage": SEEN}
    verdict = verdict_of(tmp_path / "weak", weak)
    assert verdict.sentence.startswith("bad gets errors: ")
    assert [each.text.split(":")[0] for each in verdict.others] == ["bad is slow"]
    sure = among_healthy(*minutes("User:bad", {"throttle": 900.0}), *fails)
    sure |= {"quota_usage": OF_QUOTA["quota_usage"]}
    assert verdict_of(tmp_path / "sure", sure).sentence.startswith("bad is slow: PRODUCE")


def test_a_group_that_is_well_says_its_lag_and_idle_members(tmp_path: Path) -> None:
    members = [
        row(
            "group_assignments",
            0,
            {},
            group_id="g",
            member_id=f"m{n}",
            client_id=f"reader-{n}",
            assigned_partitions=parts,
            is_removed=False,
        )
        for n, parts in enumerate([[{"topic": "orders", "partition": 0}], []])
    ]
    groups = [row("groups", 0, {}, group_id="g", group_type="consumer", is_removed=False)]
    content = {"group_assignments": members, "groups": groups, "quota_usage": SEEN}
    readers = [used(60 * 29, RATE, 9.0, client_id=f"reader-{n}") for n in range(2)]
    content["quota_usage"] = [*SEEN, *readers]
    idle = "1 of 2 members of g has no partition."
    assert idle in verdict_of(tmp_path, content, "g").sentence
    reader = FolderReader(Warehouse(config.WarehouseSection(path=str(tmp_path))))
    sentences = [
        why(reader, f"reader-{n}", HALF_AN_HOUR, None, config.Conf()).verdict.sentence
        for n in range(2)
    ]
    assert [idle in sentence for sentence in sentences] == [False, True]


@cases(
    ("name",),
    ("as it prints", "broker-1"),
    ("its id", "1"),
    ("in words", "Broker 1"),
)
def test_a_slow_broker_has_who_waits_for_it(tmp_path: Path, name: str) -> None:
    slow = [row for n in range(4) for row in minutes(f"User:u{n}", {"local": 400.0})]
    verdict = verdict_of(tmp_path, {"request_times": slow, "quota_usage": SEEN}, name)
    waits = (
        "4 of 4 clients wait 402 ms on average, 398 ms of it while the broker processes requests"
    )
    assert verdict.sentence == f"Broker 1 is slow: {waits}."
    assert "disks" in (verdict.causes[0].step or "")


def test_its_twin_is_well_by_its_numbers(tmp_path: Path) -> None:
    content = {"request_times": minutes("User:bad", SLOW), "quota_usage": SEEN}
    verdict = verdict_of(tmp_path, content, "broker-1")
    assert verdict.sentence == (
        "Broker 1 is well: 300 PRODUCE requests of 1 client waited 71 ms on average."
    )
    assert "quotas" not in verdict.fine


def test_requests_are_counted_over_the_time_that_the_answer_names(tmp_path: Path) -> None:
    """A time that begins within a minute has all of it: tables of minutes know no part of one."""
    timed = [*minutes("User:bad", {})]
    content = {"request_times": timed, "quota_usage": [used(60 * 29 + 51, RATE, 9.0)]}
    answered = answer_of(tmp_path, content, "broker-1", Period(None, timedelta(minutes=5)))
    assert (answered.start, answered.end) == (at(60 * 25), at(60 * 30 + 51))
    since = [row["timed_requests"] for row in timed if row["event_time"] >= answered.start]
    assert len(since) == 5
    assert answered.verdict.sentence.startswith(f"Broker 1 is well: {sum(since)} PRODUCE ")


@cases(
    ("missing", "rack"),
    ("all is known", (), "az-a"),
    ("its row is of an older version", ("client_rack",), "?"),
)
def test_a_cost_without_need_is_a_hint(tmp_path: Path, missing: tuple[str, ...], rack: str) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    make_tables_and_answers(warehouse, {"quota_usage": SEEN})
    step = FINE | {"advice": "set_producer_rack", "topic": "orders", "client_rack": "az-a"}
    step |= {"client_software_version": "4.1.0", "rack_awareness": "too_old"}
    facts = [{"fact": "advice_table", "text": "producer_rack_advice"}]
    facts += [{"fact": name, "text": step[name]} for name in [*step][-4:] if name not in missing]
    cost = FINE | {"subject_kind": "client", "rank": 1, "cause": step["advice"], "facts": facts}
    cost |= {
        "evidence": [
            {"signal": "bytes", "value": 1e8},
            {"signal": "lasted_ms", "value": 3_600_000.0},
        ]
    }
    cost |= {"since": at(0), "until": at(60 * 30), "topic": None, "broker_id": None}
    make_table(warehouse, TABLES["needless_costs"], [row("needless_costs", 0, cost)])
    verdict = why(FolderReader(warehouse), "fine", HALF_AN_HOUR, None, config.Conf()).verdict
    assert verdict.rank is None
    assert verdict.hint.startswith(
        "fine sent to other racks what could have stayed in its own: up to 100 MB within 60 min: "
        "upgrade "
        f"User:fine as fine from 4.1.0 to 4.4 or later first, then give it client.rack={rack} "
    )


def test_a_time_within_a_symptom_has_the_numbers_of_all_of_it_and_says_so(tmp_path: Path) -> None:
    later = OF_QUOTA | {
        "quota_usage": [*OF_QUOTA["quota_usage"], used(60 * 120, RATE, 9.0, **FINE)]
    }
    early = Period(at(60 * 27 + 30), timedelta(minutes=5))
    answer_of(tmp_path, later, "bad")
    reader = FolderReader(Warehouse(config.WarehouseSection(path=str(tmp_path))))
    page = why(reader, "bad", early, None, config.Conf()).verdict
    assert page.when.endswith("UTC, the numbers are of this whole time")
    assert "has today's" in (page.causes[0].step or "")


def test_a_symptom_that_goes_on_was_seen_when_it_was_known_last(tmp_path: Path) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    seen = [used(second, RATE, 10.0, **each, amount=9) for second, each in ((0, BAD), (3600, FINE))]
    groups = [row("groups", 0, {"group_id": "bad", "is_removed": False})]
    make_tables_and_answers(warehouse, {"quota_usage": seen, "groups": groups})
    lag = {"group_id": "bad", "topic": "orders", "lag": 5, "trend": "growing", "rank": 1}
    lag |= {"cause": "no_members", "confidence": 0.95, "detail": "Empty", "known_at": at(3600)}

    def when() -> str:
        return why(FolderReader(warehouse), "bad", HALF_AN_HOUR, None, config.Conf()).verdict.when

    assert when().startswith("last seen by 12:01 UTC")
    make_table(warehouse, TABLES["why_groups_lag"], [row("why_groups_lag", 3600, lag)])
    assert when().startswith("last seen by 13:00 UTC")


def test_reads_out_of_range_have_the_step_of_the_problem_of_reads(tmp_path: Path) -> None:
    """A client repeats a refused offset. Its twin has the general step."""
    errors = {"errors": [{"error_code": 1, "requests": 10}]}
    clients = [minutes(f"User:{name}", {}, during=errors, api="FETCH") for name in ("bad", "twin")]
    rows = among_healthy(*chain.from_iterable(clients)) | {
        "quota_usage": [used(60 * 29, RATE, 9.0, principal=f"User:{n}") for n in ("bad", "twin")],
        "fetch_faults": [
            fault(60 * 26, kind, 10, **BAD, topic="orders")
            for kind in ("offset_too_large", "out_of_range_spin")
        ],
    }
    (cause,) = verdict_of(tmp_path, rows).causes
    assert cause.step is not None
    assert "repeats refused requests" in cause.step
    assert "auto.offset.reset" in cause.step
    (twin,) = verdict_of(tmp_path, rows, "twin").causes
    assert twin.step == "check auto.offset.reset of the client (`quotaflow show read_problems`)"
