"""Reference for the histogram buckets of the roll-up: which has a value, and which value it has."""

import math

from quotaflow.udfs.rules.usage_histogram import PER_LN, SCALE

_BASE = 2 ** (1 / 2**SCALE)
MIDDLE = 2 / (1 + _BASE)
"""The value of a histogram bucket as a share of its upper bound."""
MAX_ERROR = (_BASE - 1) / (_BASE + 1)
"""How far a value is from that of its histogram bucket at most, as a share of it: 4.4 %."""


def bucket_of(value: float) -> int | None:
    """The histogram bucket of a value that is not negative; None for zero."""
    return math.ceil(math.log(value) * PER_LN) - 1 if value > 0 else None


def value_of(bucket: int | None) -> float:
    """The value that represents a histogram bucket: as far from its least as from its greatest."""
    return 0.0 if bucket is None else math.exp((bucket + 1) / PER_LN) * MIDDLE
