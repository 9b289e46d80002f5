"""A made week of a shop on the demo's cluster: what brokers would have logged of its clients.

Lines are sampled: each represents many requests. The last day has what goes wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from quotaflow.demo.past import lines
from quotaflow.demo.past.clock import MINUTE_MS, Clock, Tick, busy
from quotaflow.demo.past.lines import PastClient, PastRequest

CARTS, CATALOG, INVOICES = "carts", "catalog", "invoices"
ASSIGNMENTS = {
    CARTS: {0: [1, 2], 1: [2, 3], 2: [3, 1]},
    CATALOG: {0: [2, 3]},
    INVOICES: {0: [1, 3]},
}
SESSIONS, SESSIONS_ID = "sessions", "c2Vzc2lvbnMtb2YtcGFzdA"
"""A topic that was deleted since. Its follower had a later log start than its leader."""

PLACED_BEFORE = {**ASSIGNMENTS, INVOICES: {0: [1, 2]}}
"""Where partitions were when the week began."""

RECORDS = 20_000
"""Records of each partition: the log of the cluster ends where the made lines end."""

RACKS = {"10.20.1.0/24": "az-a", "10.20.2.0/24": "az-b", "10.20.3.0/24": "az-c"}
SEARCH_USER, RATE_KEY = "search", "producer_byte_rate"
FIRST_QUOTA, LAST_QUOTA = 150_000.0, 600_000.0

MAILERS, REPORTS, WORKERS = "invoice-mailer", "sales-reports", "billing"
FRAUD = "fraud-scoring"
DEPLOY_H, QUOTA_H, RAISED_H, NOISY_H, LAG_H, MOVE_H, LEFT_H = 20.0, 15.0, 12.0, 9.0, 6.0, 4.0, 0.9
DIVERGED_H, _DIVERGED_MIN = 3.0, 30
_NOISY_MIN, _STALL_MIN, _RECOVERY_MIN, _MOVE_MIN = 40, 30, 20, 25
_CROWDED = 2
"""The broker that the report reads from."""

_WINDOW_MS = 11_000
_REQUESTS_PER_S = 0.5
_BYTES = 800_000
_INDEX_BYTES = 80_000
"""The requests of a line are in one window of a quota: so few that they are within it."""

_OLD_JAVA, _NEW_JAVA = (("apache-kafka-java", release) for release in ("3.9.1", "4.1.0"))
_LIBRDKAFKA = ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0")

_CHECKOUTS = [
    PastClient("shop", f"checkout-web-{n}", f"10.20.{n}.11", rack=f"az-{'abc'[n - 1]}")
    for n in (1, 2, 3)
]
_WORKERS = [
    PastClient("billing", f"billing-worker-{n}", f"10.20.{n}.21", rack=f"az-{'abc'[n - 1]}")
    for n in (1, 2, 3)
]
_INDEXER = PastClient(SEARCH_USER, "search-indexer", "10.20.2.31", _LIBRDKAFKA)
_SEARCHER = PastClient(SEARCH_USER, "search-web", "10.20.3.32", _LIBRDKAFKA, rack="az-c")
_MAILER = PastClient("billing", MAILERS, "10.20.1.22", rack="az-a")
_RECOMMENDER = PastClient("shop", "recommender", "10.20.2.41", rack="az_b")
"""No broker has a rack of this name."""
_REPORTER = PastClient("reports", "spark-sales-reports", "10.20.1.51")
_FRAUD = PastClient("fraud", f"{FRAUD}-1-StreamThread-1-consumer", "10.20.2.61")
_ADMIN = PastClient("admin", "kafka-configs", "10.20.1.99")
_FOLLOWER = PastClient(
    "broker", "broker-3-fetcher-0", "127.0.0.1", ("unknown", "unknown"), listener="INTERNAL"
)
_LEADER = PastClient("ANONYMOUS", "1", "127.0.0.1", ("unknown", "unknown"), listener="CONTROLLER")


Positions = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""


@dataclass
class Week:
    """The lines of a week; `topic_ids` are those of the cluster."""

    clock: Clock
    topic_ids: Mapping[str, str]
    seed: int

    def __post_init__(self) -> None:
        self._dice = Random(f"{self.seed}/past")
        self._made: list[tuple[int, int, bytes]] = []

    def lines(self) -> list[tuple[int, int, bytes]]:
        """Each with its time in ms and its broker, in order of time."""
        for tick in self.clock.ticks():
            self._shop(tick)
            self._search(tick)
            self._billing(tick)
            self._reports(tick)
            self._fraud(tick)
        self._quota()
        self._move()
        self._diverge()
        return sorted(self._made)

    def positions(self) -> dict[str, Positions]:
        """Where each group is at the end of the week."""
        left = self._end(self.clock.ago(LEFT_H))
        return {
            WORKERS: {(CARTS, n): RECORDS for n in range(3)},
            MAILERS: {(INVOICES, 0): RECORDS},
            REPORTS: {(CARTS, n): left for n in range(3)},
        }

    def quotas(self) -> list[tuple[int, dict[str, Any]]]:
        """When the quota of search was set to what."""
        parts = ("user", "client_id", "ip")
        row: dict[str, Any] = dict.fromkeys(parts) | {f"is_default_{part}": False for part in parts}
        row |= {"user": SEARCH_USER, "config_key": RATE_KEY}
        times = ((QUOTA_H, FIRST_QUOTA), (RAISED_H, LAST_QUOTA))
        return [(self.clock.ago(hours), row | {"quota": quota}) for hours, quota in times]

    def offsets(self, ts_ms: int, local_ms: int) -> list[dict[str, Any]]:
        """Where partitions of carts were at a time; what is older than another is remote."""
        row: dict[str, Any] = {
            "topic": CARTS,
            "log_start_offset": 0,
            "log_end_offset": self._end(ts_ms),
        }
        row |= {"last_stable_offset": self._end(ts_ms)}
        local = self._end(local_ms)
        row |= {"local_log_start_offset": local, "last_tiered_offset": local - 1}
        return [row | {"partition": partition} for partition in range(3)]

    def _shop(self, tick: Tick) -> None:
        """Three producers of a shop, of which a deployment replaces the library."""
        for n, client in enumerate(_CHECKOUTS):
            is_old = tick.ts_ms < self.clock.ago(DEPLOY_H) + n * 5 * MINUTE_MS
            release = replace(client, software=_OLD_JAVA if is_old else _NEW_JAVA)
            self._produce(tick, release, CARTS, (tick.number + n) % 3)
        self._fetch(tick, _RECOMMENDER, CARTS, tick.number % 3, share=0.3)

    def _search(self, tick: Tick) -> None:
        if not self._is_within(tick.ts_ms, QUOTA_H, (QUOTA_H - RAISED_H) * 60):
            self._produce(tick, _INDEXER, CATALOG, 0, _INDEX_BYTES)
        self._fetch(tick, _SEARCHER, CATALOG, 0)

    def _billing(self, tick: Tick) -> None:
        """Workers read carts and write invoices, which a mailer reads: it stalls, and recovers."""
        for n, client in enumerate(_WORKERS):
            self._fetch(tick, client, CARTS, n)
        if tick.number % 2:
            self._produce(tick, _WORKERS[0], INVOICES, 0)
        position = self._mailed(tick.ts_ms)
        if not self._is_within(tick.ts_ms, LAG_H, _STALL_MIN):
            self._fetch(tick, _MAILER, INVOICES, 0, position=position)
        if tick.step_ms == MINUTE_MS:
            ends = {n: self._end(tick.ts_ms) for n in range(3)}
            self._commit(tick.ts_ms, _WORKERS[0], WORKERS, CARTS, ends)
            self._commit(tick.ts_ms, _MAILER, MAILERS, INVOICES, {0: position})

    def _mailed(self, ts_ms: int) -> int:
        """Where the mailer is: it stops for half an hour, then catches up."""
        start, minutes = self.clock.ago(LAG_H), (ts_ms - self.clock.ago(LAG_H)) / MINUTE_MS
        if not 0 <= minutes < _STALL_MIN + _RECOVERY_MIN:
            return self._end(ts_ms)
        stopped = self._end(start)
        caught_up = max(0.0, (minutes - _STALL_MIN) / _RECOVERY_MIN)
        return stopped + int((self._end(ts_ms) - stopped) * caught_up)

    def _reports(self, tick: Tick) -> None:
        """A report reads all carts as fast as it can, beside the shop; later its reader stops."""
        if tick.step_ms > MINUTE_MS:
            return
        if self._is_within(tick.ts_ms, NOISY_H, _NOISY_MIN):
            for _ in range(6):
                size, position = 100_000, self._dice.randrange(self._end(tick.ts_ms))
                made = (position, self._end(tick.ts_ms))
                body = lines.fetch(self.topic_ids[CARTS], 1, made, size)
                times = {"requestQueueTimeMs": 180.0, "localTimeMs": 55.0, "sendTimeMs": 20.0}
                at = tick.ts_ms + self._dice.randrange(MINUTE_MS)
                self._add(_REPORTER, PastRequest(at, _CROWDED, "FETCH", *body, times, 400))
        if tick.ts_ms <= self.clock.ago(LEFT_H):
            ends = {n: self._end(tick.ts_ms) for n in range(3)}
            self._commit(tick.ts_ms, _REPORTER, REPORTS, CARTS, ends)

    def _fraud(self, tick: Tick) -> None:
        """An application of Kafka Streams."""
        if tick.step_ms == MINUTE_MS:
            body = lines.streams_heartbeat(FRAUD, f"{FRAUD}-1", CARTS, range(3))
            self._add(_FRAUD, PastRequest(tick.ts_ms, 3, "STREAMS_GROUP_HEARTBEAT", *body))
            self._fetch(tick, _FRAUD, CARTS, tick.number % 3, share=0.5)

    def _quota(self) -> None:
        """A quota that is too small for its user, until it is raised."""
        (start, _), (end, _) = self.quotas()
        for at, row in self.quotas():
            body = lines.alter_quota(row["user"], row["config_key"], row["quota"])
            self._add(_ADMIN, PastRequest(at, 1, "ALTER_CLIENT_QUOTAS", *body))
        for at in range(start + 2_000, end, _WINDOW_MS):
            # As much as the quota lets through in a window, in three requests.
            size = round(FIRST_QUOTA * _WINDOW_MS / 1e3 / 3 * self._dice.uniform(0.97, 1.04))
            body = lines.produce(self.topic_ids[CATALOG], 0, self._end(at), size)
            throttle_ms = self._dice.randrange(900, 2_400)
            times = self._times(at, 2) | {"throttleTimeMs": throttle_ms}
            self._add(_INDEXER, PastRequest(at, 2, "PRODUCE", *body, times, 3))

    def _move(self) -> None:
        """Invoices move from broker 2 to broker 3, under a throttle that is removed at the end."""
        start, minutes = self.clock.ago(MOVE_H), _MOVE_MIN
        rate = f"{6_000_000}"
        keys = [("leader", 1), ("follower", 3)]
        for at, value in ((start, rate), (start + (minutes + 1) * MINUTE_MS, None)):
            for side, broker in keys:
                listed = value and f"0:{broker}"
                of_broker = {f"{side}.replication.throttled.rate": value}
                of_topic = {f"{side}.replication.throttled.replicas": listed}
                self._alter(at, 4, str(broker), of_broker)
                self._alter(at + 20, 2, INVOICES, of_topic)
        body = lines.reassign(INVOICES, [1, 3])
        self._add(_ADMIN, PastRequest(start + 100, 1, "ALTER_PARTITION_REASSIGNMENTS", *body))
        for second in range(10, minutes * 60, 20):
            at = start + second * 1_000
            position = self._end(at) * second // (minutes * 60)
            body = lines.follow(self.topic_ids[INVOICES], (position, self._end(at)), 1 << 20, 3)
            self._add(_FOLLOWER, PastRequest(at, 1, "FETCH", *body, {"remoteTimeMs": 3.0}, 100))
        at = start + minutes * MINUTE_MS
        body = lines.report_isr(self.topic_ids[INVOICES], 1, [1, 2, 3])
        self._add(_LEADER, PastRequest(at, 1, "ALTER_PARTITION", *body))

    def _diverge(self) -> None:
        """Two readers of a topic, one at its leader, one at a follower that lacks old records."""
        start, end = self.clock.ago(DIVERGED_H), RECORDS // 10
        body = lines.describe(SESSIONS, SESSIONS_ID)
        self._add(_SEARCHER, PastRequest(start, 2, "METADATA", *body))
        for at in range(start, start + _DIVERGED_MIN * MINUTE_MS, 5 * MINUTE_MS):
            for client, broker, first in ((_INDEXER, 2, 0), (_SEARCHER, 3, end // 2)):
                offsets, rack = (end, end), client.rack
                body = lines.fetch(SESSIONS_ID, 0, offsets, 0, rack, log_start=first)
                times = self._times(at, broker) | {"remoteTimeMs": 500.0}
                self._add(client, PastRequest(at, broker, "FETCH", *body, times, 100))

    def _alter(self, at: int, kind: int, name: str, values: Mapping[str, str | None]) -> None:
        body = lines.alter_config(kind, name, values)
        self._add(_ADMIN, PastRequest(at, 1, "INCREMENTAL_ALTER_CONFIGS", *body))

    def _produce(
        self, tick: Tick, client: PastClient, topic: str, partition: int, usual: int = _BYTES
    ) -> None:
        at, broker = self._moment(tick), ASSIGNMENTS[topic][partition][0]
        size = round(usual * self._dice.lognormvariate(0, 0.2))
        body = lines.produce(self.topic_ids[topic], partition, self._end(at), size)
        times = self._times(at, broker) | {"remoteTimeMs": self._ms(6)}
        self._add(client, PastRequest(at, broker, "PRODUCE", *body, times, self._weight(tick)))

    def _fetch(
        self,
        tick: Tick,
        client: PastClient,
        topic: str,
        partition: int,
        *,
        share: float = 1.0,
        position: int | None = None,
    ) -> None:
        """From the replica in the client's rack, where there is one."""
        at, replicas = self._moment(tick), ASSIGNMENTS[topic][partition]
        own = [n for n in replicas if client.rack == f"az-{'abc'[n - 1]}"]
        broker, end = (own or replicas)[0], self._end(at)
        size = round(_BYTES * share * self._dice.lognormvariate(0, 0.2))
        offsets = (end if position is None else position, end)
        body = lines.fetch(self.topic_ids[topic], partition, offsets, size, client.rack)
        times = self._times(at, broker) | {"remoteTimeMs": self._ms(120)}
        self._add(client, PastRequest(at, broker, "FETCH", *body, times, self._weight(tick)))

    def _commit(
        self, at: int, client: PastClient, group: str, topic: str, offsets: Mapping[int, int]
    ) -> None:
        body = lines.commit(group, f"{group}-1", topic, offsets)
        self._add(client, PastRequest(at, 3, "OFFSET_COMMIT", *body))

    def _add(self, client: PastClient, made: PastRequest) -> None:
        text = lines.line(client, made, len(self._made) % 2**31)
        self._made.append((made.ts_ms, made.broker, text))

    def _moment(self, tick: Tick) -> int:
        return tick.ts_ms + self._dice.randrange(tick.step_ms)

    def _weight(self, tick: Tick) -> int:
        requests = busy(tick.ts_ms) * _REQUESTS_PER_S * tick.step_ms / 1e3
        return min(lines.MAX_WEIGHT, max(1, round(requests * self._dice.lognormvariate(0, 0.1))))

    def _times(self, at: int, broker: int) -> dict[str, float]:
        """Of a request of the shop: it waits for handler threads beside the report."""
        is_crowded = broker == _CROWDED and self._is_within(at, NOISY_H, _NOISY_MIN)
        queue = self._ms(160 if is_crowded else 0.8)
        times = {"requestQueueTimeMs": queue, "localTimeMs": self._ms(8)}
        return times | {"responseQueueTimeMs": self._ms(0.6), "sendTimeMs": self._ms(0.5)}

    def _ms(self, usual: float) -> float:
        return round(usual * self._dice.lognormvariate(0, 0.35), 3)

    def _end(self, ts_ms: int) -> int:
        """The end of each partition at a time."""
        return int(RECORDS * self.clock.done(ts_ms))

    def _is_within(self, ts_ms: int, hours_ago: float, minutes: float) -> bool:
        start = self.clock.ago(hours_ago)
        return start <= ts_ms < start + minutes * MINUTE_MS
