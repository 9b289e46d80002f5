"""Which changes of configs can cause what a client suffers from."""

from quotaflow.udfs.rules.config_change import can_cause

from ...cases import cases

THROTTLE = "leader.replication.throttled.rate"
BETWEEN_DIRS = "replica.alter.log.dirs.io.max.bytes.per.second"


@cases(
    ("config_key", "cause", "api", "expected"),
    ("a quota that throttles", "producer_byte_rate", "quota", "PRODUCE", True),
    ("a quota of reads, for writes", "consumer_byte_rate", "own_load", "PRODUCE", False),
    ("a quota that lets it send more", "producer_byte_rate", "own_load", "PRODUCE", True),
    ("a quota of its own, for others' load", "producer_byte_rate", "busy_broker", "PRODUCE", False),
    ("threads", "num.io.threads", "busy_broker", "FETCH", True),
    ("where replicas go", "cordoned.log.dirs", "lost_sequence", "PRODUCE", False),
    ("what forgets producers", "producer.id.expiration.ms", "unknown_producer", "PRODUCE", True),
    ("a right", "super.users", "not_authorized", "FETCH", True),
    ("no right", "retention.ms", "not_authorized", "FETCH", False),
    ("what deletes records", "retention.ms", "out_of_range", "FETCH", True),
    ("what deletes no record", "compression.type", "out_of_range", "FETCH", False),
    ("fetchers", "num.replica.fetchers", "slow_follower", "PRODUCE", True),
    ("a throttle of replicas", THROTTLE, "slow_follower", "PRODUCE", False),
    ("a throttle between disks", BETWEEN_DIRS, "slow_replicas", "PRODUCE", False),
    ("the same, of what shrinks an ISR", BETWEEN_DIRS, "not_enough_replicas", "PRODUCE", False),
    ("a throttle that keeps them out of sync", THROTTLE, "not_enough_replicas", "PRODUCE", True),
    ("a throttle beside a move of leaders", THROTTLE, "leader_changes", "FETCH", False),
    ("an error without a cause", "compression.type", "other_errors", "PRODUCE", False),
)
def test_a_change_is_shown_where_it_can_be_the_cause(
    config_key: str, cause: str, api: str, expected: bool
) -> None:
    assert can_cause(config_key, cause, api) is expected
