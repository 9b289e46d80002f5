"""The codes of fetch_advice: which setting to change, and what gets worse then."""

from quotaflow.pipelines.reasons.wording import (
    Row,
    Wording,
    by_code,
    fixed,
    name,
    number,
    numbered,
    size,
    worded,
)


def _change(row: Row) -> str:
    return (
        f"set {name(row, 'setting')} to {number(row, 'recommended_value')}, which is "
        f"{number(row, 'current_value')} now"
    )


_CHANGE = ("setting", "recommended_value", "current_value")
FETCH_STEPS = by_code(
    (
        Wording(
            "raise_max_partition_fetch_bytes",
            "Batches are larger than max.partition.fetch.bytes.",
            (*_CHANGE, "oversized_batches"),
            lambda row: (
                f"{_change(row)}: "
                f"{numbered(row, 'oversized_batches', 'batch was', 'batches were')} larger than "
                "that"
            ),
        ),
        Wording(
            "raise_fetch_max_bytes",
            "Most answers end at fetch.max.bytes and leave out partitions with data.",
            (*_CHANGE, "max_bytes_fetches", "answers"),
            lambda row: (
                f"{_change(row)}: {number(row, 'max_bytes_fetches')} of "
                f"{numbered(row, 'answers', 'answer')} ended there, and other partitions waited"
            ),
        ),
        Wording(
            "raise_fetch_min_bytes",
            "There are many small answers.",
            (*_CHANGE, "fetches_per_s", "expected_fetches_per_s"),
            lambda row: (
                f"{_change(row)}: {number(row, 'fetches_per_s', 1)} small fetches per second at "
                f"its busiest broker become {number(row, 'expected_fetches_per_s', 1)}"
            ),
        ),
        Wording(
            "lower_max_partition_fetch_bytes",
            "Answers can fill much more memory than they ever did, and more than 256 MiB.",
            (*_CHANGE, "bound_bytes", "observed_bytes"),
            lambda row: (
                f"{_change(row)}: answers can be {size(row, 'bound_bytes')}, and were "
                f"{size(row, 'observed_bytes')} at most"
            ),
        ),
        Wording(
            "rotate_partitions",
            "Full answers always begin with the same partition, so others starve.",
            ("starved_partitions",),
            lambda row: (
                "update the client or read fewer partitions: its full answers always begin with "
                f"the same one, and {numbered(row, 'starved_partitions', 'waits', 'wait')}"
            ),
        ),
        Wording(
            "raise_replica_fetch_response_max_bytes",
            "The answers of a follower end at that limit.",
            (*_CHANGE, "max_bytes_fetches", "answers"),
            lambda row: (
                f"{_change(row)}: {number(row, 'max_bytes_fetches')} of "
                f"{numbered(row, 'answers', 'answer')} of the follower ended there"
            ),
        ),
    )
)
"""Codes of fetch_advice.advice."""


def fetch_step(row: Row) -> str:
    """What to do about a row of fetch_advice."""
    return worded(FETCH_STEPS, row["advice"], row)


TRADE_OFFS = by_code(
    (
        Wording(
            "longer_wait",
            "A record can wait for fetch.min.bytes as long as fetch.max.wait.ms.",
            ("max_wait_ms",),
            lambda row: f"a record can wait up to {number(row, 'max_wait_ms')} ms",
        ),
        Wording(
            "more_memory",
            "The client or follower needs memory for larger answers of each broker.",
            ("brokers", "recommended_value"),
            lambda row: (
                f"answers of {numbered(row, 'brokers', 'broker')} can each be as large as "
                f"{numbered(row, 'recommended_value', 'byte')}"
            ),
        ),
        Wording(
            "slower_catch_up",
            "A consumer that is behind needs more fetches to read the same records.",
            (),
            fixed("a consumer that is behind needs more fetches"),
        ),
    )
)
"""Codes of fetch_advice.trade_off."""


def trade_off(row: Row) -> str | None:
    """What gets worse with the change of a row of fetch_advice; None if nothing does."""
    code = row["trade_off"]
    return None if code is None else worded(TRADE_OFFS, code, row)
