"""The codes of why_groups_lag.cause: why a group lags, and what helps."""

from quotaflow.pipelines.reasons.wording import Row, Wording, by_code, cut, fixed, name, worded
from quotaflow.pipelines.terminal import texts

_SETTINGS = {
    "partition_max_bytes": "max.partition.fetch.bytes",
    "first_batch": "max.partition.fetch.bytes",
    "max_bytes": "fetch.max.bytes",
    "broker_cap": "fetch.max.bytes of the brokers",
}
_MAX_DIGITS = 1_000


def lag_step(row: Row) -> str:
    """What to do about a row of why_groups_lag."""
    return worded(LAG_CAUSES, row["cause"], row)


def lag_cause(row: Row) -> str:
    """The cause of a row of why_groups_lag and the numbers that it rests on, in one sentence."""
    which = f" ({name(row, 'detail')})" if row["detail"] is not None else ""
    sure = "" if row["confidence"] is None else f", confidence {row['confidence']:.2f}"
    numbers = ", ".join(
        f"{cut(each['signal'])} {texts.precise(each['value'], 3)}" for each in row["evidence"] or ()
    )
    rests = f": {numbers}" if numbers else ""
    return f"{cut(row['cause']).replace('_', ' ')}{which}{sure}{rests}"


def _setting(row: Row) -> str:
    return _SETTINGS.get(row["detail"] or "", name(row, "detail"))


LAG_CAUSES = by_code(
    (
        Wording(
            "throttled",
            "A quota stops its fetches.",
            ("detail",),
            lambda row: (
                f"raise {name(row, 'detail')} of its clients step by step, or spread what they "
                "read over more brokers: each has a bucket of its own"
            ),
        ),
        Wording(
            "fetch_limited",
            "Answers end at a limit of the fetch, and round trips take the time.",
            ("detail",),
            lambda row: f"raise {_setting(row)}: one answer brings too little",
        ),
        Wording(
            "far_replica",
            "The way to a replica in another rack takes the time.",
            (),
            fixed(
                "let it read within its rack (client.rack and replica.selector.class, KIP-392), "
                "run it nearer, or let one answer bring more"
            ),
        ),
        Wording(
            "out_of_range",
            "Its offset is not in the partition, or it went back to an earlier one.",
            ("topic",),
            lambda row: (
                f"see read_problems of {name(row, 'topic')}, and auto.offset.reset of its clients; "
                "if a person set its offsets back, let it catch up"
            ),
        ),
        Wording(
            "rebalancing",
            "Members stop again and again, since the group rebalances.",
            ("group_id",),
            lambda row: (
                f"see rebalances of {name(row, 'group_id')} for who causes them; "
                "group.instance.id, cooperative-sticky or group.protocol=consumer keep members at "
                "work"
            ),
        ),
        Wording(
            "not_polling",
            "A member has partitions, and its application does not poll.",
            (),
            fixed("look what its application waits for, and restart it: it does not poll"),
        ),
        Wording(
            "slow_processing",
            "The application is busy with what it read.",
            ("topic",),
            lambda row: (
                "let it work on records in parallel, or add members, up to the number of "
                f"partitions of {name(row, 'topic')}"
            ),
        ),
        Wording(
            "skewed_partitions",
            "One partition gets most records, and one member reads it.",
            ("detail", "topic"),
            lambda row: (
                f"choose keys that spread: partition {name(row, 'detail')} of "
                f"{name(row, 'topic')} gets most records"
            ),
        ),
        Wording(
            "slow_broker",
            "One broker takes long to answer.",
            ("detail",),
            lambda row: (
                f"see disks and request queues of broker {name(row, 'detail')}, or move leaders "
                "away from it"
            ),
        ),
        Wording(
            "producers_faster",
            "More records come than before, and it reads as fast as ever.",
            ("topic",),
            lambda row: (
                f"add members, up to the number of partitions of {name(row, 'topic')}, or limit "
                "producers by producer_byte_rate"
            ),
        ),
        Wording(
            "no_members",
            "Nobody has the partitions.",
            ("group_id",),
            lambda row: (
                f"start the members of {name(row, 'group_id')}, or delete the group if nobody "
                "needs it"
            ),
        ),
        Wording(
            "paused",
            "Members poll, and do not read the partitions: they have paused them.",
            (),
            fixed("look why its application paused the partitions, and does not resume them"),
        ),
        Wording(
            "unknown",
            "The tables do not show it.",
            (),
            fixed(
                "let its clients push telemetry (KIP-714), or ship the request log: what is there "
                "does not show the cause"
            ),
        ),
    )
)
"""Codes of why_groups_lag.cause."""
