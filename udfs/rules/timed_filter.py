"""Which ids were seen recently, in bounded memory: Bloom filters that time starts and drops."""

import math
import struct
from dataclasses import dataclass
from functools import cache
from typing import Self

from mmh3 import mmh3_x64_128_utupledigest

_pack = struct.Struct("<q").pack


@dataclass(frozen=True, slots=True)
class BloomShape:
    """How large a Bloom filter is: its bits, and how many of them one value sets."""

    bits: int
    hashes: int

    @classmethod
    @cache
    def for_capacity(cls, expected_items: int, false_positive_rate: float) -> Self:
        """The smallest filter with this rate at `expected_items` values, by Bloom's formulas."""
        if expected_items < 1:
            raise ValueError(f"expected_items must be at least 1, got {expected_items}")
        if not 0 < false_positive_rate < 1:
            raise ValueError(
                f"false_positive_rate must be above 0 and below 1, got {false_positive_rate}"
            )
        bits = math.ceil(-expected_items * math.log(false_positive_rate) / math.log(2) ** 2)
        return cls(bits, max(round(bits / expected_items * math.log(2)), 1))

    def positions(self, value: int) -> list[int]:
        """Bits of a 64-bit value: MurmurHash3, then enhanced double hashing.

        The step grows by one each time (Dillinger and Manolios): with a constant step small
        filters miss their rate, as two values of one step share most of their bits.
        """
        try:
            first, step = mmh3_x64_128_utupledigest(_pack(value))
        except struct.error as error:
            raise ValueError(f"value must be a signed 64-bit integer, got {value}") from error
        bits = self.bits
        position, step = first % bits, step % bits
        positions = [position]
        for i in range(1, self.hashes):
            position = (position + step) % bits
            positions.append(position)
            step += i
        return positions


class TimedBloomFilter:
    """Finds ids that were not seen recently (KIP-936): an id is remembered for 0.5 to 1.5 windows.

    Filters begin at multiples of `window_ms` since the epoch. A filter is dropped half a window
    after its successor begins, so it lives for 1.5 windows. Every sighting is put into the newest
    filter. The KIP can also be read as "only unseen ids are put": then an id in steady use is
    forgotten and counted again, at times that depend on when reading began. With every sighting
    put, an answer depends on the sightings of the last 1.5 windows alone, so any start before them
    gives the same answer, and an id seen more often than every half window counts once.

    Time never goes back: a late time is compared with the filters that exist, and a late sighting
    is put into the newest of them. Memory is two filters for any number of ids.
    """

    __slots__ = ("_begin_ms", "_newest", "_previous", "_rotation_ms", "_shape", "_window_ms")

    def __init__(self, expected_items: int, false_positive_rate: float, window_ms: int) -> None:
        """Begin empty; `false_positive_rate` is for up to `expected_items` ids per window."""
        if window_ms < 1:
            raise ValueError(f"window_ms must be at least 1, got {window_ms}")
        self._shape = BloomShape.for_capacity(expected_items, false_positive_rate)
        self._window_ms = window_ms
        self._newest = bytearray()
        self._previous: bytearray | None = None
        self._begin_ms = -math.inf
        self._rotation_ms = -math.inf

    def first_sighting(self, value: int, time_ms: int) -> bool:
        """Remember that `value`, a 64-bit id, was seen at `time_ms`, and return whether it is new.

        It is new if it was not seen recently: never wrongly yes, rarely wrongly no.
        """
        if time_ms >= self._rotation_ms:
            self._rotate(time_ms)
        positions = self._shape.positions(value)
        newest = self._newest
        if _all_set(newest, positions):
            return False
        for position in positions:
            newest[position >> 3] |= 1 << (position & 7)
        return self._previous is None or not _all_set(self._previous, positions)

    def _rotate(self, time_ms: int) -> None:
        """Start and drop filters as of `time_ms`, and set when that is due again."""
        begin_ms = time_ms - time_ms % self._window_ms
        if begin_ms > self._begin_ms:
            follows = begin_ms - self._begin_ms == self._window_ms
            self._previous = self._newest if follows else None
            self._newest = bytearray((self._shape.bits + 7) // 8)
            self._begin_ms = begin_ms
        if 2 * (time_ms - begin_ms) < self._window_ms:
            self._rotation_ms = begin_ms + (self._window_ms + 1) // 2
        else:
            self._previous = None
            self._rotation_ms = begin_ms + self._window_ms


def _all_set(bits: bytearray, positions: list[int]) -> bool:
    for position in positions:  # noqa: SIM110 (the generator of all() doubles the time)
        if not bits[position >> 3] >> (position & 7) & 1:
            return False
    return True
