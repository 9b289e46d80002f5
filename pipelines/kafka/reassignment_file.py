"""The JSON of kafka-reassign-partitions: the target replicas of partitions."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quotaflow.pipelines.errors import ConfigError

_Node = Annotated[int, Field(ge=0)]
_MAX_ERRORS = 3


class TargetReplicas(BaseModel):
    """A partition and its target replicas, the first of which is its preferred leader."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    topic: Annotated[str, Field(min_length=1, max_length=249)]
    partition: _Node
    replicas: Annotated[list[_Node], Field(min_length=1)]
    log_dirs: list[str] = []


class _Reassignment(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    version: Literal[1]
    partitions: Annotated[list[TargetReplicas], Field(min_length=1)]


def read(path: Path) -> tuple[TargetReplicas, ...]:
    """The partitions of a file. Raises ConfigError with what is wrong in it, and where."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    try:
        partitions = _Reassignment.model_validate_json(text).partitions
    except ValidationError as error:
        raise ConfigError(f"{path} is no reassignment: {_error_text(error)}") from None
    seen = set[tuple[str, int]]()
    for target in partitions:
        name = f"{target.topic}-{target.partition}"
        if len(set(target.replicas)) < len(target.replicas):
            raise ConfigError(f"{path} gives {name} a replica twice: {target.replicas}")
        if (target.topic, target.partition) in seen:
            raise ConfigError(f"{path} names {name} twice: keep one")
        seen.add((target.topic, target.partition))
    return tuple(partitions)


def _error_text(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_input=False)
    texts = [
        ": ".join(filter(None, (".".join(map(str, one["loc"])), _lower(one["msg"]))))
        for one in errors[:_MAX_ERRORS]
    ]
    more = len(errors) - len(texts)
    return "; ".join(texts) + (f"; and {more} more" if more else "")


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
