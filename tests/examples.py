"""How many examples a property draws that takes a tenth of a second or more for each."""

from hypothesis import settings

EXPENSIVE = settings(max_examples=max(settings().max_examples // 25, 2))
"""2 examples where other properties have 10, and 8 in `make faults`: each run draws others."""
