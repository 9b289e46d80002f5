"""Numbers with their nouns in sentences: 1 broker, 3 brokers."""


def counted(number: float, one: str, many: str | None = None) -> str:
    """A number with its noun, and with the verb where both have one: `counted(1, "change waits",
    "changes wait")`. Without `many` the plural is `one` with an s.
    """
    return f"{number:,} {noun(number, one, many)}"


def noun(number: float | str, one: str, many: str | None = None) -> str:
    """The form of a noun after a number, or after a number as text."""
    return one if number in {1, "1"} else many or f"{one}s"
