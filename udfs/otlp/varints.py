"""Protocol buffers' variable-length numbers, up to a length that the caller expects."""

_CONTINUED = 0x80
_BITS = 7


def varint(data: bytes, at: int, most_bytes: int) -> tuple[int, int]:
    """The unsigned number at `at`, and where it ends.

    ValueError when it takes more than `most_bytes`, IndexError when the data ends within it.
    """
    first = data[at]
    if first < _CONTINUED:  # nearly all are
        return first, at + 1
    value = 0
    for index in range(most_bytes):
        byte = data[at + index]
        value |= (byte & ~_CONTINUED) << (_BITS * index)
        if not byte & _CONTINUED:
            return value, at + index + 1
    raise ValueError(f"a number of more than {most_bytes} bytes")
