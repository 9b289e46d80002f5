"""How far a number is on its way from "says nothing" to "says all"."""


def ramp(value: float | None, low: float, high: float) -> float:
    """0 up to low, 1 from high on; 0 if it is not known."""
    if value is None or value != value:  # noqa: PLR0124  NaN
        return 0.0
    return min(1.0, max(0.0, (value - low) / (high - low)))
