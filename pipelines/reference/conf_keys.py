"""Every key of conf by section, with its default and its description."""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

import yaml

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.base import Section

REQUIRED = "required"
_HEAD = """\
# Keys of conf

This page is a reference for engineers who configure quotaflow. It answers: which keys exist, and
what are their defaults and bounds? [How conf is given](../conf.md) has the rest.

If a row gives no other bound, a number of seconds, bytes or things is whole and greater than 0.
"""
_PATH_OF_PAGE = re.compile(r"docs/((\w+)\.md(#[\w-]+)?)")


class Key(NamedTuple):
    """One key of conf: its path, its default (JSON, or REQUIRED) and its description."""

    path: str
    default: str
    description: str


def each_key(section: type[Section] = Conf, above: str = "") -> Iterator[Key]:
    """Each key of a section and of those in it, in conf's order."""
    described = section.descriptions()
    for name, field in section.model_fields.items():
        path, annotation = f"{above}{name}", field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from each_key(annotation, f"{path}.")
            continue
        default = field.get_default(call_default_factory=True)
        given = REQUIRED if field.is_required() else json.dumps(_plain(default))
        yield Key(path, given, described.get(name, ""))
        for item in get_args(annotation):
            if isinstance(item, type) and issubclass(item, Section):
                of_list = "[]" if isinstance(default, list) else ""
                yield from each_key(item, f"{path}{of_list}.")


def text() -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for name, field in Conf.model_fields.items():
        own = [key for key in each_key() if re.fullmatch(rf"{name}(\W.*)?", key.path)]
        is_section = isinstance(field.annotation, type) and issubclass(field.annotation, Section)
        about = inspect.getdoc(field.annotation) if is_section else None
        parts += [f"## {name}\n", *([_linked(f"{about}\n")] if about else [])]
        parts += ["| key | default | meaning |", "| --- | --- | --- |", *map(_row, own), ""]
    return "\n".join(parts)


def _plain(value: Any) -> Any:
    """A default as YAML has it; of a section what was given, because the rest is defaults."""
    if isinstance(value, Section):
        return value.model_dump(exclude_unset=True)
    return list(map(_plain, value)) if isinstance(value, list) else value


def _row(key: Key) -> str:
    if key.default == REQUIRED:
        default = REQUIRED
    else:
        value = yaml.safe_dump(json.loads(key.default), default_flow_style=True, width=10_000)
        default = f"`{value.strip().removesuffix('...').strip()}`"
    return f"| `{key.path}` | {default} | {_linked(' '.join(key.description.split()))} |"


def _linked(words: str) -> str:
    return _PATH_OF_PAGE.sub(r"[\2](../\1)", words)
