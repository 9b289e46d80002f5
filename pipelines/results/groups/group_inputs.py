"""What the results about groups read."""

from quotaflow.udfs import consumer_protocols
from quotaflow.udfs.engine.rule import Walk

APIS = (
    *("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP"),
    *("CONSUMER_GROUP_HEARTBEAT", "SHARE_GROUP_HEARTBEAT", "STREAMS_GROUP_HEARTBEAT"),
    *("OFFSET_COMMIT", "TXN_OFFSET_COMMIT"),
)
RELEVANT = f"group_id IS NOT NULL AND api IN {APIS}"
"""Facts of all results about groups: by the same condition they share the parsed bodies."""


def protocols() -> Walk:
    """The relation `consumer_protocols`: bytes of the consumer protocol, read.

    `group_requests` has no word of this name. Else it would be computed again for each result.
    """
    return Walk(
        "consumer_protocols",
        consumer_protocols.SQL,
        consumer_protocols.PROTOCOLS,
        consumer_protocols.read,
    )
