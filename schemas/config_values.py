"""Kinds of values that dynamic configs have: what is one, and the same text for the same value."""

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumberValue:
    """A number above `above` and at most `max`; `whole` ones are written without a fraction.

    `floor`: the least value that this pipeline sets by itself, because less stops clients; None:
    it has none. A value that another login set may be lower, and is restored as it was.
    """

    unit: str
    above: float
    max: float
    whole: bool = False
    floor: float | None = None

    def canonical(self, key: str, value: str) -> str:
        """The same text for the same number; ValueError names the bound that is broken."""
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"{key} = {value!r} is not a number") from None
        if not (math.isfinite(number) and self.above < number <= self.max):
            bounds = f"over {self.above:g} and at most {self.max:g} {self.unit}"
            raise ValueError(f"{key} = {value} must be {bounds}")
        if self.whole and number != int(number):
            raise ValueError(f"{key} = {value} must be whole {self.unit}")
        return self.plain(value)

    def plain(self, value: str) -> str:
        """The same text for the same number, under any bounds; other text unchanged."""
        try:
            number = float(value)
        except ValueError:
            return value
        is_whole = self.whole and number.is_integer()
        return str(int(number)) if is_whole else repr(number)


@dataclass(frozen=True, slots=True)
class ListValue:
    """A LIST config: parts between commas, each of one form that no tool can misread."""

    form: str
    means: str
    max_chars: int = 30_000

    def canonical(self, key: str, value: str) -> str:
        """The parts unchanged; ValueError names the one that is not of the form."""
        wrong = [part for part in value.split(",") if not re.fullmatch(self.form, part)]
        if wrong:
            raise ValueError(f"{key} = {wrong[0][:60]!r} is not {self.means}")
        if len(value) > self.max_chars:
            raise ValueError(f"{key} has {len(value)} characters, at most {self.max_chars} fit")
        return value

    def plain(self, value: str) -> str:
        """The parts unchanged."""
        return value


@dataclass(frozen=True, slots=True)
class EnumValue:
    """One of so many words."""

    words: tuple[str, ...]

    def canonical(self, key: str, value: str) -> str:
        """The word itself; ValueError names those there are."""
        if value not in self.words:
            raise ValueError(f"{key} = {value[:60]!r} must be one of {', '.join(self.words)}")
        return value

    def plain(self, value: str) -> str:
        """The word itself."""
        return value
