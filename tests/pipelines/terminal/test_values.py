"""Values as text."""

import pytest

from quotaflow.pipelines.terminal import values


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (200_000, "2 d")],
)
def test_a_duration_has_one_unit(seconds: float, expected: str) -> None:
    assert values.duration(seconds) == expected
