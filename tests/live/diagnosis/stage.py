"""Where faults are planted: a cluster, a client for each scene, and acts of one minute each."""

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from confluent_kafka import Producer
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from quotaflow.demo import request_lines
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import Line

from ..quiet_clients import QUIET
from ..rack_scene import Roles

ADMIN = "planted-admin"
"""Client id of who alters configs right before a symptom."""
LOG = "planted-request-log"
CALM_ACTS = 12
"""With fewer than ten minutes a client has no usual wait."""
_CALM_S, _CALM_EVERY_S = 1.0, 0.15
_FLUSH_S = 2.0


@dataclass
class Stage:
    """A login and a producer for each client, which are the same in all acts."""

    cluster: LocalCluster
    acts: request_lines.Acts = field(default_factory=lambda: request_lines.Acts(40))
    ended: Event = field(default_factory=Event)
    """Set when clients have to end their part of the act."""

    def __post_init__(self) -> None:
        self.roles = Roles.of_cluster(self.cluster)
        self._passwords: dict[str, str] = {}
        self._producers: dict[str, Producer] = {}

    def add_users(self, users: Iterable[str]) -> None:
        """Make a SCRAM login for each."""
        self._passwords = {user: secrets.token_urlsafe(12) for user in users}
        with self.cluster.admin() as admin:
            admin.alter_user_scram_credentials(
                [
                    UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_256, password)
                    for user, password in self._passwords.items()
                ]
            )
        time.sleep(1)

    def login(self, user: str, client_id: str) -> dict[str, Any]:
        """Properties of a librdkafka client."""
        scram = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": user}
        password = {"sasl.password": self._passwords[user]}
        own = {"client.id": client_id, "log_level": 0}
        return self.cluster.librdkafka_properties("admin") | scram | password | QUIET | own

    def producer(self, user: str, client_id: str, **config: Any) -> Producer:
        """The one producer of a client; names of configs have _ where Kafka's have dots."""
        if client_id not in self._producers:
            named = {name.replace("_", "."): value for name, value in config.items()}
            self._producers[client_id] = Producer(self.login(user, client_id) | named)
        return self._producers[client_id]

    def every(self, seconds: float) -> Iterable[int]:
        """Count at an even pace until the act ends."""
        began_s, n = time.monotonic(), 0
        while not self.ended.wait(max(0.0, began_s + n * seconds - time.monotonic())):
            yield n
            n += 1

    def warm_up(self, works: Iterable[Callable[[], None]]) -> None:
        """Before the acts: the first requests of a cold broker are slow."""
        self._work(_CALM_S, list(works), lambda _stage: None)

    def calm(self, works: Iterable[Callable[[], None]]) -> None:
        """Minutes in which nothing is wrong."""
        calm = list(works)
        for _ in range(CALM_ACTS):
            self.play(_CALM_S, calm)

    def play(
        self,
        seconds: float,
        works: Iterable[Callable[[], None]],
        fault: Callable[["Stage"], None] = lambda _stage: None,
    ) -> int:
        """An act with these clients, in which something goes wrong; its minute in ms."""
        with self.acts.act() as minute_ms:
            self._work(seconds, list(works), fault)
        return minute_ms

    def _work(
        self,
        seconds: float,
        clients: Sequence[Callable[[], None]],
        fault: Callable[["Stage"], None],
    ) -> None:
        self.ended.clear()
        with ThreadPoolExecutor(len(clients)) as pool:
            began_s = time.monotonic()
            running = [pool.submit(client) for client in clients]
            try:
                fault(self)
                time.sleep(max(0.0, began_s + seconds - time.monotonic()))
            finally:
                self.ended.set()
            for client in running:
                client.result()

    def flush(self, producer: Producer) -> None:
        """Give up what a fault keeps back."""
        if producer.flush(_FLUSH_S):
            producer.purge()
            producer.flush(_FLUSH_S)

    def ship(self, client_ids: Iterable[str]) -> None:
        """What brokers logged of these clients, of followers and of who altered configs."""
        ours = {*client_ids, ADMIN}

        def is_ours(request: Line) -> bool:
            header = request["requestHeader"]
            api = header["requestApiKeyName"]
            is_follower = api == "FETCH" and (
                request["request"].get("replicaId", -1) >= 0
                or request["request"].get("replicaState", {}).get("replicaId", -1) >= 0
            )
            return header["clientId"] in ours or is_follower or api == "ALTER_PARTITION"

        request_lines.ship(self.cluster, LOG, self.acts.lines(self.cluster, is_ours))
