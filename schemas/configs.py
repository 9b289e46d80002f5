"""Dynamic configs a plan may name: whom they bind, unit and bounds, and what stock Kafka says."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Config:
    """One dynamic config. `refusal` is what stock Kafka answers, None where it takes the config."""

    key: str
    entity_type: str
    unit: str
    over: float
    most: float
    comment: str
    refusal: str | None = None

    def canonical(self, value: str) -> str:
        """The value as it is written, the same text for the same number.

        Raises ValueError naming the bound it breaks.
        """
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"{self.key} = {value!r} is not a number") from None
        if not (math.isfinite(number) and self.over < number <= self.most):
            bounds = f"over {self.over:g} and at most {self.most:g} {self.unit}"
            raise ValueError(f"{self.key} = {value} must be {bounds}")
        return repr(number)


PRODUCER_IDS_RATE = Config(
    key="producer_ids_rate",
    entity_type="user",
    unit="producer ids per second and broker",
    over=0,
    most=1_000_000,
    comment="new producer ids a user may bring to one broker (KIP-936)",
    refusal="42 Invalid configuration key producer_ids_rate",
)

CONFIGS: dict[str, Config] = {config.key: config for config in (PRODUCER_IDS_RATE,)}
