"""What client-metrics resources give a client (KIP-714), as Kafka's ClientMetricsManager does."""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka.record.util import calc_crc32c

ALL = "*"
DEFAULT_INTERVAL_MS = 300_000
"""INTERVAL_MS_DEFAULT of Kafka's ClientMetricsConfigs: what nobody asked is told, and the most."""
_INTERVALS_MS = range(100, 3_600_001)


@dataclass(frozen=True, slots=True)
class Client:
    """What a broker knows of a client instance, and a `match` may name; None is no match at all."""

    client_instance_id: str | None
    client_id: str | None = None
    client_software_name: str | None = None
    client_software_version: str | None = None
    client_source_address: str | None = None
    client_source_port: int | None = None


MATCH_KEYS = tuple(Client.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Subscription:
    """One client-metrics resource: which metrics (prefixes; * is all), how often, and of whom."""

    name: str
    metrics: tuple[str, ...] = ()
    interval_ms: int = DEFAULT_INTERVAL_MS
    match: Mapping[str, "re.Pattern[str]"] = field(default_factory=dict)

    @classmethod
    def from_configs(cls, name: str, configs: Mapping[str, str]) -> "Subscription":
        """A resource by its configs as Kafka shows them: metrics, interval.ms, match.

        Raises ValueError for what a broker refuses (ClientMetricsConfigs.validateProperties), and
        for a pattern that Java takes and Python does not.
        """
        text = configs.get("interval.ms", str(DEFAULT_INTERVAL_MS))
        if not text.isdecimal() or int(text) not in _INTERVALS_MS:
            raise ValueError(
                f"Invalid value {text} for interval.ms, interval must be between 100 and 3600000"
            )
        match = dict(_pattern(part) for part in _parts(configs.get("match", "")))
        return cls(name, tuple(_parts(configs.get("metrics", ""))), int(text), match)


def matches(subscription: Subscription, client: Client) -> bool:
    """Every pattern of the subscription matches the whole of what it names; none match everybody.

    ClientMetricsInstanceMetadata.isMatch.
    """
    return all(
        value is not None and pattern.fullmatch(str(value))
        for key, pattern in subscription.match.items()
        for value in [getattr(client, key)]
    )


def effective(subscriptions: Iterable[Subscription], client: Client) -> tuple[frozenset[str], int]:
    """The metrics and the interval in ms a client is asked for by all that match it.

    Metrics are united, * stands for all; the interval is the least of them and of the default, so
    that a longer one never takes effect (ClientMetricsManager.createClientInstance).
    """
    matching = [s for s in subscriptions if matches(s, client)]
    metrics = frozenset(name for s in matching for name in s.metrics)
    interval_ms = min((s.interval_ms for s in matching), default=DEFAULT_INTERVAL_MS)
    united = frozenset({ALL}) if ALL in metrics else metrics
    return united, min(interval_ms, DEFAULT_INTERVAL_MS)


def covered(metrics: Iterable[str]) -> dict[str, str]:
    """Prefixes that ask for nothing of their own, and the shorter one that asks for it all.

    librdkafka 2.5.0 to 2.10.0 sends what both match twice (its #5103).
    """
    asked = sorted(set(metrics))
    shorter = {
        name: next((other for other in asked if other != name and _begins(name, other)), None)
        for name in asked
    }
    return {name: other for name, other in shorter.items() if other is not None}


def _begins(name: str, prefix: str) -> bool:
    return prefix == ALL or name.startswith(prefix)


def _parts(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pattern(part: str) -> tuple[str, "re.Pattern[str]"]:
    # Java's split, unlike Python's, leaves out what is empty at the end.
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

    Kafka's `ClientMetricsManager.computeSubscriptionId`: the KIP says CRC32, and leaves the
    interval out in one place. The metrics are a set there, so their order matters and is the
    answer's. None when the instance id is not a Uuid as Kafka prints one.
    """
    try:
        uuid = base64.b64decode(client_instance_id + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(uuid) != _UUID_BYTES:
        return None
    halves = int.from_bytes(uuid[:8]) ^ int.from_bytes(uuid[8:])
    asked = f"[{', '.join(requested_metrics)}]{push_interval_ms}"
    unsigned: int = calc_crc32c(asked.encode()) ^ (halves >> 32) ^ (halves & _WORD)
    return unsigned - (_WORD + 1) if unsigned & _SIGN else unsigned
