"""Where each value of conf comes from: a line of its file, a variable, --set, or a default."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from quotaflow.pipelines.config import yaml_text
from quotaflow.pipelines.config.conf import Conf
from quotaflow.pipelines.config.loading import packaged
from quotaflow.pipelines.config.secrets import KEY_REFERENCES as REFERENCES
from quotaflow.pipelines.config.secrets import is_secret
from quotaflow.pipelines.config.values import override

DEFAULT = "default"
SET = "--set"
_HIDDEN = "(not shown)"
_Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """A value, and where it comes from. A secret that is no reference is not shown."""

    key: str
    value: Any
    source: str


def origins(
    conf: Conf,
    file: Path | None,
    overrides: list[str] | None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Origin]:
    """Every value of a conf that `load` read from these, in the order of its sections."""
    source = file or packaged()
    names = _names(variables) if variables else {}
    lines = _lines(source)
    given: dict[str, Any] = {}
    for pair in overrides or []:
        override(given, pair)
    pairs = {keys for keys, _ in _leaves(given)}
    for keys, value in _leaves(conf):
        place = DEFAULT
        if _nearest(keys, pairs):
            place = SET
        elif above := _nearest(keys, names):
            place = names[above]
        elif above := _nearest(keys, lines):
            place = f"{source}:{lines[above]}"
        yield Origin(".".join(keys), _shown(keys[-1], value), place)


def _names(variables: Mapping[str, str]) -> dict[_Keys, str]:
    """The variable that gives each value."""
    from quotaflow.pipelines.config import environment  # noqa: PLC0415  slow to import

    given: dict[str, Any] = {}
    environment.apply(given, variables)
    by_path = environment.paths(variables)
    nearest = {keys: _nearest(keys, by_path) for keys, _ in _leaves(given)}
    return {keys: by_path[path] for keys, path in nearest.items() if path}


def _nearest(keys: _Keys, places: Any) -> _Keys | None:
    """The longest part of `keys` that is in `places`."""
    parts = (keys[:length] for length in range(len(keys), 0, -1))
    return next((part for part in parts if part in places), None)


def _shown(key: str, value: Any) -> Any:
    is_plain = isinstance(value, str) and not value.startswith(REFERENCES)
    return _HIDDEN if is_plain and is_secret(key) else value


def _leaves(values: Any, above: _Keys = ()) -> Iterator[tuple[_Keys, Any]]:
    """Each value below the sections, with its keys; an empty map and a list are values."""
    if isinstance(values, BaseModel):
        values = {name: getattr(values, name) for name in type(values).model_fields}
    if not isinstance(values, dict) or (above and not values):
        yield above, _plain(values)
        return
    for key, value in values.items():
        yield from _leaves(value, (*above, str(key)))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def _lines(file: Path) -> dict[_Keys, int]:
    """The line of each key of a YAML file."""
    root = yaml_text.root(file.read_text(encoding="utf-8"))
    return dict(_lines_of(root, ()))


def _lines_of(node: Any, above: _Keys) -> Iterator[tuple[_Keys, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            keys = (*above, str(key.value))
            # A section gives only what its keys do: its other values are defaults.
            if above or isinstance(value, yaml.SequenceNode):
                yield keys, key.start_mark.line + 1
            yield from _lines_of(value, keys)
