"""The codes of producer_id_bursts and producer_id_advice: causes of bursts, bases of a rate."""

from datetime import timedelta

from quotaflow.pipelines.reasons.wording import (
    UNKNOWN,
    Row,
    Wording,
    by_code,
    fixed,
    name,
    number,
    numbered,
    worded,
)


def burst(row: Row) -> str:
    """The numbers that show the cause of a burst: a row of producer_id_bursts or _advice."""
    return worded(BURSTS, row["cause"], row)


def recommendation(row: Row) -> str:
    """Which number of a row of producer_id_advice its recommended rate comes from."""
    return worded(RECOMMENDATIONS, row["recommended_by"], row)


def cure(cause: str | None) -> str | None:
    """What the owner of a program should do about a cause; None where nobody is accused."""
    return _CURES.get(cause or "")


def accusation(offender: str, ids: str, cause: str | None) -> str:
    """Who took producer ids, the cause, and what its owner should do. `ids`: how many, in words."""
    return f"{offender} took {ids}; cause: {cause or UNKNOWN}: {cure(cause) or _SEE}"


def accused_burst(row: Row) -> str:
    """The same for an accused row of producer_id_bursts."""
    offender = f"{name(row, 'principal')} as {name(row, 'source')}"
    return accusation(offender, numbered(row, "source_ids", "producer id"), row["cause"])


_SEE = "see producer_id_bursts"
_CURES = {
    "producer_per_batch": "keep one producer and close it at the end",
    "producer_churn": "keep one producer per process, under any client id",
    "restart_loop": "fix what ends it, and let its supervisor wait longer each time",
    "transactional_id_churn": "name transactional.ids by a fixed pool",
}


def _burst(row: Row) -> str:
    seconds = (row["ended_at"] - row["started_at"]) / timedelta(seconds=1)
    return (
        f"{numbered(row, 'ids', 'new id')} of {numbered(row, 'clients', 'client')} on "
        f"{numbered(row, 'hosts', 'host')} in {seconds:.1f} s; {number(row, 'source_ids')} by "
        f"{name(row, 'source')} under {numbered(row, 'source_clients', 'client id')}, "
        f"{number(row, 'median_gap_ms')} ms apart, {number(row, 'requests_per_id', 1)} PRODUCE "
        f"requests each, {number(row, 'new_transactional_ids')} for new transactional ids, "
        f"{number(row, 'abandoned_ids')} not named again later"
    )


_BURST = (
    "ids",
    "clients",
    "hosts",
    "started_at",
    "ended_at",
    "source_ids",
    "source",
    "source_clients",
    "median_gap_ms",
    "requests_per_id",
    "new_transactional_ids",
    "abandoned_ids",
)


BURSTS = by_code(
    Wording(code, meaning, _BURST, _burst)
    for code, meaning in (
        ("transactional_id_churn", "New transactional.ids come again and again."),
        ("producer_per_batch", "A new producer is made for every few requests."),
        ("producer_churn", "A host takes new ids all the time, under any name."),
        ("restart_loop", "One client after another ends early, or works and ends."),
        ("deploy_burst", "Many clients start, and each takes one or two ids."),
        ("epoch_exhaustion", "The epochs of ids of the same transactional.id are used up."),
        ("unknown", "The numbers fit no other cause."),
    )
)
"""Codes of producer_id_bursts.cause and producer_id_advice.cause."""


RECOMMENDATIONS = by_code(
    (
        Wording(
            "no_ordinary_seconds",
            "There is none: no second is outside accused bursts, and conf sets no quota.",
            (),
            fixed("none: no second outside accused bursts, and conf sets no quota"),
        ),
        Wording(
            "quota_of_conf",
            "There are no ordinary seconds: it is quota_per_s.",
            (),
            fixed("conf: no second outside accused bursts"),
        ),
        Wording(
            "p99",
            "It is 1.2 x p99_rate_per_s.",
            (),
            fixed("99th percentile of ordinary seconds and a fifth"),
        ),
        Wording("peak", "It is peak_rate_per_s.", (), fixed("peak of ordinary seconds")),
        Wording(
            "protected",
            "There is none: no quota may slow this principal down (protected_principals).",
            (),
            fixed("none: no quota may slow this principal down"),
        ),
    )
)
"""Codes of producer_id_advice.recommended_by."""
