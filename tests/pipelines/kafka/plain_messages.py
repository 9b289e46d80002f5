"""Messages of Kafka's protocol from plain values."""

from typing import Any


def message(kind: Any, /, **values: Any) -> Any:
    """A message: dicts are its parts, and what is not given is Kafka's default."""
    fields = kind._struct.fields

    def value_of(name: str, value: Any) -> Any:
        match value:
            case dict():
                return message(fields[name].data_class, **value)
            case [dict(), *_]:
                part = fields[name].array_of.data_class
                return [message(part, **each) for each in value]
        return value

    return kind(**{name: value_of(name, value) for name, value in values.items()})


def sent(kind: Any, version: int, /, **values: Any) -> Any:
    """A message that has passed through Kafka's own encoding."""
    return kind.decode(message(kind, **values).encode(version=version), version=version)
