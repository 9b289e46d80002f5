"""Bytes of Kafka's consumer protocol: what classic members subscribe to, and what they get.

Layouts are those of ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json of Kafka.
All versions begin alike, and some clients write a later part wrongly. So a broker reads the first
part of a subscription alone, and so does this.
"""

import base64
import binascii
import struct
from dataclasses import dataclass

MAX_ITEMS = 100_000
"""Most topics, and most partitions, that are read of one text."""
_WITH_RACK = 3


@dataclass(frozen=True, slots=True)
class Subscription:
    """Topics that a member subscribes to, sorted, and its rack; None: it names none."""

    topics: tuple[str, ...]
    rack: str | None


def subscription(text: str) -> Subscription:
    """The subscription in the base64 of JOIN_GROUP. Raises ValueError where it is none."""
    reader = _Reader(text)
    version = reader.int16()
    topics = sorted({reader.name() for _ in range(reader.count())})
    return Subscription(tuple(topics), _rack(reader) if version >= _WITH_RACK else None)


def assignment(text: str) -> tuple[tuple[str, int], ...]:
    """Topics and partitions, sorted, of the base64 of SYNC_GROUP. Raises ValueError likewise."""
    reader = _Reader(text)
    reader.int16()
    return tuple(sorted(_partitions(reader)))


def _partitions(reader: "_Reader") -> set[tuple[str, int]]:
    partitions = set[tuple[str, int]]()
    for _ in range(reader.count()):
        topic = reader.name()
        partitions |= {(topic, reader.partition()) for _ in range(reader.count())}
        if len(partitions) > MAX_ITEMS:
            raise ValueError(f"more than {MAX_ITEMS} partitions")
    return partitions


def _rack(reader: "_Reader") -> str | None:
    """The rack behind user data, owned partitions and generation; None where these are broken."""
    try:
        reader.skip(max(0, reader.int32()))
        _partitions(reader)
        reader.int32()
        return reader.name() or None
    except ValueError:
        return None


class _Reader:
    def __init__(self, text: str) -> None:
        try:
            self._bytes = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
        self._at = 0

    def int16(self) -> int:
        return self._number(">h", 2)

    def int32(self) -> int:
        return self._number(">i", 4)

    def partition(self) -> int:
        number = self.int32()
        if number < 0:
            raise ValueError("a negative partition")
        return number

    def count(self) -> int:
        number = self.int32()
        if not 0 <= number <= MAX_ITEMS:
            raise ValueError("no count")
        return number

    def name(self) -> str:
        length = self.int16()
        if length < 0:
            raise ValueError("a name is missing")
        return self.skip(length).decode("utf-8")

    def skip(self, length: int) -> bytes:
        part = self._bytes[self._at : self._at + length]
        if len(part) < length:
            raise ValueError("the bytes end too early")
        self._at += length
        return part

    def _number(self, form: str, length: int) -> int:
        number: int = struct.unpack(form, self.skip(length))[0]
        return number
