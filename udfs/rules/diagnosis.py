"""Why a client waits for brokers or gets errors: causes, each with the share that it explains.

The wait of a client is a budget: the times of Kafka's request metrics, whose sum is the whole. Of
each part counts what is above its normal: the lower one of the client's usual and of what its peers
have in the same minutes. The evidence says which cause a part has. What is normal, and what no
evidence explains, is not explained. Nor is a part that only a few requests made long.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from quotaflow.udfs.rules.ramp import ramp

FAILING = "failing"
"""The symptom of a client that gets errors; the other one is slow: it waits too long."""
NOT_EXPLAINED = "not_explained"

PARTS = ("throttle", "request_queue", "local", "replicas", "response_queue", "send")
"""Of a wait; only PRODUCE waits for replicas."""

LEAST_SHARE = 0.1
"""A part that explains less of the wait is no cause of it."""
LEAST_PART_MS = 5
"""Histograms of parts count requests from this time on."""
_FEW, _FEW_SHARE = 5, 0.1
"""Fewer long requests, or fewer of all, make no client slow, and no part of its wait a cause."""
_LEAST_ERRORS = 0.05
"""What an error means is known also of few."""
BUSY = 0.05
"""Of one handler thread. Requests that wait for threads with less to do wait for something else."""
_MOST = 0.95
_OF_BROKER = ("broker_id", "broker_clients", "broker_requests", "broker_waited_ms")
"""Signals of a cause that lies in a broker: it may be that of its other clients too."""

_ERRORS: Mapping[str, tuple[int, ...]] = {
    "not_authorized": (29, 30, 31, 53, 58),
    "unknown_topic": (3, 100, 17),
    "too_large": (10, 18),
    "not_enough_replicas": (19, 20),
    "leader_changes": (5, 6, 9, 41, 72, 74, 75),
    "coordinator_changes": (14, 15, 16),
    "timed_out": (7,),
    "fenced": (47, 82, 90),
    "left_group": (22, 25, 113),
    "lost_sequence": (45,),
    "unknown_producer": (49, 59),
    "transaction_state": (48, 120),
    "invalid_records": (2, 32, 43, 76, 87),
    "unsupported": (33, 35, 42, 112),
    "outside_limits": (21, 26, 37, 38, 40, 50, 81),
    "storage_error": (56, 57),
    "server_error": (-1,),
    "out_of_range": (1,),
    "refused_by_quota": (89, 44),
}
_OUT_OF_RANGE = 1
_CAUSES = {code: cause for cause, codes in _ERRORS.items() for code in codes}
OTHER_ERRORS = "other_errors"
MISSING_AT_REPLICA = "missing_at_replica"
"""A replica refuses an offset that the leader has: the client asks for what exists."""
_LEAST_MISSING = 3
"""A follower is some milliseconds behind its leader, so it refuses an offset or two in normal work
(KIP-392)."""
CAUSES = (
    *("quota", "noisy_neighbour", "own_load", "busy_broker", "stalled_broker", "slow_broker"),
    *("large_requests", "slow_appends", "slow_follower", "slow_replicas", "busy_network"),
    *("slow_reader", *_ERRORS, MISSING_AT_REPLICA, OTHER_ERRORS, NOT_EXPLAINED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffering:
    """What tables show of a client, an API and a time. None: not known.

    Times are means of a request, in ms. A name that begins with usual is of the client's calm
    minutes; with peers, of the half of the clients with the shortest waits in the same minutes.
    """

    symptom: str
    api: str
    requests: int
    waited_ms: float | None = None
    throttle_ms: float | None = None
    request_queue_ms: float | None = None
    local_ms: float | None = None
    replicas_ms: float | None = None
    response_queue_ms: float | None = None
    send_ms: float | None = None
    outside_ms: float | None = None
    """Beyond the broker, as the client measured it."""
    request_bytes: float | None = None
    usual_ms: float | None = None
    usual_request_queue_ms: float | None = None
    usual_local_ms: float | None = None
    usual_replicas_ms: float | None = None
    usual_response_queue_ms: float | None = None
    usual_send_ms: float | None = None
    usual_request_bytes: float | None = None
    peers_ms: float | None = None
    peers_request_queue_ms: float | None = None
    peers_local_ms: float | None = None
    peers_replicas_ms: float | None = None
    peers_response_queue_ms: float | None = None
    peers_send_ms: float | None = None
    broker_id: int | None = None
    """The broker that it waited for most."""
    broker_requests: int | None = None
    """Its requests of this API to that broker whose line has a time."""
    broker_waited_ms: float | None = None
    """What these waited on average."""
    throttled_requests: int | None = None
    throttled_by: str | None = None
    quota: float | None = None
    clients_of_quota: int | None = None
    handlers_busy: float | None = None
    """Part of the time in which requests of clients kept one handler thread of that broker busy."""
    broker_clients: int | None = None
    """Clients that sent requests of this API to that broker."""
    own_share: float | None = None
    """Part of that broker's time for requests that this client took."""
    neighbour_share: float | None = None
    """The same of the client that took most beside it."""
    neighbour: str | None = None
    others_local_ms: float | None = None
    """What the same API took of that broker for other clients: the median of their means."""
    broker_usual_local_ms: float | None = None
    follower_id: int | None = None
    """The follower that was farthest behind in a topic of the client, of those that do not move."""
    follower_lag: int | None = None
    refused_answers: int | None = None
    """Answers for an offset that a replica does not have."""
    missing_answers: int | None = None
    """Those of them for an offset that the leader has."""
    missing_broker: int | None = None
    """The broker that gave most of these."""
    failed_requests: int | None = None
    timed_requests: int | None = None
    """Requests whose line has a time."""
    errors: tuple[tuple[int, str, int], ...] = ()
    """Error codes of Kafka with their names, each with the number of requests."""
    long_parts: tuple[tuple[str, int, int], ...] | None = None
    """Parts with buckets and numbers of requests, as request_times.part_histograms has them."""


