"""Why a consumer should read from which replica (KIP-392): the reasons, by name.

`pipelines/results/shared/macros.sql` decides.
"""

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The one replica.selector.class that Kafka ships."""

NO_SELECTOR = "no_selector"
"""The broker has no replica.selector.class, the default: everybody reads from the leader."""
SELECTOR_UNKNOWN = "selector_unknown"
"""The broker's replica.selector.class is none of Kafka's: it may name any replica."""
NO_CLIENT_RACK = "no_client_rack"
"""The consumer declares no client.rack."""
LEADER_IN_RACK = "leader_in_rack"
FOLLOWER_IN_RACK = "follower_in_rack"
NO_REPLICA_IN_RACK = "no_replica_in_rack"
NOT_ELIGIBLE_IN_RACK = "not_eligible_in_rack"
"""Replicas in the rack are out of sync, offline, or do not hold the offset."""
