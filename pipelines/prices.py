"""What traffic costs: a section of conf, which `quotaflow snapshot` writes down for views."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from quotaflow.pipelines.section import Section

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Prices(Section):
    """What a GiB costs: produced, consumed, and on top of that between racks."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    produced_per_gib: Price = 0.0
    consumed_per_gib: Price = 0.0
    cross_rack_per_gib: Price = 0.0

    def rows(self) -> Iterator[dict[str, Any]]:
        """The prices as rows of `prices`."""
        each = {
            "produced": self.produced_per_gib,
            "consumed": self.consumed_per_gib,
            "cross_rack": self.cross_rack_per_gib,
        }
        for kind, price in each.items():
            yield {"kind": kind, "price_per_gib": price, "currency": self.currency}
