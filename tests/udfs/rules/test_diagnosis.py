"""Why a client fails: what the error means, and what to do about it."""

from dataclasses import replace

import pytest

from quotaflow.pipelines.reasons import diagnosis, diagnosis_step
from quotaflow.udfs.rules.config_change import _KEYS
from quotaflow.udfs.rules.diagnosis import CAUSES, Suffering, causes

from ...cases import cases
from ...rows import waits


def failing(code: int, error: str) -> Suffering:
    return Suffering(
        symptom="failing",
        api="PRODUCE",
        requests=190,
        failed_requests=7,
        errors=((code, error, 7),),
    )


@cases(
    ("code", "error", "expected"),
    ("lost batches", 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "lost_sequence"),
    ("a forgotten producer", 59, "UNKNOWN_PRODUCER_ID", "unknown_producer"),
    ("a member that was removed", 25, "UNKNOWN_MEMBER_ID", "left_group"),
    ("a second instance", 82, "FENCED_INSTANCE_ID", "fenced"),
    ("a record without a key", 87, "INVALID_RECORD", "invalid_records"),
    ("an old client", 35, "UNSUPPORTED_VERSION", "unsupported"),
    ("a broken disk", 56, "KAFKA_STORAGE_ERROR", "storage_error"),
    ("an exception", -1, "UNKNOWN_SERVER_ERROR", "server_error"),
    ("an offset that is not known yet", 78, "OFFSET_NOT_AVAILABLE", "other_errors"),
    ("an offset that is deleted", 1, "OFFSET_OUT_OF_RANGE", "out_of_range"),
)
def test_an_error_says_what_it_means_and_what_to_do(code: int, error: str, expected: str) -> None:
    (cause,) = causes(failing(code, error))
    assert cause.name == expected
    row = {"symptom": "failing", "cause": cause.name, "detail": cause.detail, "advice_table": None}
    assert error in diagnosis(row)
    assert "end with" not in diagnosis(row)
    assert diagnosis_step(row)


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause != "not_explained"])
def test_each_cause_has_a_step(cause: str) -> None:
    row = {"symptom": "failing", "cause": cause, "detail": "1", "missing_broker": 3.0}
    assert diagnosis_step(row | {"neighbour_principal": "User:a"})


@cases(
    ("refused", "missing", "expected"),
    ("some that the leader has", 11, 3, {"out_of_range": 8 / 11, "missing_at_replica": 3 / 11}),
    ("two that no follower had yet", 11, 2, {"out_of_range": 9 / 11, "not_explained": 2 / 11}),
    ("all that the leader has", 11, 11, {"missing_at_replica": 1}),
    ("none that the leader has", 11, 0, {"out_of_range": 1}),
    ("no fetch is known", None, None, {"out_of_range": 1}),
)
def test_a_replica_without_an_offset_is_no_wrong_offset(
    refused: int | None, missing: int | None, expected: dict[str, float]
) -> None:
    errors = ((1, "OFFSET_OUT_OF_RANGE", 11),)
    suffering = replace(
        failing(1, ""), errors=errors, refused_answers=refused, missing_answers=missing
    )
    assert {each.name: each.share for each in causes(suffering)} == pytest.approx(expected)


PARTS = ("request_queue", "local", "replicas", "response_queue", "send")


@pytest.mark.parametrize("part", PARTS)
@cases(
    ("each_ms", "is_cause"),
    ("one of eighteen waits for it", [1_400.0] + [8.0] * 17, False),
    ("four of eighteen do", [1_400.0] * 4 + [8.0] * 14, False),
    ("five of eighteen do", [1_400.0] * 5 + [8.0] * 13, True),
    ("five of a thousand do", [20_000.0] * 5 + [8.0] * 995, False),
    ("one of ten of a thousand do", [2_000.0] * 100 + [8.0] * 900, True),
    ("all do, one of them for a second", [1_000.0] + [60.0] * 17, True),
    ("all do, and each for less than a long wait", [20.0] * 18, True),
)
def test_few_long_requests_are_no_cause(part: str, each_ms: list[float], *, is_cause: bool) -> None:
    """One request that waits long lifts the mean of a part for all."""
    in_part = sum(each_ms) / len(each_ms)
    suffering = Suffering(
        symptom="slow",
        api="PRODUCE",
        requests=len(each_ms),
        timed_requests=len(each_ms),
        waited_ms=60 + in_part,
        broker_id=1,
        long_parts=tuple((part, *counted.values()) for counted in waits(*each_ms)),
        **{f"{part}_ms": in_part, f"peers_{part}_ms": 2.0},
    )
    named = [each.name for each in causes(suffering)]
    assert (named != ["not_explained"]) is is_cause
    unknown = replace(suffering, long_parts=None)
    assert causes(unknown)[0].name != "not_explained"


def test_changes_belong_to_causes_that_there_are() -> None:
    assert set(_KEYS) <= set(CAUSES)
