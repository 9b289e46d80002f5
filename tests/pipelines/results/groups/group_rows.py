"""Requests of groups with made bodies."""

import json
from datetime import timedelta
from typing import Any

from ....delta_tables import NOON
from ....rows import Row

CLIENT = {"principal": "User:bob", "client_id": "app", "client_address": "10.0.0.1"}


def request(second: float, api: str, requested: Row | None, answer: Row, **others: Any) -> Row:
    """A request for group g; `requested` None: its body was not kept."""
    time = NOON + timedelta(seconds=second)
    row = {"cluster_id": "c1", "event_time": time, "record_time": time, "broker_id": 1, **CLIENT}
    row |= {"api": api, "group_id": "g", "total_time_ms": 0.0, "error_code": 0}
    row |= {"source_topic": "log", "source_partition": 0, "source_offset": round(second * 1_000)}
    body = None if requested is None else json.dumps({"request": requested, "response": answer})
    return row | {"body": body} | others


def commit(second: float, offsets: dict[int, int], **others: Any) -> Row:
    """An OFFSET_COMMIT of partitions of topic t, as member m, with an answer for each.

    `errors` are by partition; `topic_id` replaces the name.
    """
    errors, topic_id = others.pop("errors", {}), others.pop("topic_id", None)
    topic: Row = {"name": "t"} if topic_id is None else {"topicId": topic_id}
    requested = [{"partitionIndex": n, "committedOffset": at} for n, at in offsets.items()]
    answered = [{"partitionIndex": n, "errorCode": errors.get(n, 0)} for n in reversed(offsets)]
    requested_body = {"memberId": "m", "generationIdOrMemberEpoch": 3}
    return request(
        second,
        others.pop("api", "OFFSET_COMMIT"),
        requested_body | {"topics": [topic | {"partitions": requested}]},
        {"topics": [topic | {"partitions": answered}]},
        **({"error_code": None} | others),
    )


def heartbeat(second: float, epoch: int, answered: int | None = None, **others: Any) -> Row:
    """A CONSUMER_GROUP_HEARTBEAT of member m; `requested` and `answer` add to its body."""
    code = others.get("error_code", 0)
    member = {"memberId": others.pop("member_id", "m"), "memberEpoch": epoch}
    answer = {"memberEpoch": epoch if answered is None else answered, "errorCode": code}
    return request(
        second,
        others.pop("api", "CONSUMER_GROUP_HEARTBEAT"),
        member | others.pop("requested", {}),
        answer | others.pop("answer", {}),
        **others,
    )


def old_heartbeat(second: float, code: int = 0, **others: Any) -> Row:
    """A HEARTBEAT of a classic member at generation 3."""
    requested = {"memberId": "m", "generationId": 3, "groupInstanceId": None}
    return request(second, "HEARTBEAT", requested, {}, **({"error_code": code} | others))


def left(second: float, *members: tuple[str, int], version: int = 5, **others: Any) -> Row:
    """A LEAVE_GROUP of members with the error of each."""
    if version < 3:
        ((member, _),) = members
        return request(second, "LEAVE_GROUP", {"memberId": member}, {}, **others)
    names = [{"memberId": member, "groupInstanceId": None} for member, _ in members]
    requested = [name | {"reason": f"{name['memberId']} ends"} for name in names]
    answered = [name | {"errorCode": code} for name, (_, code) in zip(names, members, strict=True)]
    return request(second, "LEAVE_GROUP", {"members": requested}, {"members": answered}, **others)
