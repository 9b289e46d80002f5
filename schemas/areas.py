"""The areas of tables and views: what each is about, for lists that people read.

A table names its area where it is declared, and a view, an answer and a result in their heads.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Area:
    """An area: its name in heads, its title, and what its tables and views say."""

    name: str
    title: str
    meaning: str


AREAS = (
    Area(
        "requests",
        "Requests and fetches",
        "each request and fetch that brokers logged, and how much fetches bring",
    ),
    Area(
        "producer_ids",
        "Producer ids",
        "who takes how many, against which quota, and why (KIP-936)",
    ),
    Area(
        "quotas",
        "Quotas and traffic",
        "who uses how much of which quota, what throttled whom, bytes by client and topic",
    ),
    Area(
        "racks",
        "Racks and reads",
        "who reads where, what crosses racks, and reads that go wrong (KIP-392)",
    ),
    Area("groups", "Groups", "members, commits, lag and rebalances of groups"),
    Area(
        "replication",
        "Replication",
        "moves of replicas, followers that are behind, and throttles (KIP-73)",
    ),
    Area(
        "telemetry",
        "Telemetry",
        "what clients push of themselves, and alerts on it (KIP-714)",
    ),
    Area("configs", "Configs", "who changed what, and what a plan wants to change"),
    Area("cluster", "The cluster", "brokers, topics, replicas and configs as snapshots had them"),
    Area(
        "pipeline",
        "The pipeline",
        "what quotaflow read, left out, checked, planned and wrote",
    ),
)
"""All areas, in the order that lists show."""

BY_NAME = {area.name: area for area in AREAS}
