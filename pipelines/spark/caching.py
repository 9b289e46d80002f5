"""Caches frames that are read more than once; nothing else calls Spark's persist()."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def cached(frame: "DataFrame") -> Iterator["DataFrame"]:
    """The frame, cached by Spark until the block ends.

    If a session refuses to cache (serverless compute may), each use computes the frame again. So
    callers must not depend on the cache.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  not a base dependency

    try:
        kept = frame.persist()
    except PySparkException:
        # An error in the frame itself is raised at its first use.
        yield frame
        return
    try:
        yield kept
    finally:
        kept.unpersist()
