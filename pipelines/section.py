"""What every section of conf is made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(gt=0)]
Bound = Annotated[float, Field(allow_inf_nan=False)]
PositiveRate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A part of conf: immutable, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
