"""The areas of tables and views: what each is about, for lists that people read.

A table has the area of the module that declares it, and a view that of its folder. Views that only
bring a table to another form have the area of what they read.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quotaflow.schemas.tables.catalog import MODULE_OF_TABLE
from quotaflow.schemas.view import View


@dataclass(frozen=True, slots=True)
class Area:
    """An area: its title, what its tables and views say, and the modules and folders it has."""

    title: str
    meaning: str
    folders: tuple[str, ...]


AREAS = (
    Area(
        "Requests and fetches",
        "each request and fetch that brokers logged, and how much fetches bring",
        ("requests", "fetches", "fetch_sizes"),
    ),
    Area(
        "Producer ids",
        "who takes how many, against which quota, and why (KIP-936)",
        ("producer_ids",),
    ),
    Area(
        "Quotas and traffic",
        "who uses how much of which quota, what throttled whom, bytes by client and topic",
        ("quotas", "traffic"),
    ),
    Area(
        "Racks and reads",
        "who reads where, what crosses racks, and reads that go wrong (KIP-392)",
        ("replicas", "read_faults", "reads", "racks", "remote_reads"),
    ),
    Area(
        "Groups",
        "members, commits, lag and rebalances of groups",
        ("groups", "group_lag", "group_snapshots"),
    ),
    Area(
        "Replication",
        "moves of replicas, followers that are behind, and throttles (KIP-73)",
        ("reassignments", "throttles", "replication"),
    ),
    Area(
        "Telemetry",
        "what clients push of themselves, and alerts on it (KIP-714)",
        ("telemetry",),
    ),
    Area(
        "Configs",
        "who changed what, and what a plan wants to change",
        ("config_alterations", "feedback"),
    ),
    Area(
        "The cluster",
        "brokers, topics, replicas and configs as snapshots had them",
        ("topology", "snapshots"),
    ),
    Area(
        "The pipeline",
        "what quotaflow read, left out, checked, planned and wrote",
        ("control", "quality", "operations"),
    ),
)
"""All areas, in the order that lists show."""

_BY_FOLDER = {folder: area for area in AREAS for folder in area.folders}
OTHER = Area("Other", "what has no area", ())


def areas(views: Mapping[str, View], sources: Mapping[str, list[str]]) -> dict[str, Area]:
    """The area of each table and view, by name; `sources` has the names that each view reads."""
    chosen = {table: _BY_FOLDER.get(module, OTHER) for table, module in MODULE_OF_TABLE.items()}
    for name, view in views.items():
        first = next((chosen[source] for source in sources[name] if source in chosen), OTHER)
        chosen[name] = _BY_FOLDER.get(view.folder, first)
    return chosen
