"""The codes of replica_advice.advice: the step that keeps bytes of consumers in their rack."""

from quotaflow.pipelines.reasons.wording import (
    Row,
    Wording,
    Words,
    by_code,
    name,
    number,
    with_topic,
    worded,
)

_PER_CENT = 0.01


def replica_step(row: Row) -> str:
    """What to do about a row of replica_advice."""
    return worded(REPLICA_STEPS, row["advice"], with_topic(row))


def _words(template: str, evidence: tuple[str, ...]) -> Words:
    return lambda row: template.format(**{column: _value(row, column) for column in evidence})


def _value(row: Row, column: str) -> str:
    return number(row, column, 1, _PER_CENT) if column == "read_share" else name(row, column)


REPLICA_STEPS = by_code(
    Wording(code, meaning, evidence, _words(template, evidence))
    for code, meaning, evidence, template in (
        (
            "set_broker_rack",
            "A broker that consumers read from has no broker.rack.",
            ("broker_id",),
            "set broker.rack of broker {broker_id}",
        ),
        (
            "update_client",
            "The FETCH requests of a consumer are too old to name a rack.",
            ("client_id", "principal"),
            "update client {client_id} of {principal}: its FETCHes are too old for racks",
        ),
        (
            "place_replica",
            "The topic has no replica in the rack of its consumers.",
            ("topic", "client_rack"),
            "place a replica of {topic} in {client_rack}",
        ),
        (
            "set_selector",
            "The leader has no replica.selector.class.",
            ("broker_id",),
            "set replica.selector.class of broker {broker_id}",
        ),
        (
            "set_client_rack",
            "Conf's racks have the rack of a consumer, and the consumer names none.",
            ("client_rack", "client_id", "principal"),
            "set client.rack={client_rack} at client {client_id} of {principal}",
        ),
        (
            "check_client",
            "A consumer names its rack, and reads elsewhere, or elsewhere too.",
            ("client_id", "principal", "read_share", "client_rack"),
            "see why {client_id} of {principal} reads {read_share} % of its bytes out of "
            "{client_rack}",
        ),
        (
            "move_leader",
            "More of a partition is read from a rack than in its leader's rack.",
            ("topic", "partition", "client_rack"),
            "move the leader of {topic}-{partition} to {client_rack}",
        ),
    )
)
"""Codes of replica_advice.advice."""
