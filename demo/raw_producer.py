"""A connection that does one thing of a producer: request a producer id.

No library makes producers as fast, or from a chosen address.
"""

import struct
import time

from quotaflow.demo.raw_connection import RawConnection, string
from quotaflow.pipelines.errors import KafkaError

_INIT_PRODUCER_ID, _VERSION = 22, 1
_TIMEOUT_S = 30.0
_RETRY_S = 0.1
_TRANSACTION_TIMEOUT_MS = 60_000
_NOT_COORDINATOR = 16
# Coordinator loading, not available; a transaction of the id is being ended.
_TRY_AGAIN = frozenset({14, 15, 51})


class RawProducer(RawConnection):
    """One login with SASL PLAIN at one broker; `init` can be called again and again."""

    def init(self, transactional_id: str | None = None) -> int | None:
        """The new producer id; None if another broker coordinates the transactional id."""
        deadline_s = time.monotonic() + _TIMEOUT_S
        body = string(transactional_id) + struct.pack(">i", _TRANSACTION_TIMEOUT_MS)
        while True:
            response = self.call(_INIT_PRODUCER_ID, _VERSION, body)
            _throttle_ms, error, producer_id = struct.unpack(">ihq", response[:14])
            if error == 0:
                return int(producer_id)
            if error == _NOT_COORDINATOR:
                return None
            if error not in _TRY_AGAIN or time.monotonic() > deadline_s:
                raise KafkaError(f"{self.client_id}: no producer id, error {error}")
            time.sleep(_RETRY_S)
