"""Looks up live client instances by instance id, client id or principal, in client_instances."""

import difflib
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.udfs.rules import principal_name
from quotaflow.udfs.rules.client_metrics import Client
from quotaflow.udfs.rules.subscription_safety import LiveClient

MAX_INSTANCES = 20
_MAX_NAMES = 10_000
_FRESH = "the tables have what `quotaflow run --once` read last"
_INSTANCES = (
    "SELECT client_instance_id, client_id, client_software_name, client_software_version, "
    "client_address, client_kind, ended, last_seen FROM client_instances "
    "WHERE cluster_id = {cluster} AND ({named}) "
    "ORDER BY last_seen DESC, client_instance_id"
)
_PRINCIPALS = (
    "SELECT DISTINCT principal FROM client_instances "
    "WHERE cluster_id = {cluster} AND principal IS NOT NULL"
)
_NAMES = (
    "SELECT DISTINCT client_id FROM client_instances "
    f"WHERE cluster_id = {{cluster}} AND ended IS NULL ORDER BY client_id LIMIT {_MAX_NAMES}"
)


class NoClientError(QuotaflowError):
    """No live client instance has this id; the message names the nearest one that is live."""


@dataclass(frozen=True, slots=True)
class LiveInstances:
    """Live instances, the last seen first, and how many were left out over MAX_INSTANCES."""

    clients: tuple[LiveClient, ...]
    left_out: int


def find(reader: Reader, cluster_id: str, name: str) -> LiveInstances:
    """The live instance with this id, else those with this client id, else those of a principal.

    At most MAX_INSTANCES. Raises NoClientError when there is none.
    """
    of_cluster = {"cluster": literal(cluster_id)}
    rows = _of_id(reader, of_cluster, name) or _of_principal(reader, of_cluster, name)
    live = [_live(row) for row in rows if row["ended"] is None]
    if live:
        return LiveInstances(tuple(live[:MAX_INSTANCES]), max(len(live) - MAX_INSTANCES, 0))
    if rows:
        seen = f"{rows[0]['ended']}, last seen {rows[0]['last_seen']:%Y-%m-%d %H:%M:%S} UTC"
        raise NoClientError(f"no live client {name}: {seen} ({_FRESH})")
    names = [row["client_id"] for row in reader.rows(_NAMES.format(**of_cluster))]
    candidates = [name for name in names if name]
    near = difflib.get_close_matches(name, candidates, n=1, cutoff=0.0)
    hint = f"did you mean {near[0]}?" if near else "none is live"
    raise NoClientError(f"no client {name} ({hint}); {_FRESH}")


def _of_id(reader: Reader, of_cluster: dict[str, str], name: str) -> list[dict[str, Any]]:
    condition = f"client_instance_id = {literal(name)} OR client_id = {literal(name)}"
    rows = reader.rows(_INSTANCES.format(**of_cluster, named=condition))
    return [row for row in rows if row["client_instance_id"] == name] or rows


def _of_principal(reader: Reader, of_cluster: dict[str, str], name: str) -> list[dict[str, Any]]:
    principals = [row["principal"] for row in reader.rows(_PRINCIPALS.format(**of_cluster))]
    matches = principal_name.named(name, principals)
    if not matches:
        return []
    condition = f"principal IN ({', '.join(map(literal, matches))})"
    return reader.rows(_INSTANCES.format(**of_cluster, named=condition))


def _live(row: dict[str, Any]) -> LiveClient:
    client = Client(
        client_instance_id=row["client_instance_id"],
        client_id=row["client_id"],
        client_software_name=row["client_software_name"],
        client_software_version=row["client_software_version"],
        client_source_address=row["client_address"],
    )
    return LiveClient(client, row["client_kind"])
