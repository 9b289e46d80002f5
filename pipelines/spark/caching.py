"""A frame that is read more than once, computed once; nothing else asks Spark to keep frames."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def cached(frame: "DataFrame") -> Iterator["DataFrame"]:
    """The frame, kept by Spark until the block ends.

    Where a session keeps none (serverless compute may refuse to), every use computes it anew:
    what reads it must not depend on that.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  not a base dependency

    try:
        kept = frame.persist()
    except PySparkException:
        # A frame that is wrong in itself says so at its first use.
        yield frame
        return
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def caching() -> "Iterator[Callable[[DataFrame], DataFrame]]":
    """What holds any number of frames, as `held` does, until the block ends."""
    with ExitStack() as kept:
        yield lambda frame: kept.enter_context(cached(frame))
