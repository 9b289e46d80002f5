"""Every time in conf has an end: a number that no calendar has must be refused, not fail later."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.base import LONGEST_S

_UNITS = ("_s", "_ms", "_days")
_NO_TIMES = ("_per_s", "_p99_ms")
"""Rates, and what is compared with a measured time."""


def _times(model: type[BaseModel], place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _times(kind, (*place, name))
        elif name.endswith(_UNITS) and not name.endswith(_NO_TIMES):
            yield (*place, name)


TIMES = sorted(_times(Conf))


def test_the_times_of_conf_are_found() -> None:
    assert len(TIMES) >= 25


@pytest.mark.parametrize("place", TIMES, ids=".".join)
def test_a_time_beyond_all_calendars_is_refused_with_its_bound(place: tuple[str, ...]) -> None:
    values: Any = (LONGEST_S + 1) * 1_000
    if place[-1] == "retention_days":
        values = {"requests": values}
    for key in reversed(place):
        values = {key: values}
    with pytest.raises(ValidationError, match="less than or equal to"):
        Conf.model_validate(values)
