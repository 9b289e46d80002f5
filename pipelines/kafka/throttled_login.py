"""Waits while brokers throttle this login, where kafka-python fails the request.

A broker that throttles answers at once and then reads nothing from the connection for a while
(KIP-219). kafka-python (3.0) knows that from the answer, pauses the connection, and fails the next
request with NodeNotReadyError, as if the broker were away. That request was never sent, so to send
it later is safe.
"""

import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient
from kafka import errors as kafka_errors

MAX_WAIT_S = 60.0
"""A request waits so long at most. A broker throttles for one window of its quotas at most
(`quota.window.size.seconds`, 1 by default), so this is enough for windows sixty times as long, and
a run that changes a hundred entities still ends."""

_LEAST_WAIT_S = 0.02
_THROTTLED = "throttle"


def wait_while_throttled(
    client: KafkaAdminClient, clock: Callable[[], float] = time.monotonic
) -> None:
    """Let all requests of an admin client wait until its connection is no longer throttled.

    A request that would wait for more than MAX_WAIT_S in all fails as before.
    """
    manager: Any = getattr(client, "_manager", None)
    # Another release of kafka-python may have other private names. Requests then do not wait.
    if not all(hasattr(manager, name) for name in ("send", "_conns", "_net")):
        return
    send_at_once = manager.send

    async def send(
        request: Any, node_id: int | None = None, request_timeout_ms: float | None = None
    ) -> Any:
        end = clock() + MAX_WAIT_S
        while True:
            try:
                return await send_at_once(request, node_id, request_timeout_ms)
            except kafka_errors.NodeNotReadyError:
                wait_s = throttled_for_s(manager, node_id, clock())
                if wait_s is None or clock() + wait_s > end:
                    raise
            await manager._net.sleep(wait_s)

    manager.send = send


def throttled_for_s(manager: Any, node_id: int | None, now: float) -> float | None:
    """How long to wait for this broker, or for the first of any; None if none is throttled."""
    connections = [manager._conns.get(node_id)] if node_id is not None else manager._conns.values()
    ends = [each._throttle_time for each in connections if each and _THROTTLED in each.paused]
    return max(min(ends) - now, _LEAST_WAIT_S) if ends else None
