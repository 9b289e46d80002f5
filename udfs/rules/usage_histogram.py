"""Histogram buckets of usage: OpenTelemetry's exponential histogram of scale 3.

The histogram bucket `i` has the values above 2^(i / 8), up to 2^((i + 1) / 8). Zero is apart: its
histogram bucket is None. So histograms are merged by adding counts, and every value is known to
within `MAX_ERROR`. The views and the SQL of the roll-up have the same formulas; a test compares
them.
"""

import math

SCALE = 3
PER_LN = 2**SCALE / math.log(2)
"""How many histogram buckets a factor of e has."""
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
