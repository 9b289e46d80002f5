"""The codes of fetch_advice.trade_off: what gets worse when a fetch setting changes."""

from quotaflow.pipelines.reasons.wording import Row, Wording, by_code, fixed, number, worded

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
                f"answers of each of {number(row, 'brokers')} brokers can be as large as "
                f"{number(row, 'recommended_value')} bytes"
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
