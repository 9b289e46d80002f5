"""A client quota on the real cluster for as long as a scene lasts."""

from collections.abc import Iterator
from contextlib import contextmanager

from quotaflow.demo import traffic_configs
from quotaflow.demo.cluster import LocalCluster


@contextmanager
def consumer_byte_rate(cluster: LocalCluster, user: str, bytes_per_s: float) -> Iterator[None]:
    """Limit what a user reads from each broker, until the block ends."""
    with cluster.admin() as admin:
        call = traffic_configs.set_quota(user, "consumer_byte_rate", bytes_per_s)
        assert call(admin).error_code == 0
        try:
            yield
        finally:
            traffic_configs.set_quota(user, "consumer_byte_rate", None)(admin)
