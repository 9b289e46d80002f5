"""The demo's move begins alone: other threads of the demo move topics too."""

import time

import pytest

from quotaflow.demo.traffic_configs import begin_alone
from quotaflow.pipelines.errors import KafkaError

_REFUSED = (
    "ReassignPartitionsCommand failed (1): Cannot execute because there is an existing partition "
    "assignment. Use --additional to override this"
)


class _Tool:
    """Runs that refuse in this order, each with its message, and then one that works."""

    def __init__(self, *refusals: str) -> None:
        self.refusals = list(refusals)
        self.done = 0

    def __call__(self) -> None:
        if self.refusals:
            raise KafkaError(self.refusals.pop(0))
        self.done += 1


def test_a_move_that_began_while_the_tool_started_is_waited_for() -> None:
    tool, moves = _Tool(_REFUSED), ["stock", "", "stock", ""]
    begin_alone(tool, lambda: moves.pop(0), until=time.monotonic() + 30)
    assert tool.done == 1
    assert not moves


def test_any_other_refusal_is_an_error_at_once() -> None:
    tool = _Tool("no such topic")
    with pytest.raises(KafkaError, match="no such topic"):
        begin_alone(tool, lambda: None, until=time.monotonic() + 30)


def test_a_move_that_does_not_end_is_an_error_at_the_deadline() -> None:
    with pytest.raises(KafkaError, match="existing partition assignment"):
        begin_alone(_Tool(_REFUSED), lambda: ["stock"], until=time.monotonic())
