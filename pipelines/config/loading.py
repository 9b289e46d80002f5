"""Loads conf: every problem in one error that names what made it."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from quotaflow.pipelines.config.base import problems
from quotaflow.pipelines.config.conf import Conf
from quotaflow.pipelines.config.values import override, read
from quotaflow.pipelines.errors import ConfigError

_ENVIRONMENT = "environment"


def packaged() -> Path:
    """The file of conf that is read where none is given."""
    return Path(str(resources.files("quotaflow.conf") / "local.yaml"))


def load(
    file: Path | None = None,
    overrides: list[str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Conf:
    """Read conf from a YAML file (the packaged local.yaml without one), then apply variables of the
    environment by their names, then key=value pairs.

    Reads no environment itself: `sources.given` does. Raises ConfigError with every problem at
    once, each naming the key, the value and the bound, and what made it: the file, a variable or a
    pair.
    """
    source = file or packaged()
    values = read(source)
    layers = [(str(source), deepcopy(values))]
    if variables:
        from quotaflow.pipelines.config import environment  # noqa: PLC0415  slow to import

        environment.apply(values, variables)
        layers.append((_ENVIRONMENT, deepcopy(values)))
    for pair in overrides or []:
        override(values, pair)
    try:
        return Conf.model_validate(values)
    except ValidationError as error:
        wrong = problems(error, Conf)
    by_source: dict[str, list[str]] = {}
    for text, layer in _made_by(wrong, [*layers, ("--set", values)]):
        by = _names(wrong[text], variables or {}) if layer is _ENVIRONMENT else layer
        by_source.setdefault(by, []).append(text)
    raise ConfigError("; ".join(f"{by}: {'; '.join(texts)}" for by, texts in by_source.items()))


def _made_by(
    wrong: Iterable[str], layers: list[tuple[str, dict[str, Any]]]
) -> Iterator[tuple[str, str]]:
    """Each problem with the first layer that has it; the last layer has all of them."""
    left = list(wrong)
    for name, values in layers:
        there = left if values is layers[-1][1] else _problems(values)
        yield from ((text, name) for text in left if text in there)
        left = [text for text in left if text not in there]


def _names(place: tuple[str, ...], variables: Mapping[str, str]) -> str:
    """The variables that give what is at or below this place."""
    from quotaflow.pipelines.config import environment  # noqa: PLC0415  slow to import

    paths = environment.paths(variables)
    near = [name for path, name in paths.items() if path[: len(place)] == place[: len(path)]]
    return ", ".join(near)


def _problems(values: dict[str, Any]) -> Iterable[str]:
    try:
        Conf.model_validate(values)
    except ValidationError as error:
        return problems(error, Conf)
    return ()
