"""A client-metrics resource that exists only within a block, and is deleted however it ends."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import client_metrics
from quotaflow.udfs.rules.lease import TemporarySubscription

_SEEN_WITHIN_S = 10.0
_TRIES = 3
_PAUSE_S = 0.5


@contextmanager
def open_subscription(
    properties: Mapping[str, str],
    lease: TemporarySubscription,
    delete_command: str,
    report: Callable[[str], None],
) -> Iterator[None]:
    """Write the resource, read it back, and delete it at the end, also after an error.

    Enter it under interrupts.noted. If it cannot be deleted, `report` gets the reason and
    `delete_command`, and KafkaError is raised. Raises KafkaError too if the cluster refuses the
    resource.
    """
    problem = None
    try:
        client_metrics.write(properties, lease.name, lease.configs)
        _await(properties, lease)
        yield
    finally:
        # Also if writing failed: a request without an answer may have been carried out.
        problem = _delete(properties, lease.name)
        if problem is not None:
            report(
                f"client-metrics {lease.name} may be left over ({problem}); "
                f"remove it: {delete_command}"
            )
    if problem is not None:
        raise KafkaError(f"client-metrics {lease.name} was not deleted")


def _await(properties: Mapping[str, str], lease: TemporarySubscription) -> None:
    deadline_s = time.monotonic() + _SEEN_WITHIN_S
    while (seen := client_metrics.read(properties).get(lease.name)) != lease.configs:
        if time.monotonic() > deadline_s:
            raise KafkaError(f"client-metrics {lease.name} was written, and reads {seen}")
        time.sleep(_PAUSE_S)


def _delete(properties: Mapping[str, str], name: str) -> str | None:
    """Why it could not be deleted, after some tries; None when it is."""
    problem = ""
    for _ in range(_TRIES):
        try:
            client_metrics.delete(properties, name)
        except KafkaError as error:
            problem = str(error)
            time.sleep(_PAUSE_S)
        else:
            return None
    return problem
