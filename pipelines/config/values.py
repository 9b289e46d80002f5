"""Values of conf before they are checked: from a YAML file, and from pairs of --set."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from quotaflow.pipelines.config import yaml_text
from quotaflow.pipelines.errors import ConfigError

_MAX_CHARS = 1024 * 1024
# Values of these are text for Kafka and Spark: 0123 or no must stay as they are written.
TEXT_MAPS = {("kafka", "properties"), ("spark", "conf"), ("warehouse", "store")}
NUMBER_MAPS = {
    ("ingest", "sampling"),
    ("producer_ids", "quotas"),
    ("replication", "brokers"),
    ("upkeep", "retention_days"),
}
"""Maps of numbers, which have no = in them."""
_MAPS = {*TEXT_MAPS, *NUMBER_MAPS}

_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'"
_QUOTED_ENTRY = re.compile(
    rf"(?P<section>\w+)\.(?P<name>\w+)\.(?P<leaf>{_QUOTED})=(?P<text>.*)", re.DOTALL
)
"""A pair whose name of an entry is in quotes."""


def read(file: Path) -> dict[str, Any]:
    """The sections of a file. Raises ConfigError when it cannot be read or is no YAML."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_MAX_CHARS + 1)
        if len(text) > _MAX_CHARS:
            raise ConfigError(f"{file} has more than {_MAX_CHARS:,} characters: it is no conf")
        values = yaml_text.value(text)
    except OSError as error:
        raise ConfigError(f"cannot read conf {file}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        # Not the line itself, which may have a secret.
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        kind = "" if isinstance(error, yaml_text.RefusedError) else " is not YAML"
        raise ConfigError(f"{file}{kind}: line {line}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigError(f"{file} is not YAML: it has bytes that are no text") from None
    if not isinstance(values, dict | None):
        raise ConfigError(f"{file} must hold sections such as kafka: and warehouse:")
    # A section with all lines commented out is None in YAML. It counts as missing.
    return {name: section for name, section in (values or {}).items() if section is not None}


def override(values: dict[str, Any], pair: str) -> None:
    """Set one value. Raises ConfigError if the pair is not section.key=value.

    The name of an entry of a map may be in quotes, so that it can have = in it.
    """
    key, (section, name, leaf), text = _split(pair)
    path = (section, name) if leaf is None else (section, name, leaf)
    is_text = leaf is not None and (section, name) in TEXT_MAPS
    put(values, path, text if is_text else _parsed_of(key, text), f"--set {key}")


def put(values: dict[str, Any], path: tuple[str, ...], value: Any, by: str) -> None:
    """Set the value below these keys. Raises ConfigError naming `by` if one of them is a value."""
    holder = values
    for part in path[:-1]:
        child = holder.get(part)
        holder[part] = {} if child is None else child
        holder = holder[part]
        if not isinstance(holder, dict):
            raise ConfigError(f"{by}: {part} in conf must hold keys and values")
    holder[path[-1]] = value


def _split(pair: str) -> tuple[str, tuple[str, str, str | None], str]:
    """The key, its section, name and entry of a map, and the text of the value."""
    quoted = _QUOTED_ENTRY.fullmatch(pair)
    if quoted and (quoted["section"], quoted["name"]) in _MAPS:
        section, name, text = quoted["section"], quoted["name"], quoted["text"]
        key = f"{section}.{name}.{quoted['leaf']}"
        return key, (section, name, str(_parsed_of(key, quoted["leaf"]))), text
    key, equals, text = pair.partition("=")
    section, _, rest = key.partition(".")
    if not equals or not rest:
        # The text may have a secret: only its key is printed.
        raise ConfigError(f"--set {key}: write section.key=value, e.g. warehouse.path=/data")
    name, _, leaf = rest.partition(".")
    if not leaf or (section, name) not in _MAPS:
        return key, (section, rest, None), text
    if "=" in text and (section, name) in NUMBER_MAPS:
        raise ConfigError(
            f"--set {key}: quote a name that has = in it, and the pair for the shell: "
            f"--set '{section}.{name}.\"CN=a,OU=b\"=5'"
        )
    return key, (section, name, leaf), text


def _parsed_of(key: str, text: str) -> Any:
    return parsed(text, f"--set {key}", f"--set '{key}=[\"User:CN=a,OU=b\"]'")


def parsed(text: str, by: str, example: str) -> Any:
    """The value that a text is in YAML.

    Raises ConfigError naming `by`, without the text, for what is no YAML; with `example`, for names
    that YAML would split.
    """
    try:
        value = yaml_text.value(text)
        plain_items = list(_plain_items(text))
    except yaml_text.RefusedError as error:
        raise ConfigError(f"{by}: {error.problem}") from None
    except yaml.YAMLError:
        raise ConfigError(f"{by}: the value is not YAML: quote it") from None
    if any("=" in item for item in plain_items):
        raise ConfigError(
            f"{by}: quote each name that has = in it, because YAML splits a list at each comma: "
            f"{example}"
        )
    return value


def _plain_items(text: str) -> Iterator[str]:
    """What a list in YAML has without quotes."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.SequenceStartEvent)
        depth -= isinstance(event, yaml.SequenceEndEvent)
        if depth and isinstance(event, yaml.ScalarEvent) and event.style is None:
            yield event.value
