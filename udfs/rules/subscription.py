"""The id a broker gives a telemetry subscription (KIP-714)."""

import base64
import binascii
from collections.abc import Sequence

from kafka.record.util import calc_crc32c

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
