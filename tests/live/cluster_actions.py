"""Acts on the shared cluster, each in a minute of its own, because tables are by the minute.

The lines of an act are shipped with their times moved, and the snapshot taken in it has one of that
minute.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from quotaflow.demo import request_lines
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import Line
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.snapshots import take

SECTIONS = ("brokers", "topics", "replicas", "configs", "settings")


@dataclass
class Acts:
    """Acts with snapshots."""

    cluster: LocalCluster
    conf: Conf
    first_minutes_ago: int = 3

    def __post_init__(self) -> None:
        self._acts = request_lines.Acts(self.first_minutes_ago)

    @contextmanager
    def act(self, minutes_later: int = 1, sections: tuple[str, ...] = SECTIONS) -> Iterator[None]:
        """One so long after the last; answers of brokers until the snapshot are part of it."""
        with self._acts.act(minutes_later) as minute_ms:
            yield
            if sections:
                at = datetime.fromtimestamp(minute_ms / 1_000 + 59, UTC)
                take.take(self.conf, at, lambda _: None, sections)

    def ship(self, topic: str, is_ours: Callable[[Line], bool]) -> None:
        """Write the request log of the acts to a topic, as far as it is ours."""
        request_lines.ship(self.cluster, topic, self._acts.lines(self.cluster, is_ours))
