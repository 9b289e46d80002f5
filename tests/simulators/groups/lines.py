"""What brokers log of a world: lines in the form that the appender ships, of the last minutes."""

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from .world import BROKERS, STEP_S, WINDOW_S, Loop, Member, Step, World, time_of

TOPIC, GROUP, PRINCIPAL = "orders", "billing", "User:billing"
TOPIC_ID = "6VfFl0gvSJWn0M2FhjxChg"
_FETCH_BY_ID, _FENCED_INSTANCE_ID = 16, 82
_APIS = {"FETCH": (1, 12), "OFFSET_COMMIT": (8, 8), "HEARTBEAT": (12, 4), "LEAVE_GROUP": (13, 5)}
_APIS |= {"CONSUMER_GROUP_HEARTBEAT": (68, 1), "STREAMS_GROUP_HEARTBEAT": (88, 0)}
_APIS |= {"SHARE_GROUP_HEARTBEAT": (76, 1), "SHARE_FETCH": (78, 2)}
_APIS |= {"JOIN_GROUP": (11, 9), "SYNC_GROUP": (14, 5), "PUSH_TELEMETRY": (72, 0)}
_PUSH_EVERY_S = 60
_PREFIX = "org.apache.kafka.consumer."
_UNCHANGED = {
    "consumer": (
        *("instanceId", "rackId", "subscribedTopicNames", "subscribedTopicRegex"),
        *("serverAssignor", "topicPartitions"),
    ),
    "share": ("rackId", "subscribedTopicNames"),
    "streams": (
        *("instanceId", "rackId", "topology", "activeTasks", "standbyTasks", "warmupTasks"),
        *("processId", "userEndpoint", "clientTags"),
    ),
}
"""Fields of a heartbeat that say nothing new."""
Body = dict[str, Any]


