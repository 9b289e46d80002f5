"""What client-metrics resources give a client (KIP-714), as Kafka's ClientMetricsManager does."""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

ALL = "*"
DEFAULT_INTERVAL_MS = 300_000
"""INTERVAL_MS_DEFAULT of Kafka's ClientMetricsConfigs: the interval without a subscription, and the
longest that takes effect."""
_INTERVALS_MS = range(100, 3_600_001)


@dataclass(frozen=True, slots=True)
class Client:
    """What a broker knows of a client instance and a `match` can name; None never matches."""

    client_instance_id: str | None
    client_id: str | None = None
    client_software_name: str | None = None
    client_software_version: str | None = None
    client_source_address: str | None = None
    client_source_port: int | None = None


MATCH_KEYS = tuple(Client.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Subscription:
    """One client-metrics resource: metrics (prefixes; * is all), interval, and matching clients."""

    name: str
    metrics: tuple[str, ...] = ()
    interval_ms: int = DEFAULT_INTERVAL_MS
    match: Mapping[str, "re.Pattern[str]"] = field(default_factory=dict)

    @classmethod
    def from_configs(cls, name: str, configs: Mapping[str, str]) -> "Subscription":
        """A resource from its configs as Kafka shows them: metrics, interval.ms, match.

        Raises ValueError for a value that a broker refuses
        (ClientMetricsConfigs.validateProperties), and for a pattern that Java accepts and Python
        does not.
        """
        text = configs.get("interval.ms", str(DEFAULT_INTERVAL_MS))
        if not text.isdecimal() or int(text) not in _INTERVALS_MS:
            raise ValueError(
                f"Invalid value {text} for interval.ms, interval must be between 100 and 3600000"
            )
        match = dict(_pattern(part) for part in _parts(configs.get("match", "")))
        return cls(name, tuple(_parts(configs.get("metrics", ""))), int(text), match)


def matches(subscription: Subscription, client: Client) -> bool:
    """Whether every pattern of the subscription matches a whole value; without any it matches all.

    ClientMetricsInstanceMetadata.isMatch.
    """
    return all(
        value is not None and pattern.fullmatch(str(value))
        for key, pattern in subscription.match.items()
        for value in [getattr(client, key)]
    )


def effective(subscriptions: Iterable[Subscription], client: Client) -> tuple[frozenset[str], int]:
    """The metrics that a client should push, and the interval in ms, by all it matches.

    Metrics are united, and * means all. The interval is the shortest of theirs and of the default,
    so a longer one never takes effect (ClientMetricsManager.createClientInstance).
    """
    matching = [s for s in subscriptions if matches(s, client)]
    metrics = frozenset(name for s in matching for name in s.metrics)
    interval_ms = min((s.interval_ms for s in matching), default=DEFAULT_INTERVAL_MS)
    united = frozenset({ALL}) if ALL in metrics else metrics
    return united, min(interval_ms, DEFAULT_INTERVAL_MS)


def covered(metrics: Iterable[str]) -> dict[str, str]:
    """Prefixes that select nothing of their own, and the shorter prefix that selects it all.

    librdkafka 2.5.0 to 2.10.0 sends a metric that both match twice (its #5103).
    """
    prefixes = sorted(set(metrics))
    shorter = {
        name: next((other for other in prefixes if other != name and _begins(name, other)), None)
        for name in prefixes
    }
    return {name: other for name, other in shorter.items() if other is not None}


def _begins(name: str, prefix: str) -> bool:
    return prefix == ALL or name.startswith(prefix)


def _parts(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pattern(part: str) -> tuple[str, "re.Pattern[str]"]:
    # Java's split, unlike Python's, drops empty strings at the end.
    key, *values = (piece.strip() for piece in part.rstrip("=").split("="))
    if len(values) != 1 or key not in MATCH_KEYS:
        raise ValueError(f"Illegal client matching pattern: {part}")
    try:
        return key, re.compile(values[0])
    except re.error as error:
        raise ValueError(f"{values[0]} is no pattern that can be evaluated here: {error}") from None


_WORD, _SIGN = 0xFFFF_FFFF, 0x8000_0000
_UUID_BYTES = 16


def subscription_id(
    requested_metrics: Sequence[str], push_interval_ms: int, client_instance_id: str
) -> int | None:
    """CRC32C of the metrics as Java prints them and the interval, XOR the instance's hash code.

    Kafka's `ClientMetricsManager.computeSubscriptionId`. The KIP says CRC32, and omits the interval
    in one place. Kafka iterates a set of metrics, so pass them in the order of the answer. None if
    the instance id is not a Uuid as Kafka prints one.
    """
    try:
        uuid = base64.b64decode(client_instance_id + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(uuid) != _UUID_BYTES:
        return None
    from kafka.record.util import calc_crc32c  # noqa: PLC0415  imports all of the client

    halves = int.from_bytes(uuid[:8]) ^ int.from_bytes(uuid[8:])
    request = f"[{', '.join(requested_metrics)}]{push_interval_ms}"
    unsigned: int = calc_crc32c(request.encode()) ^ (halves >> 32) ^ (halves & _WORD)
    return unsigned - (_WORD + 1) if unsigned & _SIGN else unsigned
