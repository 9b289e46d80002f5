"""The codes of other_config_managers: what shows that another program manages the cluster."""

from quotaflow.pipelines.reasons.wording import (
    Row,
    Wording,
    Words,
    by_code,
    name,
    worded,
)


def trace(row: Row) -> str:
    """What shows that another program manages the cluster: a row of other_config_managers."""
    return worded(TRACES, row["evidence_code"], row)


def _trace_of(kind: str) -> Words:
    return lambda row: f"{kind}{name(row, 'evidence')}"


TRACES = by_code(
    (
        Wording("requests", "APIs that it used.", ("evidence",), _trace_of("")),
        Wording("topic", "A topic that it made.", ("evidence",), _trace_of("topic ")),
        Wording(
            "quota_callback",
            "The client.quota.callback.class of a broker.",
            ("evidence",),
            _trace_of("client.quota.callback.class = "),
        ),
    )
)
"""Codes of other_config_managers.evidence_code."""
