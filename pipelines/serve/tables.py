"""The tables as they are now: one reader until a table has a new version."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from quotaflow.pipelines.areas.clusters import newest_event
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import QueryError
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import going_on, open_reader

_T = TypeVar("_T")
Versions = tuple[tuple[str, str], ...]
"""The tables that exist, each with its version."""

_WAIT_S = 30
"""Only one page is computed at a time, so that queries have conf's memory once."""
_CHECKED_FOR = timedelta(seconds=2)
_NEVER = datetime.min.replace(tzinfo=UTC)


class BusyError(QueryError):
    """Another page is being computed."""


@dataclass
class ServedTables:
    """Opens readers, one after the other. `now` is the clock; tests give another."""

    conf: Conf
    cluster_id: str | None
    since: timedelta
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    _reader: Reader | None = None
    _watch: Reader | None = None
    _read: Versions = ()
    _versions: Versions = ()
    _checked_at: datetime = _NEVER
    _checking: threading.Lock = field(default_factory=threading.Lock)
    _computing: threading.Lock = field(default_factory=threading.Lock)
    _is_stopped: bool = False

    def versions(self) -> Versions:
        """The versions of all tables, looked up at most every two seconds.

        Raises QueryError if the place of the tables cannot be read.
        """
        with self._checking:
            now = self.now()
            if now - self._checked_at >= _CHECKED_FOR:
                self._watch = self._watch or open_reader(self.conf)
                self._versions = tuple(self._watch.versions().items())
                self._checked_at = now
            return self._versions

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Wait until no other page is computed. Raises BusyError if that takes too long."""
        if not self._computing.acquire(timeout=_WAIT_S):
            raise BusyError(
                "another page is being computed: this one comes when that is done "
                "(warehouse.query_timeout_s bounds each query)"
            )
        try:
            yield
        finally:
            self._computing.release()

    def renew_for(self, versions: Versions) -> None:
        """Open another reader if the last is of other versions; call it within `computing`."""
        if self._reader is None or self._read != versions:
            self._reader, self._read = open_reader(self.conf), versions
        if self._is_stopped:
            self._reader.stop()

    def answer(self, make: Callable[[Scope], _T], since: timedelta | None = None) -> _T:
        """What `make` returns of the tables that can be read; call it after `renew_for`.

        Raises NeverMadeError if there is no table at all, ConfigError if there are several
        clusters and neither conf nor the command names one.
        """
        assert self._reader is not None
        # The head of a page names what is left out.
        return going_on(
            lambda tables: make(self._scope(tables, since)), self._reader, lambda _: None
        )

    def _scope(self, tables: Reader, since: timedelta | None) -> Scope:
        """The cluster and the time of pages, if no other is given."""
        now = self.now()
        pinned = self.conf.kafka.cluster_id
        cluster_id, until = newest_event(tables, self.cluster_id, pinned, now)
        start = until - (since or self.since)
        return Scope(tables, cluster_id, start, until, now, self.conf)

    def stop(self) -> None:
        """End the query that runs; every later one fails at once."""
        self._is_stopped = True
        if self._reader is not None:
            self._reader.stop()
