"""The head of a page: the cluster as conf names it, and the time of what the page shows."""

from dataclasses import dataclass

from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.folder_reader import FolderReader


@dataclass(frozen=True, slots=True)
class Head:
    """What the head of a report and of each served page says. Every text is cut and prints.

    `cluster` is the name in conf, else the id; empty while no job has rows of a cluster.
    """

    cluster: str
    is_named: bool
    facts: tuple[str, ...]
    time_range: str
    age: str
    made_at: str
    where: str
    left_out: tuple[str, ...]
    """Which tables are damaged, so that the page is without them."""


def head(scope: Scope) -> Head:
    """The head of all pages about a scope."""
    names = scope.conf.cluster
    cluster_id = texts.listed(scope.cluster_id) if scope.cluster_id else ""
    damaged = scope.reader.left_out if isinstance(scope.reader, FolderReader) else ()
    left_out = [f"without {table}, which is damaged: see quotaflow status" for table in damaged]
    facts = (
        texts.listed(names.environment) if names.environment else "",
        f"owner: {texts.listed(names.owner)}" if names.owner else "",
        f"cluster id: {cluster_id}" if names.name and cluster_id else "",
        *sorted(left_out),
    )
    return Head(
        cluster=texts.listed(names.name) if names.name and cluster_id else cluster_id,
        is_named=bool(names.name),
        facts=tuple(filter(None, facts)),
        time_range=texts.time_range(scope.since, scope.until),
        age=texts.age(scope.until, scope.now),
        made_at=texts.moment(scope.now),
        where=texts.listed(scope.conf.warehouse.catalog_schema or ""),
        left_out=tuple(sorted(left_out)),
    )
