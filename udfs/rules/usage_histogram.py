"""Histogram buckets of usage: OpenTelemetry's exponential histogram of scale 3.

The histogram bucket `i` has the values above 2^(i / 8), up to 2^((i + 1) / 8). Zero is apart: its
histogram bucket is None. So histograms are merged by adding counts, and every value is known to
within 4.4 %. The views and the SQL of the roll-up have the formulas;
`tests/oracle/rules/usage_histogram.py` compares them.
"""

import math

SCALE = 3
PER_LN = 2**SCALE / math.log(2)
"""How many histogram buckets a factor of e has."""
