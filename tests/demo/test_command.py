"""Wrong use of `quotaflow demo` is an error before anything starts."""

import pytest

from quotaflow.demo import command, traffic
from quotaflow.pipelines.__main__ import execute


def test_a_scale_too_small_is_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["demo", "--scale", "0.1"]) == 2
    error_text = capsys.readouterr().err
    assert "'0.1' for '--scale': Input should be greater than or equal to 0.5" in error_text


def test_a_seed_of_text_is_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["demo", "--seed", "x"]) == 2
    assert "'x' for '--seed': Input should be a valid integer" in capsys.readouterr().err


def test_the_bound_is_the_traffic_s() -> None:
    assert command._LEAST_SCALE == traffic.MIN_SCALE
