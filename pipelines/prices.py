"""What traffic costs: a section of conf."""

from typing import Annotated

from pydantic import Field

from quotaflow.pipelines.section import Section, like

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Prices(Section):
    """What a GiB costs: produced, consumed, and on top of that between racks."""

    currency: Annotated[str, like("[A-Z]{3}", "write three letters, such as EUR")] = "USD"
    produced_per_gib: Price = 0.0
    consumed_per_gib: Price = 0.0
    cross_rack_per_gib: Price = 0.0
