"""A warehouse with hostile names, and its pages over HTTP."""

import http.client
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from urllib.parse import urlsplit

from quotaflow.pipelines import config
from quotaflow.pipelines.serve.access import Access
from quotaflow.pipelines.serve.connections import ConnectionBounds
from quotaflow.pipelines.serve.server import Response, Site, serving
from quotaflow.pipelines.serve.site import QuotaflowSite
from quotaflow.pipelines.serve.tables import ServedTables
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import Row, at, limited, times
from ..report.pages import HOSTILE, NAMES, NOW, progress

HIDDEN = "what the tables have"
_SEEN = {"cluster_id": "c1", "event_time": at(0), "is_removed": False}
_TOPIC = _SEEN | {"topic_id": "t1", "topic": HOSTILE, "partition_count": 1, "is_internal": False}
_BROKER = _SEEN | {"broker_id": 1, "host": HOSTILE, "port": 9092, "is_controller": True}
_GROUP = _SEEN | {"group_id": HOSTILE, "group_type": "classic", "state": "Stable"}
_MOVE = {
    "cluster_id": "c1",
    "topic": HOSTILE,
    "partition": 0,
    "replica_id": 1,
    "state": "moving",
    "requested_time": at(30),
    "requested_by": HOSTILE,
    "bytes_left": 1e6,
}


def _used(place: int, name: str) -> Row:
    return {
        "cluster_id": "c1",
        "event_date": at(0).date(),
        "event_time": at(10 * place),
        "broker_id": 1,
        "principal": name,
        "client_id": name,
        "quota_type": "producer_byte_rate",
        "usage": 5.0,
        "quota": 10.0,
        "quota_level": 3,
        "quota_bucket_user": name,
        "quota_bucket_usage": 5.0,
        "throttle_time_ms": 7,
        "request_count": 1,
    }


def _moved(place: int, name: str) -> Row:
    named = {"principal": name, "client_id": name, "topic": HOSTILE, "direction": "produced"}
    of_time = {"event_date": at(0).date(), "event_time": at(60 * (place % 3)), "broker_id": 1}
    return {"cluster_id": "c1", "bytes": 1_000_000 + place} | of_time | named


CONTENT: dict[str, list[Row]] = {
    "pipeline_progress": [progress(125, "in")],
    "quota_usage": [_used(place, name) for place, name in enumerate(NAMES)],
    "traffic": [_moved(n, name) for n, name in enumerate((*NAMES, HOSTILE))],
    "request_times": [
        times(60 * n, "PRODUCE", each={"local": 9.0}, principal=HOSTILE, client_id=HOSTILE)
        for n in range(2)
    ],
    "config_alterations": [limited(30, "producer_byte_rate", "9", entity_name="")],
    "topics": [_TOPIC],
    "brokers": [_BROKER],
    "groups": [_GROUP],
    "reassignments": [_MOVE],
    "group_lag": [
        {
            "cluster_id": "c1",
            "group_id": HOSTILE,
            "topic": HOSTILE,
            "partition": 0,
            "lag": 5,
            "client_id": HOSTILE,
            "position_known_at": at(60),
        }
    ],
}


class Fixed:
    """One page for every path."""

    def answer(self, target: str) -> Response:
        return Response(f"{HIDDEN} {target}".encode(), tag="now")

    def sign_in(self) -> Response:
        return Response(b"token?", HTTPStatus.UNAUTHORIZED, tag="sign-in")

    def is_ready(self) -> bool:
        return True

    def stop(self) -> None:
        """Nothing runs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer over HTTP."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


class _Reused(QuotaflowSite):
    def stop(self) -> None:
        """Another server goes on with it."""


def site(warehouse: Warehouse, **others: object) -> QuotaflowSite:
    """The pages of a warehouse, two hours after its rows."""
    conf = config.Conf(warehouse=warehouse.conf.model_copy(update=others))
    return _Reused(ServedTables(conf, None, timedelta(days=1), lambda: NOW), 30)


@contextmanager
def served(
    pages: Site,
    access: Access | None = None,
    tls: ssl.SSLContext | None = None,
    bounds: ConnectionBounds | None = None,
) -> Iterator[str]:
    """The pages at a free port of loopback."""
    with serving(pages, ("127.0.0.1", 0), access or Access(), tls, bounds) as url:
        yield url


def get(url: str, path: str = "/", method: str = "GET", **headers: str) -> Answer:
    """What a server answers; `_` in names of headers is their hyphen."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, headers=named)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()
