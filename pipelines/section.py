"""What every section of conf is made of."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(gt=0)]
Bound = Annotated[float, Field(allow_inf_nan=False)]
PositiveRate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _as_kafka_prints(principal: str) -> str:
    if ":" not in principal:
        raise ValueError(f"write User:{principal} instead of {principal}")
    return principal


Principal = Annotated[str, AfterValidator(_as_kafka_prints)]


class Section(BaseModel):
    """A part of conf: immutable, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
