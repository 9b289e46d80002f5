"""Clients of the demo that take producer ids in bursts (KIP-936), each for another reason."""

import sys
from concurrent.futures import Future

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.raw_connection import RawProducer
from quotaflow.demo.traffic_report import RAW, ClientReport
from quotaflow.demo.traffic_stage import Stage

RESTARTS_PER_S = 2
CHECKPOINTS_PER_S, SUBTASKS = 1, 6
PODS = 24
_FIRST_POD_ADDRESS = 10
PROCESSOR_ADDRESS = "127.0.0.5"
"""Where the stream processor runs."""
_HAS_ADDRESSES = sys.platform == "linux"
"""Only Linux answers for all of 127.0.0.0/8 without setup."""


def restart_loop(
    stage: Stage, user: str, client_id: str, *, after: Future[ClientReport]
) -> ClientReport:
    """A process that dies once it has its producer id, and restarts at once."""
    after.result()
    ids = set[int | None]()
    for _ in stage.spaced(round(RESTARTS_PER_S * stage.duration_s)):
        with RawProducer(stage.cluster, user, client_id) as producer:
            ids.add(producer.init())
    return _report(user, client_id, ids)


def new_transactional_ids(
    stage: Stage, user: str, client_id: str, *, after: Future[ClientReport]
) -> ClientReport:
    """A stream processor whose sink takes a new transactional.id per checkpoint and subtask.

    It has a host of its own.
    """
    after.result()
    ids = set[int | None]()
    for checkpoint in stage.spaced(round(CHECKPOINTS_PER_S * stage.duration_s)):
        for subtask in range(SUBTASKS):
            name = f"{client_id}-{subtask}-{checkpoint}"
            ids.add(at_its_coordinator(stage.cluster, user, client_id, name))
    return _report(user, client_id, ids)


def deploy(stage: Stage, user: str, client_id: str, *, after: Future[ClientReport]) -> ClientReport:
    """A fleet that starts at once on many hosts, with one id each, which is correct.

    Its client ids are `client_id` with the number of the pod in place of *.
    """
    after.result()
    ids = set[int | None]()
    for pod in range(PODS):
        host = f"127.0.0.{_FIRST_POD_ADDRESS + pod}" if _HAS_ADDRESSES else ""
        name = client_id.replace("*", str(pod))
        with RawProducer(stage.cluster, user, name, host=host) as producer:
            ids.add(producer.init())
    return _report(user, client_id, ids)


def at_its_coordinator(
    cluster: LocalCluster, user: str, client_id: str, transactional_id: str
) -> int | None:
    """A producer id for a transactional id, by a connection to each broker until one gives it."""
    host = PROCESSOR_ADDRESS if _HAS_ADDRESSES else ""
    for broker in range(len(cluster.bootstrap_servers.split(","))):
        with RawProducer(cluster, user, client_id, broker, host) as producer:
            given = producer.init(transactional_id)
        if given is not None:
            return given
    return None


def _report(user: str, client_id: str, ids: set[int | None]) -> ClientReport:
    given = len(ids - {None})
    return ClientReport(f"User:{user}", client_id, RAW, producer_ids=given, pushes=0)
