"""Throttles that were left over, and a move that a throttle does not name (KIP-73)."""

from typing import Any

from confluent_kafka import Producer

from quotaflow.demo import replica_moves
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import Acts, Line
from quotaflow.pipelines.errors import KafkaError

LEFT, MOVED = "archive", "history"
CLIENT = "admin-archive"
"""Client id of who forgot a throttle: its lines are shipped as of MINUTES_AGO."""

_OTHER = "ivan"

MINUTES_AGO = 12
"""Longer than a throttle may be there without a move (replication.stale_throttle_s)."""

FROM, TO = 1, 3
ASSIGNMENTS = {LEFT: {0: [FROM, 2]}, MOVED: {0: [FROM]}}
RATE = 20_000
"""Bytes per second: the move lasts 25 minutes."""

_RECORDS, _RECORD_BYTES = 1_500, 20_000

FETCH_BYTES = 2 * _RECORD_BYTES
"""replica.fetch.max.bytes. A leader sends so much at once, then none for two seconds; with the
default of 1 MiB it would send none for ten."""


def forget(cluster: LocalCluster) -> Acts:
    """Set the lists of a move that is over, and leave them: a plan removes its own login's."""
    acts = Acts(first_minutes_ago=MINUTES_AGO)
    with acts.act():
        for user, side, broker in (("admin", "leader", FROM), (_OTHER, "follower", 2)):
            with cluster.admin(user, client_id=CLIENT) as admin:
                replica_moves.set_list(admin, side, LEFT, [broker])
    return acts


def is_moved(line: bytes) -> bool:
    """Whether a line of the request log is of who forgot the throttle."""
    return f'"{CLIENT}"'.encode() in line


def is_act(request: Line) -> bool:
    """Whether a request changes configs: the client's other requests are of no use."""
    header = request["requestHeader"]
    act = ("INCREMENTAL_ALTER_CONFIGS", CLIENT)
    return (header["requestApiKeyName"], header["clientId"]) == act


def fill(cluster: LocalCluster) -> None:
    """Write what the move has to carry."""
    login: dict[str, Any] = {
        **cluster.librdkafka_properties("alice"),
        "client.id": "rdk-history-alice",
        "enable.metrics.push": False,
        "acks": 1,
    }
    producer = Producer(login)
    for _ in range(_RECORDS):
        producer.produce(MOVED, bytes(_RECORD_BYTES), partition=0)
        producer.poll(0)
    if left := producer.flush(30):
        raise KafkaError(f"{MOVED}: {left} records not acknowledged")


def start_move(cluster: LocalCluster) -> None:
    """Throttle both ends, name the replica on the leader's list alone, and start the move."""
    with cluster.admin() as admin:
        replica_moves.set_rate(admin, "leader", FROM, RATE)
        replica_moves.set_rate(admin, "follower", TO, RATE)
        replica_moves.set_list(admin, "leader", MOVED, [FROM])
        replica_moves.move(admin, MOVED, [TO], ask=FROM)
