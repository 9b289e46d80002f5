"""Which changes of configs can cause a symptom of a client: a change beside the point misleads."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

_THROTTLED = "*.replication.throttled.*"
"""Of replicas that are not in sync: who waits for replicas in sync does not wait for these."""
_BETWEEN_DIRS = "replica.alter.log.dirs.*"
"""Of copies between two disks of one broker (KIP-113): no follower and no client waits for them."""
_OWN_QUOTA = {
    "PRODUCE": ("producer_byte_rate", "request_percentage"),
    "FETCH": ("consumer_byte_rate", "request_percentage"),
    "SHARE_FETCH": ("consumer_byte_rate", "request_percentage"),
}
_THREADS = ("num.io.threads", "queued.max.*", "compression.*", "message.downconversion.enable")
_APPENDS = (
    *("compression.*", "message.*", "log.message.*", "flush.*", "log.flush.*"),
    *("segment.*", "log.segment.*", "index.*", "log.index.*", "remote.*", "num.io.threads"),
)
_REPLICAS = ("*replica.*", "num.replica.*", "min.insync.replicas")
_NETWORK = ("num.network.threads", "socket.*", "ssl.*", "sasl.*", "listener*", "max.connect*")
_RETENTION = (
    *("*retention*", "*cleanup.policy", "segment.*", "log.segment.*", "remote.*", "log.roll.*"),
    "unclean.leader.election.enable",
)
_SIZES = ("max.message.bytes", "message.max.bytes", "segment.bytes", "log.segment.bytes")
_RIGHTS = ("authorizer.*", "super.users", "allow.everyone*", "*principal*", "sasl.*", "ssl.*")
_IDS = ("transaction*", "producer.id.*", *_RETENTION)
_KEYS: Mapping[str, tuple[str, ...]] = {
    "quota": ("*_byte_rate", "request_percentage"),
    "noisy_neighbour": _THREADS,
    "busy_broker": _THREADS,
    "own_load": _THREADS,
    "slow_broker": _APPENDS,
    "slow_appends": _APPENDS,
    "large_requests": _SIZES,
    "slow_follower": _REPLICAS,
    "slow_replicas": _REPLICAS,
    "busy_network": _NETWORK,
    "slow_reader": ("fetch.*", *_NETWORK),
    "not_authorized": _RIGHTS,
    "unknown_topic": ("auto.create.topics.enable", "delete.topic.enable"),
    "too_large": _SIZES,
    "not_enough_replicas": (*_REPLICAS, _THROTTLED, "unclean.leader.election.enable"),
    "leader_changes": ("*leader*",),
    "coordinator_changes": ("group.*", "offsets.*", "transaction*", "share.*"),
    "timed_out": (*_REPLICAS, "request.timeout.ms", *_THREADS),
    "fenced": ("transaction*",),
    "left_group": ("group.*", "offsets.*"),
    "lost_sequence": _IDS,
    "unknown_producer": _IDS,
    "invalid_records": ("message.*", "log.message.*", "*cleanup.policy", "compression.*"),
    "outside_limits": ("transaction*", "group.*", "*policy*"),
    "refused_by_quota": ("controller_mutation_rate", "*policy*", "max.connect*"),
    "out_of_range": _RETENTION,
    "missing_at_replica": (*_RETENTION, *_REPLICAS, _THROTTLED),
    "not_explained": (*_APPENDS, *_THREADS, *_REPLICAS, *_NETWORK, *_SIZES),
}
"""By cause of client_diagnoses, the configs whose change can bring it; of others none can."""


def can_cause(config_key: str, cause: str, api: str) -> bool:
    """Whether a change of this config can be why a client has this cause at this API."""
    keys = _KEYS.get(cause, ())
    if cause == "own_load":
        # Who may send more, does.
        keys += _OWN_QUOTA.get(api, ())
    if fnmatchcase(config_key, _BETWEEN_DIRS):
        return False
    if _THROTTLED not in keys and fnmatchcase(config_key, _THROTTLED):
        return False
    return any(fnmatchcase(config_key, pattern) for pattern in keys)
