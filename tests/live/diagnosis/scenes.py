"""The table of what is planted: who does what in which act, and what has to be said of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from quotaflow.demo import traffic_configs
from quotaflow.demo.credentials import CLIENTS

from ..quiet_clients import send
from . import faults
from .clients import (
    CALM_BYTES,
    READ_BYTES,
    Work,
    bursts,
    creates_topics,
    describes_missing,
    fences_itself,
    fetches,
    fetches_missing,
    floods,
    reads,
    reads_past_the_end,
    writes,
)
from .stage import ADMIN, Stage

WELL = "well"
DENIED = "not-authorized"
ERRORS, FOLLOWERS, PAUSE, LEADER, NEIGHBOUR = "errors", "followers", "pause", "leader", "neighbour"
APPENDS, READS = "appends", "reads"
ACTS: Mapping[str, tuple[float, Callable[[Stage], None]]] = {
    ERRORS: (14, faults.of_errors),
    FOLLOWERS: (14, faults.of_followers),
    PAUSE: (12, faults.of_a_pause),
    LEADER: (10, faults.of_a_leader_pause),
    NEIGHBOUR: (12, lambda _stage: None),
    APPENDS: (10, faults.of_appends),
    READS: (14, lambda _stage: None),
}
"""Seconds of each act, and what goes wrong beside its clients."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A client; its name is its client id, its principal and its topic."""

    name: str
    act: str
    work: Work
    symptom: str = WELL
    cause: str = WELL
    user: str = ""
    """Whose login it has instead of one of its own."""
    calm: Work | None = None
    """What it does in minutes in which nothing is wrong."""
    quota: tuple[str, float] | None = None
    replicas: str = "home"
    configs: Mapping[str, str] | None = None
    """Of its topic."""
    detail: str = ""
    """Which quota, client or error; a role is its broker's id."""
    also: str = ""
    """A cause of waits that may be named too."""
    changed: str = ""
    """The config that was altered right before."""

    @property
    def is_seen(self) -> bool:
        """Whether the log's tables show it at all."""
        return self.cause != WELL and self.name not in NOT_SEEN

    @property
    def principal(self) -> str:
        """The login's name."""
        return self.user or self.name


WRITTEN, READ, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS = "controller_mutation_rate"
BOTH = "home,other"
SHARED, SHARED_RATE = "shared-quota", (WRITTEN, 20_000)
_SLOW_WAY = ("slow", "slow_reader")
_SMALL = {"max.message.bytes": "1000"}
_TINY = writes(300, 50, batch_num_messages=1, acks=1)
_CALM = writes(10, 2_000, acks="all")
_PATIENT = writes(4, 40_000, acks="all", batch_size=50_000)
_IMPATIENT = writes(10, 2_000, acks="all", request_timeout_ms=500)
_SHORT = writes(5, acks="all", request_timeout_ms=1_000, retry_backoff_max_ms=200)
_LARGE = writes(3, 5_000_000, acks=1, message_max_bytes=6_000_000)
_HUGE = {"acks": 1, "linger_ms": 900, "batch_size": 16 << 20, "message_max_bytes": 20 << 20}
_HUGE |= {"batch_num_messages": 1_000_000, "queue_buffering_max_messages": 1_000_000}
_WIDE, _GZIP = {"max.message.bytes": str(32 << 20)}, {"compression.type": "gzip"}
_UNSAFE: Any = {"replicas": BOTH, "also": "slow_replicas"}
_RECOMPRESSED: Any = {
    "calm": _LARGE,
    "configs": _WIDE,
    "changed": "topic recompression: compression.type",
}

