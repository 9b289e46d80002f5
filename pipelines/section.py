"""What every section of conf is made of."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(gt=0)]
Bound = Annotated[float, Field(allow_inf_nan=False)]
PositiveRate = Annotated[float, Field(gt=0, allow_inf_nan=False)]

LONGEST_LEASE_S = 30 * 86_400
LeaseSeconds = Annotated[int, Field(ge=60, le=LONGEST_LEASE_S)]


def _as_kafka_prints(principal: str) -> str:
    if ":" not in principal:
        raise ValueError(f"write User:{principal} instead of {principal}")
    return principal


Principal = Annotated[str, AfterValidator(_as_kafka_prints)]


def _topic_of_kafka(name: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in {".", ".."}:
        near = re.sub(r"[^a-zA-Z0-9._-]", "_", name)[:249]
        right = "null for none" if near in {"", ".", ".."} else near
        raise ValueError(f"a topic has 1 to 249 letters, digits, . _ and -: write {right}")
    return name


Topic = Annotated[str, AfterValidator(_topic_of_kafka)]


def bare(user: str) -> str:
    """The user. Raises ValueError for a principal: quotas are by the name alone."""
    if user.startswith("User:"):
        raise ValueError(f"write {user.removeprefix('User:')} instead of {user}")
    return user


def like(pattern: str, said: str) -> AfterValidator:
    """Refuses text of another form; `said` is what to write, in words and with an example."""

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(said)
        return text

    return AfterValidator(checked)


class Section(BaseModel):
    """A part of conf: immutable, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
