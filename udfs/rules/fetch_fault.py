"""What is wrong with an answer to a consumer's fetch: bounds, and names of errors.

A broker answers OFFSET_OUT_OF_RANGE where the offset is before its log start or past its log end.
It does not say which, nor where those are. `schemas/results/fetch_faults.sql` decides.
"""

LOOP_REDIRECTS = 3
"""In a minute. A consumer that follows asks the leader again only after metadata.max.age.ms."""
SPIN_ANSWERS = 3
"""In a minute. A consumer tries once more at the leader, then resets its offset."""

ERRORS = {
    -1: "unknown_server_error",
    2: "corrupt_message",
    3: "unknown_topic_or_partition",
    5: "leader_not_available",
    6: "not_leader_or_follower",
    9: "replica_not_available",
    13: "network_exception",
    29: "topic_authorization_failed",
    56: "kafka_storage_error",
    74: "fenced_leader_epoch",
    75: "unknown_leader_epoch",
    76: "unsupported_compression_type",
    78: "offset_not_available",
    100: "unknown_topic_id",
    103: "inconsistent_topic_id",
    109: "offset_moved_to_tiered_storage",
}
"""Other errors of a partition by Kafka's names (org.apache.kafka.common.protocol.Errors)."""
