"""Bytes of the consumer protocol as real clients write them, broken ones, and any others."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules import consumer_protocol
from quotaflow.udfs.rules.consumer_protocol import MAX_ITEMS, Subscription


def text(*parts: bytes | str | tuple[str, int]) -> str:
    """Base64 of bytes, of names with their length, and of numbers by their form."""
    made = b""
    for part in parts:
        if isinstance(part, str):
            made += struct.pack(">h", len(part.encode())) + part.encode()
        else:
            made += part if isinstance(part, bytes) else struct.pack(f">{part[0]}", part[1])
    return base64.b64encode(made).decode()


V0, V1, V3 = (("h", n) for n in (0, 1, 3))
NO_DATA, NONE_OWNED, NO_GENERATION = ("i", -1), ("i", 0), ("i", -1)
SUBSCRIPTIONS = {
    "java": ("AAMAAAABAAZvcmRlcnMAAAAE/////wAAAAD/////AARhei1i", Subscription(("orders",), "az-b")),
    "librdkafka": ("AAMAAAABAAdleHBvcnRzAAAAAAAAAAD/////AAA=", Subscription(("exports",), None)),
    "topics in another order and twice": (
        text(V0, ("i", 3), "b", "a", "b", NO_DATA),
        Subscription(("a", "b"), None),
    ),
    "no topic": (text(V0, ("i", 0), NO_DATA), Subscription((), None)),
    "version 1 without owned partitions": (
        text(V1, ("i", 1), "t", NO_DATA),
        Subscription(("t",), None),
    ),
    "a broken end": (text(V3, ("i", 1), "t", NO_DATA, ("i", 9)), Subscription(("t",), None)),
    "owned partitions before the rack": (
        text(
            *(V3, ("i", 1), "t", NO_DATA, ("i", 1), "t", ("i", 2), ("i", 0), ("i", 1)),
            *(("i", 7), "az-c"),
        ),
        Subscription(("t",), "az-c"),
    ),
}


@pytest.mark.parametrize("case", SUBSCRIPTIONS)
def test_topics_and_rack_of_a_subscription(case: str) -> None:
    given_text, expected = SUBSCRIPTIONS[case]
    assert consumer_protocol.subscription(given_text) == expected


ASSIGNMENTS = {
    "java": (
        "AAMAAAABAAZvcmRlcnMAAAADAAAAAAAAAAEAAAAC/////w==",
        (("orders", 0), ("orders", 1), ("orders", 2)),
    ),
    "librdkafka": ("AAAAAAABAAdleHBvcnRzAAAAAQAAAAAAAAAA", (("exports", 0),)),
    "nothing": ("AAAAAAAAAAAAAA==", ()),
}


@pytest.mark.parametrize("case", ASSIGNMENTS)
def test_partitions_of_an_assignment(case: str) -> None:
    given_text, expected = ASSIGNMENTS[case]
    assert consumer_protocol.assignment(given_text) == expected


UNREADABLE = {
    "hidden": "[hidden]",
    "not ASCII": "ä",
    "empty": "",
    "too short": "AAA",
    "a count without names": text(V0, ("i", 2), "t"),
    "a negative count": text(V0, ("i", -1)),
    "a count past any bound": text(V0, ("i", MAX_ITEMS + 1)),
    "a name that is missing": text(V0, ("i", 1), ("h", -1)),
    "no UTF-8": text(V0, ("i", 1), b"\x00\x01\xff"),
    "of Kafka Connect": text(V0, "worker-1", "http://host:8083", ("q", 5)),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_no_consumer_protocol(case: str) -> None:
    for read in (consumer_protocol.subscription, consumer_protocol.assignment):
        with pytest.raises(ValueError, match=r".*"):
            read(UNREADABLE[case])


def test_a_negative_partition_is_none() -> None:
    with pytest.raises(ValueError, match="negative"):
        consumer_protocol.assignment(text(V0, ("i", 1), "t", ("i", 1), ("i", -1)))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(given_bytes: bytes) -> None:
    encoded = base64.b64encode(given_bytes).decode()
    for read in (consumer_protocol.subscription, consumer_protocol.assignment):
        try:
            read(encoded)
        except ValueError:
            continue
