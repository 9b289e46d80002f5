"""What a verdict prints when there is too much for a page: whole sentences, and counts."""

from dataclasses import replace

import pytest

from quotaflow.pipelines.areas.diagnoses import budget
from quotaflow.pipelines.areas.finding import Finding
from quotaflow.pipelines.areas.verdict import MAX_LINES, WIDTH, CauseLine, WhyVerdict

from ...cases import cases

SHORT = WhyVerdict(sentence="c is slow: PRODUCE waits 74 ms on average.", when="since 12:00 UTC")
AREAS = tuple(f"area number {n}" for n in range(9))
STEP = "raise num.network.threads of broker 1, or move leaders away from it"
LONG = "The throttle of history does not name a replica that is moved, so it has no limit."


def text_of(page: WhyVerdict) -> str:
    lines = list(page.lines("c"))
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= WIDTH
    return " ".join(" ".join(lines).split())


def test_a_sentence_without_room_is_left_out_whole_and_counted() -> None:
    causes = tuple(
        CauseLine("39 %", f"handler threads of broker {n}", 0.5, f"{STEP}; {STEP}")
        for n in range(2)
    )
    others = (Finding(text=LONG), Finding(text="Short."))
    text = text_of(replace(SHORT, change="x" * 90, causes=causes, others=others, hints=3))
    assert "The throttle" not in text
    assert "also Short. more" in text
    assert text.endswith("more quotaflow why c --all (1 more problem, 3 to improve)")


def test_its_twin_with_room_has_every_sentence_and_no_count() -> None:
    text = text_of(replace(SHORT, others=(Finding(text=LONG), Finding(text="Short."))))
    assert f"also {LONG} also Short." in text
    assert text.endswith("more quotaflow why c --all")


def test_causes_and_problems_that_the_verdict_does_not_name_are_counted() -> None:
    unshown = {"more cause": 1, "more problem": 7}
    assert text_of(replace(SHORT, unshown=unshown)).endswith("(1 more cause, 7 more problems)")


def test_a_cause_keeps_how_sure_it_is() -> None:
    cause = CauseLine(
        "83 %", "producer_byte_rate " + "of a user with a long name " * 12, 0.95, STEP
    )
    text = text_of(replace(SHORT, causes=(cause,)))
    assert "… (sure) do raise" in text


@cases(
    ("areas", "shown"),
    ("few fit in a line", AREAS[:3], ", ".join(AREAS[:3])),
    ("two lines", AREAS[:8], ", ".join(AREAS[:8])),
    ("too many", (*AREAS, *AREAS), ", ".join(AREAS[:3]) + " and 15 other areas"),
)
def test_areas_without_a_problem_are_all_named_or_counted(
    areas: tuple[str, ...], shown: str
) -> None:
    assert f"fine {shown} more" in text_of(replace(SHORT, fine=areas))


def test_a_long_first_sentence_keeps_its_end() -> None:
    metric = "org.apache.kafka.consumer.coordinator.assigned.partitions"
    alert = "User:ivan as rdk-idle-ivan: alert idle is open since 2026-11-30 04:39:01 UTC"
    sentence = f"{alert}: {metric} reached 0 (threshold 0.5)."
    assert sentence in text_of(replace(SHORT, sentence=sentence))


def test_parts_of_a_wait_that_have_no_room_are_one_sum() -> None:
    parts = (("throttle", 134.0), ("request_queue", 9.0), ("local", 8.4), ("replicas", 7.5))
    page = replace(SHORT, parts=(*parts, ("response_queue", 6.9), ("send", 3.1)))
    shown = "quota 134 ms · queue 9 ms · broker 8.4 ms · replicas 7.5 ms · others 10 ms"
    assert shown in text_of(page)
    assert "others" not in text_of(replace(SHORT, parts=parts))


@cases(
    ("parts", "expected"),
    ("short ones are a sum", [("local", 4.0), ("send", 0.9), ("throttle", 0.8)], 5.7),
    ("one is not known", [("local", 4.0), ("unknown", 2.0)], 6.0),
    ("nothing is left", [("local", 4.0), ("send", 2.0), ("throttle", 0.001)], 6.0),
    ("what is outside is no part", [("local", 4.0), ("outside", 9.0)], 4.0),
)
def test_shown_parts_add_up_to_the_mean(parts: list[tuple[str, float]], expected: float) -> None:
    shown = dict(part.rsplit(" ", 2)[:2] for part in budget(parts, 80).split(" · "))
    shown.pop("outside the broker", None)
    assert sum(map(float, shown.values())) == pytest.approx(expected, abs=0.1)


def test_a_further_problem_has_its_step_where_there_is_room() -> None:
    worse = Finding(text="It took 468 ids.", next_step="use a fixed set of ids")
    assert "also It took 468 ids. do use a fixed set of ids more" in text_of(
        replace(SHORT, others=(worse,))
    )
    full = replace(SHORT, change="x" * 90, causes=(CauseLine("", "", None, "y" * 400),))
    text = text_of(replace(full, others=(worse,)))
    assert "It took 468 ids." in text
    assert text.endswith("more quotaflow why c --all")