class LinesOf:
    """Writes the lines of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lines: list[bytes] = []
        self.generation = 7
        self.next_fetch: dict[tuple[int, int], float] = {}
        self.next_rebalance = float(-WINDOW_S)
        self.polled_at: dict[int, float] = {}

    @property
    def _topic(self) -> Body:
        return {"topicId": TOPIC_ID} if self.world.by_topic_id else {"topic": TOPIC}

    def write(self, step: Step) -> None:
        """Add what happens in one step."""
        if step.second < -WINDOW_S:
            return
        for member in self.world.members:
            if member.number not in step.state.absent:
                self._member(step, member)
        if not step.state.absent:
            self._rebalances(step)
        self._fetches(step)
        if step.second % 60 == 0:
            self._other_group(step)

    def _other_group(self, step: Step) -> None:
        """A consumer of another topic, who keeps up."""
        other = Member(99, [], "az-a", "librdkafka", "other")
        request = self._fetching(step, other, BROKERS[0])
        answer = {"errorCode": 0, "sessionId": 0, "responses": []}
        for broker in BROKERS:
            usual_ms = step.state.broker_ms[broker]
            others = {"broker": broker, "localTimeMs": usual_ms, "remoteTimeMs": 500.0}
            self._line(step.second, "FETCH", other, request, answer, **others)

    def _member(self, step: Step, member: Member) -> None:
        request = {"groupId": GROUP, "generationId": self.generation}
        fenced = step.state.fenced
        instance = "node-1" if fenced else None
        request |= {"memberId": member.member_id, "groupInstanceId": instance}
        if self.world.is_classic:
            answer = {"errorCode": _FENCED_INSTANCE_ID if fenced else 0}
            self._line(step.second, "HEARTBEAT", member, request, answer, weight=3)
        else:
            self._typed_heartbeat(step, member)
        if member.number not in step.state.silent:
            self.polled_at[member.number] = step.second
            commits = not (fenced or step.state.elsewhere or self.world.never_committed)
            if commits and not self.world.is_share:
                self._commit(step, member)
        if self.world.has_telemetry and step.second % _PUSH_EVERY_S == member.number * STEP_S:
            self._push(step, member)

    def _typed_heartbeat(self, step: Step, member: Member) -> None:
        group_type = self.world.group_type
        request: Body = dict.fromkeys(_UNCHANGED[group_type])
        request |= {"groupId": GROUP, "memberId": member.member_id, "rebalanceTimeoutMs": -1}
        request["memberEpoch"] = self.generation
        answer = {"errorCode": 0, "errorMessage": None, "memberId": member.member_id}
        answer |= {"memberEpoch": self.generation, "heartbeatIntervalMs": 5_000}
        answer |= {"assignment": None}
        api = f"{group_type.upper()}_GROUP_HEARTBEAT"
        self._line(step.second, api, member, request, answer, weight=2)

    def _commit(self, step: Step, member: Member) -> None:
        offsets = {p: int(step.positions[p]) for p in member.partitions}
        if self.world.beyond_end and step.state is self.world.now:
            offsets = {p: int(step.ends[p] * 2) for p in offsets}
        requested = [
            {"partitionIndex": p, "committedOffset": at, "committedMetadata": ""}
            for p, at in offsets.items()
        ]
        answered = [{"partitionIndex": p, "errorCode": 0} for p in offsets]
        request = {"groupId": GROUP, "generationIdOrMemberEpoch": self.generation}
        request |= {"memberId": member.member_id, "groupInstanceId": None}
        request |= {"topics": [{"name": TOPIC, "partitions": requested}]}
        answer = {"topics": [{"name": TOPIC, "partitions": answered}]}
        self._line(step.second, "OFFSET_COMMIT", member, request, answer)

    def _fetches(self, step: Step) -> None:
        if step.state.spinning:
            for member in self.world.members:
                self._spin(step, member)
        for (number, broker), loop in step.loops.items():
            due = self.next_fetch.get((number, broker), float(step.second))
            if step.second >= due:
                member = self.world.members[number]
                self._fetch(step, member, broker, loop)
                self.next_fetch[number, broker] = step.second + loop.cycle_s

    def _fetch(self, step: Step, member: Member, broker: int, loop: Loop) -> None:
        state, dice = step.state, self.world.dice
        noise = dice.lognormvariate(0, 0.2)
        sent_ms = loop.network_ms * dice.uniform(0.3, 0.7)
        if self.world.is_share:
            api, request = "SHARE_FETCH", self._acquiring(step, member)
            answer = {"errorCode": 0, "responses": self._acquired(step, loop.answer)}
        else:
            api, request = "FETCH", self._fetching(step, member, broker)
            answer = {"errorCode": 0, "sessionId": 0}
            answer |= {"responses": self._answered(step, loop.answer)}
        self._line(
            step.second + dice.random(),
            api,
            member,
            request,
            answer,
            weight=_one_of(STEP_S / loop.cycle_s * (1 - state.stop_share)),
            broker=broker,
            localTimeMs=state.broker_ms[broker] * noise,
            sendTimeMs=sent_ms,
            throttleTimeMs=round(loop.throttle_ms * noise),
        )

    def _spin(self, step: Step, member: Member) -> None:
        for broker in {self.world.leader(p) for p in member.partitions}:
            request = self._fetching(step, member, broker)
            answers = [
                {"partitionIndex": p, "errorCode": 1, "highWatermark": -1}
                | {"lastStableOffset": -1, "logStartOffset": -1, "recordsSizeInBytes": 0}
                for p in member.partitions
                if self.world.leader(p) == broker
            ]
            responses = [self._topic | {"partitions": answers}]
            answer = {"errorCode": 0, "sessionId": 0, "responses": responses}
            self._line(step.second, "FETCH", member, request, answer, weight=20, broker=broker)

    def _fetching(self, step: Step, member: Member, broker: int) -> Body:
        state = step.state
        partitions = [
            {"partition": p, "currentLeaderEpoch": 1, "fetchOffset": int(step.positions[p])}
            | {"lastFetchedEpoch": -1, "logStartOffset": -1}
            | {"partitionMaxBytes": state.partition_max_bytes}
            for p in member.partitions
            if self.world.leader(p) == broker
        ]
        request = {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": state.max_bytes}
        isolation = int(self.world.now.is_blocked)
        request |= {"isolationLevel": isolation, "sessionId": 0, "sessionEpoch": -1}
        request |= {"topics": [self._topic | {"partitions": partitions}]}
        return request | {"forgottenTopicsData": [], "rackId": member.rack}

    def _answered(self, step: Step, answer: Mapping[int, float]) -> list[Body]:
        sizes = {p: int(size) for p, size in answer.items()}
        if sum(answer.values()) >= step.state.max_bytes - 1:
            # A broker fills an answer to the byte.
            sizes[min(sizes)] += step.state.max_bytes - sum(sizes.values())
        partitions = [
            {"partitionIndex": p, "errorCode": 0, "highWatermark": int(step.ends[p])}
            | {"lastStableOffset": int(step.ends[p]), "logStartOffset": 0}
            | {"preferredReadReplica": -1, "recordsSizeInBytes": size}
            for p, size in sizes.items()
        ]
        return [self._topic | {"partitions": partitions}]

    def _acquiring(self, step: Step, member: Member) -> Body:
        request = {"groupId": GROUP, "memberId": member.member_id, "shareSessionEpoch": 1}
        request |= {"maxWaitMs": 500, "minBytes": 1, "maxBytes": step.state.max_bytes}
        return request | {"maxRecords": 500, "batchSize": 500, "topics": []}

    def _acquired(self, step: Step, answer: Mapping[int, float]) -> list[Body]:
        """Records of an answer; brokers log none of their bytes."""
        partitions = []
        for p, size in answer.items():
            first = int(step.positions[p])
            last = first + max(1, int(size / self.world.record_bytes)) - 1
            records = [{"firstOffset": first, "lastOffset": last, "deliveryCount": 1}]
            partitions.append(
                {"partitionIndex": p, "errorCode": 0, "acknowledgeErrorCode": 0, "records": ""}
                | {"acquiredRecords": records}
            )
        return [{"topicId": TOPIC_ID, "partitions": partitions}]

    def _rebalances(self, step: Step) -> None:
        state = step.state
        while state.stop_share and self.next_rebalance <= step.second:
            start = self.next_rebalance
            self._rebalance(start, state.rebalance_every_s * state.stop_share)
            self.next_rebalance += state.rebalance_every_s * self.world.dice.uniform(0.8, 1.2)
        deployed = self.world.deploy_at
        if (
            deployed is not None
            and self.world.is_classic
            and step.second - STEP_S < deployed <= step.second
        ):
            self._rebalance(deployed, self.world.dice.uniform(0.5, 3))

    def _rebalance(self, start: float, stopped_s: float) -> None:
        self.generation += 1
        leader = self.world.members[0].member_id
        for member in self.world.members:
            self._join(start + stopped_s - 0.1, member, leader, stopped_s - 0.2)
        for member in self.world.members:
            request = {"groupId": GROUP, "generationId": self.generation}
            request |= {"memberId": member.member_id, "protocolName": "range"}
            request |= {"groupInstanceId": None, "assignments": []}
            answer = {"errorCode": 0, "protocolName": "range"}
            answer["assignment"] = _assignment(member.partitions)
            self._line(start + stopped_s, "SYNC_GROUP", member, request, answer)

    def _join(self, second: float, member: Member, leader: str, waited_s: float) -> None:
        metadata = _subscription()
        request = {"groupId": GROUP, "sessionTimeoutMs": 45_000, "rebalanceTimeoutMs": 300_000}
        request |= {"memberId": member.member_id, "groupInstanceId": None, "reason": ""}
        request |= {"protocolType": "consumer"}
        request |= {"protocols": [{"name": "range", "metadata": metadata}]}
        all_members = [
            {"memberId": m.member_id, "groupInstanceId": None, "metadata": metadata}
            for m in self.world.members
        ]
        answer = {"errorCode": 0, "generationId": self.generation, "protocolName": "range"}
        answer |= {"leader": leader, "memberId": member.member_id, "protocolType": "consumer"}
        answer |= {"members": all_members if member.member_id == leader else []}
        self._line(second, "JOIN_GROUP", member, request, answer, remoteTimeMs=waited_s * 1e3)

    def left(self, second: float) -> None:
        """Members leave, since they did not poll, or since they end."""
        why = "consumer poll timeout has expired." if self.world.poll_timeout else "it ends"
        for member in self.world.members:
            name = {"memberId": member.member_id, "groupInstanceId": None}
            request = {"groupId": GROUP, "members": [name | {"reason": why}]}
            answer = {"errorCode": 0, "members": [name | {"errorCode": 0}]}
            self._line(second, "LEAVE_GROUP", member, request, answer)

    def _push(self, step: Step, member: Member) -> None:
        loops = [loop for (number, _), loop in step.loops.items() if number == member.number]
        metrics = {"poll.idle.ratio.avg": self._idle(step, member)}
        if loops:
            metrics["fetch.manager.fetch.latency.avg"] = self._latency(step, member)
            metrics["time.between.poll.avg"] = _between_polls_ms(loops)
        if self.world.has_all_metrics:
            polled = self.polled_at.get(member.number, step.second - 900.0)
            metrics["last.poll.seconds.ago"] = step.second - polled
        request = {"clientInstanceId": f"instance-{member.number}", "subscriptionId": 1}
        request |= {"terminating": False, "compressionType": 0}
        kind = "share." if self.world.is_share else ""
        named = {kind + name: value for name, value in metrics.items()}
        request["metrics"] = base64.b64encode(_payload(step.second, named)).decode()
        self._line(step.second, "PUSH_TELEMETRY", member, request, {"errorCode": 0})

    def _idle(self, step: Step, member: Member) -> float:
        if member.number in step.state.silent:
            return 0.0
        stopped = step.state.stop_share
        idle = (
            stopped
            + (1 - stopped) * (1 - step.busy[member.number])
            + self.world.dice.gauss(0, 0.03)
        )
        return min(1.0, max(0.0, idle))

    def _latency(self, step: Step, member: Member) -> float:
        weighed = [
            (1 / loop.cycle_s, step.state.broker_ms[broker] + loop.network_ms, loop.throttle_ms)
            for (number, broker), loop in step.loops.items()
            if number == member.number
        ]
        fetches = sum(weight for weight, _, _ in weighed)
        waits_ms = sum(weight * (ms + throttle_ms) for weight, ms, throttle_ms in weighed) / fetches
        if member.library == "apache-kafka-java":
            # An answer waits until the application polls again.
            loops = [loop for (number, _), loop in step.loops.items() if number == member.number]
            waits_ms += step.busy[member.number] * _between_polls_ms(loops) / 2
        return waits_ms * self.world.dice.lognormvariate(0, 0.1)

    def _line(
        self, second: float, api: str, member: Member, request: Body, answer: Body, **others: Any
    ) -> None:
        weight, broker = others.pop("weight", 1), others.pop("broker", BROKERS[0])
        key, version = _APIS[api]
        if api == "FETCH" and self.world.by_topic_id:
            version = _FETCH_BY_ID
        header = {"requestApiKey": key, "requestApiVersion": version}
        header |= {"correlationId": len(self.lines)}
        header |= {"clientId": member.client_id, "requestApiKeyName": api}
        times = {"requestQueueTimeMs": 0.1, "localTimeMs": 0.4, "remoteTimeMs": 0.0}
        times |= {"responseQueueTimeMs": 0.05, "sendTimeMs": 0.1, "throttleTimeMs": 0} | others
        total = sum(value for name, value in times.items() if name != "throttleTimeMs")
        line = {"isForwarded": False, "requestHeader": header, "request": request}
        line["response"] = {"throttleTimeMs": times["throttleTimeMs"]} | answer
        line |= times | {"totalTimeMs": total, "securityProtocol": "SASL_SSL"}
        line |= {"connection": f"10.0.0.{broker}:9092-10.1.0.{member.number + 1}:4000-0-1"}
        line |= {"principal": PRINCIPAL, "listener": "SASL_SSL"}
        line["clientInformation"] = {"softwareName": member.library, "softwareVersion": "4.3.1"}
        ms = round(time_of(second).timestamp() * 1e3)
        whole_line = {"ts": ms, "broker": broker, "weight": weight, "r": line}
        self.lines.append(json.dumps(whole_line, separators=(",", ":")).encode())


def _between_polls_ms(loops: list[Loop]) -> float:
    """A poll brings one answer."""
    return 1e3 / sum(1 / loop.cycle_s for loop in loops)


def _one_of(fetches: float) -> int:
    return max(1, min(1_000, round(fetches)))


def _subscription() -> str:
    name = TOPIC.encode()
    packed = struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)
    return base64.b64encode(packed).decode()


def _assignment(partitions: list[int]) -> str:
    name, count = TOPIC.encode(), len(partitions)
    layout = f">hih{len(name)}si{count}ii"
    packed = struct.pack(layout, 0, 1, len(name), name, count, *partitions, -1)
    return base64.b64encode(packed).decode()


def _payload(second: float, values: dict[str, float]) -> bytes:
    nanos = round(time_of(second).timestamp() * 1e9)
    metrics = [
        otlp.Metric(
            name=_PREFIX + name,
            gauge=otlp.Gauge(
                data_points=[otlp.NumberDataPoint(time_unix_nano=nanos, as_double=value)]
            ),
        )
        for name, value in values.items()
    ]
    group = KeyValue(key="group_id", value=AnyValue(string_value=GROUP))
    resource = Resource(attributes=[group])
    scoped = [otlp.ScopeMetrics(metrics=metrics)]
    whole = otlp.ResourceMetrics(resource=resource, scope_metrics=scoped)
    return otlp.MetricsData(resource_metrics=[whole]).SerializeToString()


def lines_of(world: World) -> Iterator[tuple[Step, list[bytes]]]:
    """Each step of a world, and the lines that brokers write in it."""
    writer = LinesOf(world)
    for step in world.steps():
        writer.lines = []
        if (
            world.is_classic
            and world.now.absent
            and step.second - STEP_S < world.onset <= step.second
        ):
            writer.left(step.second)
        writer.write(step)
        yield step, writer.lines if world.has_log else []
