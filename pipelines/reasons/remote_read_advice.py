"""The codes of remote_read_advice.advice: what spares reads of remote storage, or waits for it."""

from quotaflow.pipelines.reasons.wording import Row, Wording, by_code, name, number, size, worded

_HOUR_MS = 3.6e6


def remote_read_step(row: Row) -> str:
    """What to do about a row of remote_read_advice."""
    return worded(REMOTE_READ_STEPS, row["advice"], row)


REMOTE_READ_STEPS = by_code(
    (
        Wording(
            "read_sooner",
            "A client reads records later than its topic keeps them on brokers' disks.",
            ("client_id", "principal", "topic", "read_age_ms", "local_retention_ms"),
            lambda row: (
                f"let {name(row, 'client_id')} of {name(row, 'principal')} read "
                f"{name(row, 'topic')} sooner: records are "
                f"{number(row, 'read_age_ms', 1, _HOUR_MS)} hours old then, and on disk for "
                f"{number(row, 'local_retention_ms', 1, _HOUR_MS)}"
            ),
        ),
        Wording(
            "raise_local_retention",
            "Records of a topic are read from remote storage: keep them on disk until then.",
            ("topic", "recommended_ms", "local_retention_ms", "extra_local_bytes"),
            lambda row: (
                f"set local.retention.ms of {name(row, 'topic')} to "
                f"{number(row, 'recommended_ms')}, which is "
                f"{number(row, 'local_retention_ms')} now: that takes "
                f"{size(row, 'extra_local_bytes')} more of brokers' disks"
            ),
        ),
        Wording(
            "raise_remote_fetch_quota",
            "Clients waited while a broker was over its quota of remote reads (KIP-956).",
            ("broker_id", "fetch_quota", "empty_time_ms_per_hour"),
            lambda row: (
                "raise remote.log.manager.fetch.max.bytes.per.second of broker "
                f"{name(row, 'broker_id')}, which is {number(row, 'fetch_quota')}: clients waited "
                f"{number(row, 'empty_time_ms_per_hour', 1, 1e3)} s per hour"
            ),
        ),
    )
)
"""Codes of remote_read_advice.advice."""