@dataclass(frozen=True, slots=True)
class ClientCause:
    """A cause. `share`: the part of the symptom it explains. `signals`: fields of the evidence."""

    name: str
    share: float
    confidence: float | None
    signals: tuple[str, ...] = ()
    detail: str | None = None


def causes(suffering: Suffering) -> list[ClientCause]:
    """The causes, that with the greatest share first; their shares add up to 1."""
    of_symptom = _of_errors if suffering.symptom == FAILING else _of_wait
    likely = sorted(of_symptom(suffering), key=lambda cause: (-cause.share, cause.name))
    rest = 1 - sum(cause.share for cause in likely)
    if rest < 0.005:  # noqa: PLR2004  less shows as 0 %
        return likely
    return [*likely, ClientCause(NOT_EXPLAINED, rest, None, ("waited_ms", "usual_ms"))]


def budget(s: Suffering) -> Iterator[tuple[str, float | None]]:
    """The parts of the wait, in ms, and what the client measured beyond the broker."""
    parts = [(part, getattr(s, f"{part}_ms")) for part in PARTS]
    yield from parts
    if s.waited_ms is not None:
        yield "unknown", max(0.0, s.waited_ms - sum(ms or 0.0 for _, ms in parts))
    yield "outside", s.outside_ms


def _of_wait(s: Suffering) -> Iterator[ClientCause]:
    for part in PARTS:
        above_ms = excess(s, part)
        if s.waited_ms and above_ms - _of_few(s, part) >= LEAST_SHARE * s.waited_ms:
            yield _OF_PART[part](s, above_ms / s.waited_ms)


def excess(s: Suffering, part: str) -> float:
    """What a part has above its normal, in ms; a throttle is never normal."""
    ms: float = getattr(s, f"{part}_ms") or 0.0
    if part == "throttle":
        return ms
    normals = [getattr(s, f"{norm}_{part}_ms") for norm in ("usual", "peers")]
    measured = [normal for normal in normals if normal is not None]
    return max(0.0, ms - min(measured)) if measured else 0.0


def _of_few(s: Suffering, part: str) -> float:
    """What few requests add to the mean of a part, in ms, by being longer than all others."""
    if s.long_parts is None or not s.timed_requests:
        return 0.0
    few = max(_FEW, _FEW_SHARE * s.timed_requests)
    buckets = sorted((bucket[1:] for bucket in s.long_parts if bucket[0] == part), reverse=True)
    levels = [(2 ** ((bucket + 0.5) / 8), requests) for bucket, requests in buckets]
    longer, sum_ms = 0, 0.0
    for (ms, requests), (next_ms, _) in pairwise([*levels, (LEAST_PART_MS, 0)]):
        longer += requests
        if longer >= few:
            break
        sum_ms += longer * (ms - next_ms)
    return sum_ms / s.timed_requests


def _quota(s: Suffering, share: float) -> ClientCause:
    signals = ("throttle_ms", "throttled_requests", "requests", "quota", "clients_of_quota")
    return ClientCause("quota", share, _MOST if s.throttled_by else 0.7, signals, s.throttled_by)


