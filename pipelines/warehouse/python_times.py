"""Times that a client's clock may send and Python's datetime does not have."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# The year 9999 is 8,029 years off.
_MAX_US = 8_000 * 365 * 86_400 * 10**6


def in_python(answer: "pa.Table") -> "pa.Table":
    """The same table with null in the place of each time out of Python's range."""
    import pyarrow as pa  # noqa: PLC0415  --help need not wait for it
    from pyarrow import compute  # noqa: PLC0415

    for place, column in enumerate(answer.schema):
        if pa.types.is_timestamp(column.type):
            values = answer.column(place)
            us = values.cast(pa.timestamp("us", "UTC"))
            number = us.cast(pa.int64())
            is_python = compute.less(compute.abs(number), _MAX_US)
            answer = answer.set_column(
                place, column.name, compute.if_else(is_python, us, pa.scalar(None, us.type))
            )
    return answer
