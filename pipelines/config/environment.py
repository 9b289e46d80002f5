"""Values of conf from variables of the environment: QUOTAFLOW__SECTION__KEY.

pydantic-settings builds the values by the fields that the names lead to. It takes a tenth of a
second to import, so only a process with such a variable imports this module.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from quotaflow.pipelines.config import yaml_text
from quotaflow.pipelines.config.base import model_in
from quotaflow.pipelines.config.conf import Conf
from quotaflow.pipelines.config.sources import BETWEEN, PREFIX
from quotaflow.pipelines.config.values import NUMBER_MAPS, TEXT_MAPS, parsed, put
from quotaflow.pipelines.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings

_Path = tuple[str, ...]
_PROPERTIES = ("kafka", "properties")


class _Source(EnvSettingsSource):
    """Reads each value of a field as YAML. An entry of a map stays text."""

    def __init__(self, texts: Mapping[_Path, str]) -> None:
        # It reads the fields and the config of the class, which every model has.
        settings = cast("type[BaseSettings]", Conf)
        super().__init__(settings, case_sensitive=True, env_nested_delimiter=BETWEEN)
        # A whole map comes before its entries, which add to it.
        ordered = sorted(texts.items(), key=lambda item: len(item[0]))
        self.env_vars = {BETWEEN.join(path): text for path, text in ordered}

    def field_is_complex(self, field: FieldInfo) -> bool:  # noqa: ARG002  the signature of the base
        """Whether to decode the text of a variable: always."""
        return True

    def decode_complex_value(
        self,
        field_name: str,  # noqa: ARG002  the signature of the base
        field: FieldInfo,  # noqa: ARG002
        value: Any,
    ) -> Any:
        """The value in YAML, which JSON is a part of."""
        return yaml_text.value(value)


def apply(values: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Set the values of these variables over those of a file.

    Raises ConfigError naming the variable whose name or text is wrong. An unknown section or key is
    left to the check of the whole conf.
    """
    by_path = paths(variables)
    texts = {path: variables[name] for path, name in by_path.items()}
    for path, name in by_path.items():
        if not (len(path) > len(_PROPERTIES) and path[:2] in TEXT_MAPS):
            parsed(texts[path], name, f"{name}='[\"User:CN=a,OU=b\"]'")
    given = _Source(texts)()
    for path, name in sorted(by_path.items(), key=lambda item: len(item[0])):
        value = _at(given, path, texts[path])
        if path[:2] in NUMBER_MAPS and len(path) > len(_PROPERTIES):
            value = yaml_text.value(texts[path])
        if len(path) == 1 and isinstance(value, dict) and _is_model(path[0]):
            # A section replaces its keys alone.
            for key, each in value.items():
                put(values, (*path, str(key)), each, name)
        else:
            put(values, path, value, name)


def paths(names: Iterable[str]) -> dict[_Path, str]:
    """The keys that each name of a variable leads to. Raises ConfigError for a name without keys,
    in small letters, or of the same keys as another.
    """
    by_path: dict[_Path, str] = {}
    for name in names:
        path = _path(name)
        if path in by_path:
            raise ConfigError(f"{by_path[path]} and {name} are the same key: leave one out")
        by_path[path] = name
    return by_path


def _path(name: str) -> _Path:
    parts = name.removeprefix(PREFIX).split(BETWEEN)
    if not all(parts):
        raise ConfigError(
            f"{name}: write QUOTAFLOW__SECTION__KEY, such as QUOTAFLOW__PLAN__LEASE_S"
        )
    keys: list[str] = []
    kind: Any = Conf
    while parts and hasattr(kind, "model_fields"):
        keys.append(parts.pop(0).lower())
        field = kind.model_fields.get(keys[-1])
        kind = field and model_in(field.annotation)
    right = PREFIX + BETWEEN.join([*(key.upper() for key in keys), *parts])
    if right != name:
        raise ConfigError(f"{name}: sections and keys are in capitals: write {right}")
    if not parts:
        return tuple(keys)
    if get_origin(kind) is not dict:
        return (*keys, *(part.lower() for part in parts))
    return (*keys, _entry(tuple(keys), BETWEEN.join(parts)))


def _entry(keys: _Path, name: str) -> str:
    """The name of an entry of a map, as it is written; a shell has no dots for Kafka's names."""
    is_in_capitals = keys == _PROPERTIES and name == name.upper()
    return name.lower().replace("_", ".") if is_in_capitals else name


def _is_model(section: str) -> bool:
    field = Conf.model_fields.get(section)
    return field is not None and hasattr(field.annotation, "model_fields")


def _at(values: Any, path: _Path, text: str) -> Any:
    """The value at these keys; the text where the keys lead to no field."""
    for key in path:
        if not isinstance(values, dict) or key not in values:
            return text
        values = values[key]
    return values
