"""The codes of producer_rack_advice.advice: what keeps produced bytes in their rack (KIP-1123)."""

from quotaflow.pipelines.reasons.wording import Row, Wording, by_code, name, with_topic, worded

_CLAIMED = {"client_id": ", as its client id claims"}


def producer_rack_step(row: Row) -> str:
    """What to do about a row of producer_rack_advice."""
    return worded(PRODUCER_RACK_STEPS, row["advice"], with_topic(row))


PRODUCER_RACK_STEPS = by_code(
    (
        Wording(
            "set_producer_rack",
            "A producer sends to leaders in other racks, and its metrics name no rack.",
            ("client_id", "principal", "client_rack", "rack_source", "topic"),
            lambda row: (
                f"set client.rack={name(row, 'client_rack')} and partitioner.rack.aware=true at "
                f"producer {name(row, 'client_id')} of {name(row, 'principal')} for "
                f"{name(row, 'topic')} (Java clients from 4.4): it is there"
                f"{_CLAIMED.get(row['rack_source'], '')}"
            ),
        ),
        Wording(
            "check_producer",
            "A producer names its rack, and sends to leaders in other racks all the same.",
            ("client_id", "principal", "client_rack", "topic"),
            lambda row: (
                f"see why {name(row, 'client_id')} of {name(row, 'principal')} sends records of "
                f"{name(row, 'topic')} out of {name(row, 'client_rack')}: their keys choose the "
                "partition, or partitioner.rack.aware is not set"
            ),
        ),
        Wording(
            "move_leaders",
            "A topic has replicas in the rack of its producers, and no leader.",
            ("topic", "client_rack"),
            lambda row: (
                f"move leaders of {name(row, 'topic')} to {name(row, 'client_rack')}, which has "
                "replicas and producers"
            ),
        ),
    )
)
"""Codes of producer_rack_advice.advice."""