SCENES = (
    # Quotas and errors.
    Scene("quota-of-writes", ERRORS, writes(20, 3_000), "slow", "quota", quota=(WRITTEN, 20_000)),
    Scene("wide-quota-of-writes", ERRORS, writes(20, 3_000), quota=(WRITTEN, 2_000_000)),
    Scene("quota-of-reads", ERRORS, reads, "slow", "quota", quota=(READ, 50_000)),
    Scene("quota-of-request-time", ERRORS, _TINY, "slow", "quota", quota=(TIME, 1)),
    Scene("tiny-batches", ERRORS, _TINY),
    Scene("shared-heavy", ERRORS, writes(20, 3_000), "slow", "quota", SHARED, quota=SHARED_RATE),
    Scene("shared-light", ERRORS, writes(4, 500), "slow", "quota", SHARED),
    Scene(
        *("quota-of-mutations", ERRORS, creates_topics, "failing", "refused_by_quota", "carol"),
        quota=(MUTATIONS, 0.5),
    ),
    Scene("leader-changes", ERRORS, writes(10), "failing", "leader_changes", replicas=BOTH),
    Scene("oversized-records", ERRORS, writes(3, 5_000), "failing", "too_large", configs=_SMALL),
    Scene("not-authorized", ERRORS, writes(3), "failing", "not_authorized"),
    Scene("metadata-of-no-topic", ERRORS, describes_missing, "failing", "unknown_topic"),
    Scene("fetch-of-no-topic", ERRORS, fetches_missing, "failing", "unknown_topic", "dave"),
    Scene("out-of-range", ERRORS, reads_past_the_end, "failing", "out_of_range", "erin"),
    Scene("fenced-producer", ERRORS, fences_itself, "failing", "fenced"),
    # Followers, and a broker that pauses.
    Scene("throttled-in-sync", FOLLOWERS, _PATIENT, calm=_PATIENT, replicas=BOTH),
    Scene("move-under-a-throttle", FOLLOWERS, _PATIENT, calm=_PATIENT),
    # One pause delays a request or two of a client, which is no symptom.
    Scene("paused-follower", PAUSE, _PATIENT, calm=_PATIENT, replicas=BOTH),
    Scene("paused-beside-a-move", PAUSE, _PATIENT, calm=_PATIENT, replicas=BOTH),
    Scene("min-insync-replicas", PAUSE, _SHORT, "failing", "not_enough_replicas", **_UNSAFE),
    Scene("request-timeout", PAUSE, _IMPATIENT, "failing", "timed_out", replicas=BOTH),
    Scene("one-ack", PAUSE, writes(10, acks=1), calm=writes(10, acks=1), replicas=BOTH),
    Scene("no-follower", PAUSE, _CALM, calm=_CALM),
    Scene("paused-leader", LEADER, _CALM, calm=_CALM, replicas="away", also="stalled_broker"),
    # A busy broker.
    Scene("flood", NEIGHBOUR, floods(6, 900_000), "slow", "own_load", calm=_CALM, configs=_GZIP),
    Scene(
        "beside-a-flood", NEIGHBOUR, _CALM, "slow", "noisy_neighbour", calm=_CALM, detail="flood"
    ),
    Scene("far-from-a-flood", NEIGHBOUR, _CALM, calm=_CALM, replicas="other"),
    Scene("recompression", APPENDS, _LARGE, "slow", "slow_appends", **_RECOMPRESSED),
    Scene(
        *("huge-batches", APPENDS, bursts(400_000, **_HUGE), "slow", "large_requests"),
        **{"calm": writes(10, **_HUGE), "replicas": "away", "configs": _WIDE},
    ),
    # Slow ways.
    Scene("slow-reader", READS, fetches(READ_BYTES, bytes_per_s=4e5), *_SLOW_WAY, "frank"),
    Scene("slow-network", READS, fetches(READ_BYTES, link_bytes_per_s=4e5), *_SLOW_WAY, "grace"),
    Scene("distant-client", READS, fetches(CALM_BYTES, link_delay_s=0.3), user="heidi"),
    Scene("quick-reader", READS, fetches(READ_BYTES), user="ivan"),
)
NOT_SEEN = {"quota-of-mutations"}
"""Errors of parts of an answer that quotaflow does not read: nothing is named."""

READ_TOPICS = {"quota-of-reads", "slow-reader", "slow-network", "distant-client", "quick-reader"}


def set_up(stage: Stage, scenes: Sequence[Scene] = SCENES) -> None:
    """Logins, topics with what is read of them, quotas and rights."""
    roles = vars(stage.roles)
    own = {scene.principal for scene in scenes} - set(CLIENTS)
    stage.add_users(sorted(own))
    topics = {
        scene.name: {
            "assignments": {0: [roles[role] for role in scene.replicas.split(",")]},
            "configs": dict(scene.configs or {}),
        }
        for scene in scenes
    }
    deny = ACLPermissionType.DENY
    pattern = ResourcePattern(ResourceType.TOPIC, DENIED, ACLResourcePatternType.LITERAL)
    with stage.cluster.admin(client_id=ADMIN) as admin, stage.acts.act():
        admin.create_topics(topics, wait_for_metadata=True)
        for user, key, value in [(s.principal, *s.quota) for s in scenes if s.quota]:
            assert traffic_configs.set_quota(user, key, value)(admin).error_code == 0
        everybody = ACL("User:*", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, pattern)
        admin.create_acls(
            [everybody, ACL(f"User:{DENIED}", "*", ACLOperation.WRITE, deny, pattern)]
        )
    for topic in (scene.name for scene in scenes if scene.name in READ_TOPICS):
        send(stage.cluster, topic, [bytes(10_000)] * 400, batch_num_messages=1)
    warm = [partial(s.calm or s.work, stage, s.principal, s.name) for s in scenes if s.calm]
    stage.warm_up(warm)


def play(
    stage: Stage, snapshot: Callable[[datetime], None], scenes: Sequence[Scene] = SCENES
) -> None:
    """All acts, and a snapshot before anything goes wrong; what brokers logged then is in LOG."""
    set_up(stage, scenes)
    snapshot(datetime.fromtimestamp(stage.acts.past[0].minute_ms / 1_000, UTC))
    stage.calm(
        partial(scene.calm, stage, scene.principal, scene.name) for scene in scenes if scene.calm
    )
    for act, (seconds, fault) in ACTS.items():
        clients = [partial(s.work, stage, s.principal, s.name) for s in scenes if s.act == act]
        if clients:
            stage.play(seconds, clients, fault)
    stage.ship(scene.name for scene in scenes)
