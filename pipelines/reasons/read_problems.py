"""The codes of read_problems.advice: what ends the problems of a consumer with a topic."""

from quotaflow.pipelines.reasons.wording import Row, Wording, by_code, name, with_topic, worded


def read_step(row: Row) -> str | None:
    """What to do about a row of read_problems; None if the rest heals by itself."""
    code = row["advice"]
    return None if code is None else worded(READ_STEPS, code, with_topic(row))


READ_STEPS = by_code(
    (
        Wording(
            "align_log_starts",
            "The leader has what a follower deleted.",
            ("topic", "broker_id"),
            lambda row: (
                f"broker {name(row, 'broker_id')} deleted records of {name(row, 'topic')} that the "
                "leader has: give all replicas the same retention, see log_start_divergence"
            ),
        ),
        Wording(
            "update_client",
            "The client repeats a refused request, or stays on a follower that lags.",
            ("client_id", "client_software_name", "client_software_version"),
            lambda row: (
                f"update the library of {name(row, 'client_id')}, "
                f"{name(row, 'client_software_name')} {name(row, 'client_software_version')}: it "
                "repeats a refused request, or stays on a follower that lags"
            ),
        ),
        Wording(
            "extend_retention",
            "The client reads too late: the leader deleted the records too.",
            ("topic",),
            lambda row: (
                f"it reads {name(row, 'topic')} too late: let it catch up, or extend retention.ms"
            ),
        ),
        Wording(
            "check_offsets",
            "The client reads past the end of the leader.",
            ("topic",),
            lambda row: (
                f"it reads {name(row, 'topic')} past its end: its offsets are of another topic, or "
                "records were lost"
            ),
        ),
        Wording(
            "check_replication",
            "A replica that the client reads from lags.",
            ("broker_id", "topic"),
            lambda row: (
                f"broker {name(row, 'broker_id')} lags with {name(row, 'topic')}: see lagging_reads"
            ),
        ),
        Wording(
            "refresh_metadata",
            "The broker that the client fetches from does not lead the partition any more.",
            ("broker_id", "topic"),
            lambda row: (
                f"broker {name(row, 'broker_id')} does not lead {name(row, 'topic')} any more: "
                "lower metadata.max.age.ms of the client"
            ),
        ),
    )
)
"""Codes of read_problems.advice."""