def _queue(s: Suffering, share: float) -> ClientCause:
    """Requests wait for a handler thread: who keeps the threads busy?"""
    signals = ("request_queue_ms", "neighbour_share", "own_share", *_OF_BROKER)
    if s.handlers_busy is not None and s.handlers_busy < BUSY:
        idle = ("request_queue_ms", "handlers_busy", *_OF_BROKER)
        return ClientCause("stalled_broker", share, 0.5, idle, _broker(s))
    own, neighbour = s.own_share or 0.0, s.neighbour_share or 0.0
    if neighbour >= 0.5 > own:  # noqa: PLR2004  most of it
        sure = round(0.5 + 0.4 * ramp(neighbour, 0.5, 0.8), 2)
        return ClientCause("noisy_neighbour", share, sure, signals, s.neighbour)
    if own >= 0.5:  # noqa: PLR2004
        return ClientCause("own_load", share, round(0.5 + 0.4 * ramp(own, 0.5, 0.8), 2), signals)
    return ClientCause("busy_broker", share, 0.5, signals, _broker(s))


def _local(s: Suffering, share: float) -> ClientCause:
    signals = ("local_ms", "usual_local_ms", "peers_local_ms", "others_local_ms", *_OF_BROKER)
    if s.others_local_ms is not None and s.broker_usual_local_ms:
        slower = s.others_local_ms / s.broker_usual_local_ms
        if slower >= 2:  # noqa: PLR2004  all clients of the broker
            sure = round(0.6 + 0.3 * ramp(slower, 2, 5), 2)
            return ClientCause(
                "slow_broker", share, sure, (*signals, "broker_usual_local_ms"), _broker(s)
            )
    if s.request_bytes and s.usual_request_bytes:
        larger = s.request_bytes / s.usual_request_bytes
        usual_ms = s.usual_local_ms if s.usual_local_ms is not None else s.local_ms
        if larger >= 2 and (s.local_ms or 0.0) <= 5 * larger * (usual_ms or 0.0):  # noqa: PLR2004
            sizes = ("request_bytes", "usual_request_bytes")
            sure = round(0.5 + 0.3 * ramp(larger, 2, 5), 2)
            return ClientCause("large_requests", share, sure, (*signals, *sizes))
    return ClientCause("slow_appends", share, 0.4, signals, _broker(s))


def _replicas(s: Suffering, share: float) -> ClientCause:
    signals = ("replicas_ms", "usual_replicas_ms", "peers_replicas_ms")
    if s.follower_id is None:
        return ClientCause("slow_replicas", share, 0.5, signals)
    followers = (*signals, "follower_id", "follower_lag")
    return ClientCause("slow_follower", share, 0.7, followers, str(s.follower_id))


def _response_queue(s: Suffering, share: float) -> ClientCause:
    normals = ("usual_response_queue_ms", "peers_response_queue_ms")
    signals = ("response_queue_ms", *normals, *_OF_BROKER)
    return ClientCause("busy_network", share, 0.6, signals, _broker(s))


def _send(s: Suffering, share: float) -> ClientCause:
    signals = ("send_ms", "usual_send_ms", "peers_send_ms", "request_bytes")
    return ClientCause("slow_reader", share, 0.6 if s.peers_send_ms is None else 0.75, signals)


_OF_PART = {
    "throttle": _quota,
    "request_queue": _queue,
    "local": _local,
    "replicas": _replicas,
    "response_queue": _response_queue,
    "send": _send,
}


def _of_errors(s: Suffering) -> Iterator[ClientCause]:
    """One cause for the errors of each kind; a request may have several errors."""
    total = sum(requests for *_, requests in s.errors)
    counts: dict[str, float] = {}
    most: dict[str, tuple[float, str]] = {}
    for cause, error, requests in _kinds(s):
        counts[cause] = counts.get(cause, 0) + requests
        most[cause] = max(most.get(cause, (0, "")), (requests, error))
    for cause, requests in counts.items():
        share = requests / total
        if share >= _LEAST_ERRORS:
            sure = 0.5 if cause == OTHER_ERRORS else 0.9
            yield ClientCause(cause, share, sure, _signals(cause), most[cause][1])


def _signals(cause: str) -> tuple[str, ...]:
    of_replica = ("refused_answers", "missing_answers", "missing_broker")
    return ("failed_requests", "requests", *(of_replica if cause == MISSING_AT_REPLICA else ()))


def _kinds(s: Suffering) -> Iterator[tuple[str, str, float]]:
    """The cause of each error, with its name and requests."""
    for code, error, requests in s.errors:
        cause = _CAUSES.get(code, OTHER_ERRORS)
        missing = 0.0
        answers = s.missing_answers or 0
        if code == _OUT_OF_RANGE and s.refused_answers:
            missing = requests * answers / s.refused_answers
            # Fewer have no cause: these offsets exist.
            if answers >= _LEAST_MISSING:
                yield MISSING_AT_REPLICA, error, missing
        if requests > missing:
            yield cause, error, requests - missing


def _broker(s: Suffering) -> str | None:
    return None if s.broker_id is None else str(s.broker_id)
