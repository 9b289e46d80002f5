"""Values of conf before they are checked: a YAML file, and section.key=value pairs over it."""

from pathlib import Path
from typing import Any

import yaml

from quotaflow.pipelines.errors import ConfigError

# Values of these are text to Kafka and Spark: 0123 or no must stay what was written.
_TEXT_MAPS = {("kafka", "properties"), ("spark", "conf")}
_MAPS = {
    *_TEXT_MAPS,
    ("ingest", "sampling"),
    ("producer_ids", "quotas"),
    ("replication", "brokers"),
    ("upkeep", "retention_days"),
    ("alerts", "webhook"),
}


def read(file: Path) -> dict[str, Any]:
    """The sections of a file. Raises ConfigError when it cannot be read or is no YAML."""
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read conf {file}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        # Only where and what: the line itself may hold a secret.
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{file} is not YAML: line {line}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigError(f"{file} is not YAML: it holds bytes that are no text") from None
    if not isinstance(values, dict | None):
        raise ConfigError(f"{file} must hold sections such as kafka: and warehouse:")
    # A section whose every line is commented out is as if it were not there.
    return {name: section for name, section in (values or {}).items() if section is not None}


def override(values: dict[str, Any], pair: str) -> None:
    """Set one value. Raises ConfigError when the pair does not read section.key=value."""
    key, equals, text = pair.partition("=")
    section, _, name = key.partition(".")
    if not equals or not name:
        # What stands there may hold a secret: only its key is repeated.
        raise ConfigError(f"--set {key}: write section.key=value, e.g. warehouse.path=/data")
    nested, _, leaf = name.partition(".")
    is_text = bool(leaf) and (section, nested) in _TEXT_MAPS
    path = [section, nested] if leaf and (section, nested) in _MAPS else [section]
    holder = values
    for part in path:
        child = holder.get(part)
        holder[part] = {} if child is None else child
        holder = holder[part]
        if not isinstance(holder, dict):
            raise ConfigError(f"--set {key}: {part} in conf must hold keys and values")
    holder[leaf if len(path) > 1 else name] = text if is_text else _parsed(key, text)


def _parsed(key: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"--set {key}: the value is not YAML: quote it") from None
