"""The codes of rebalances.trigger: what made a group rebalance."""

from quotaflow.pipelines.reasons.wording import Row, Wording, by_code, name, worded


def rebalance_trigger(row: Row) -> str:
    """What caused a row of rebalances. What clients name is no proof of who is guilty."""
    return worded(TRIGGERS, row["trigger"], row)


def _client(row: Row) -> str:
    return f"{name(row, 'trigger_client_id')} of {name(row, 'trigger_principal')}"


_CLIENT = ("trigger_client_id", "trigger_principal")
TRIGGERS = by_code(
    (
        Wording(
            "member_joined",
            "A new member joined.",
            _CLIENT,
            lambda row: f"{_client(row)} joined",
        ),
        Wording(
            "member_left",
            "A member left, or its client gave up because its application did not poll.",
            (*_CLIENT, "reason"),
            lambda row: f"{_client(row)} left; its reason: {name(row, 'reason')}",
        ),
        Wording(
            "missed_heartbeats",
            "A member did not come back, and had not left.",
            _CLIENT,
            lambda row: (
                f"{_client(row)} did not come back and had not left: it died, was cut off, or "
                "paused for longer than session.timeout.ms"
            ),
        ),
        Wording(
            "subscription_changed",
            "A member subscribed to other topics.",
            _CLIENT,
            lambda row: f"{_client(row)} subscribed to other topics",
        ),
        Wording(
            "partitions_changed",
            "The leader of the group saw other partitions, as its client says.",
            _CLIENT,
            lambda row: f"partitions of a topic changed, as {_client(row)} says",
        ),
        Wording(
            "unknown",
            "Nothing in the request log shows what caused it.",
            (),
            lambda _: "nothing in the request log shows what caused it",
        ),
    )
)
"""Codes of rebalances.trigger."""
