"""Every number in conf has a bound: one that no calendar or memory has is refused at once."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.base import LONGEST_S
from quotaflow.pipelines.config.results import ProducerIdsSection, QuotasSection

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


_ANY = {("alerts", "rules")}
"""An alert compares any number of a client."""


def _numbers(model: type[BaseModel], place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _numbers(kind, (*place, name))
        elif re.search(r"\b(int|float)\b", str(kind)) and (*place, name) not in _ANY:
            yield (*place, name)


@pytest.mark.parametrize("place", sorted(_numbers(Conf)), ids=".".join)
@pytest.mark.parametrize("number", [10**400, -(10**400), 1e300], ids=["large", "negative", "real"])
def test_a_number_past_all_bounds_is_refused(place: tuple[str, ...], number: float) -> None:
    values: Any = number
    if place[-1] in {"brokers", "quotas", "retention_days", "sampling"}:
        values = {"requests" if place[-1] == "retention_days" else "1": number}
    for key in reversed(place):
        values = {key: values}
    with pytest.raises(ValidationError):
        Conf.model_validate(values)


def test_all_windows_of_a_rate_end_before_the_calendar() -> None:
    for section in (QuotasSection, ProducerIdsSection):
        bounds = section.model_json_schema()["properties"]
        longest = bounds["num_windows"]["maximum"] * bounds["window_ms"]["maximum"] // 1_000
        assert longest <= LONGEST_S
