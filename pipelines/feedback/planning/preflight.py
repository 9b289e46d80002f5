"""Whether a planned client-metrics resource could harm a live client."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

from quotaflow.pipelines.feedback.configs.desired_configs import Group
from quotaflow.pipelines.feedback.planning import plan_inputs
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.configs import CLIENT_METRICS, MATCH
from quotaflow.udfs.counted import counted, noun
from quotaflow.udfs.rules.client_metrics import Client, Subscription
from quotaflow.udfs.rules.pseudonym import is_pseudonym
from quotaflow.udfs.rules.subscription_safety import LiveClient, harm

_INSTANCES = re.compile(r"client_instance_id=([\w|-]+)")

Resources = Mapping[str, Mapping[str, str]]
"""Client-metrics resources by name, each with its configs."""

_RESOURCES = (
    "SELECT entity_name, config_key, config_value FROM current_configs "
    "WHERE entity_type = 'client-metrics' AND cluster_id = {}"
)
# Nothing is known that harms the Java client, and most clients are Java's.
_LIVE_CLIENTS = (
    "SELECT client_instance_id, client_id, client_software_name, client_software_version, "
    "client_address, NULL AS port, client_kind FROM client_instances "
    "WHERE ended IS NULL AND client_software_name <> 'apache-kafka-java' AND cluster_id = {}"
)


@dataclass(frozen=True, slots=True)
class Preflight:
    """The current resources, by name, and the live clients."""

    resources: Resources
    clients: tuple[LiveClient, ...]

    def harm(self, rows: Group) -> str | None:
        """Why the rows of one entity should not be written; None if they may be."""
        return self.harm_of(self.with_rows(rows).resources) if _is_subscription(rows) else None

    def without_harmed(self, rows: Group) -> tuple[Group, str | None]:
        """The rows without the client instances that they would harm, and why these are left out.

        A client says itself which library it is. So that can exclude the client alone, and not
        keep its resource from all others.
        """
        row = next((each for each in rows if each.config_key == MATCH.key), None)
        match = _INSTANCES.fullmatch(row.config_value or "") if row else None
        if row is None or match is None or not _is_subscription(rows):
            return rows, None
        harms = self._harms(self.with_rows(rows).resources)
        ids = match[1].split("|")
        kept = [each for each in ids if each not in harms]
        # A match without an instance would reach everybody.
        if not kept or len(kept) == len(ids):
            return rows, None
        narrowed = replace(row, config_value=f"client_instance_id={'|'.join(kept)}")
        why = next(harms[each] for each in ids if each in harms)
        are = noun(len(ids) - len(kept), "is", "are")
        return (
            tuple(narrowed if each is row else each for each in rows),
            f"{len(ids) - len(kept)} of its {counted(len(ids), 'client')} {are} left out: {why}",
        )

    def match_of_harmed(self, rows: Group) -> str | None:
        """The match that keeps a resource for those alone whom its removal would harm.

        None if that is no less than the resource matches now. So a client that claims a library
        that crashes keeps the resource for itself, and not for others.
        """
        now = self.resources.get(rows[0].entity_name or "", {}).get(MATCH.key)
        match = _INSTANCES.fullmatch(now or "") if _is_subscription(rows) else None
        if match is None:
            return None
        harms = self._harms(self.with_rows(rows).resources)
        ids = match[1].split("|")
        kept = [each for each in ids if each in harms]
        return f"client_instance_id={'|'.join(kept)}" if 0 < len(kept) < len(ids) else None

    def with_rows(self, entity: Group) -> "Preflight":
        """The preflight once the rows of one entity are written."""
        if not _is_subscription(entity):
            return self
        name = entity[0].entity_name or ""
        desired = {row.config_key: row.config_value for row in entity}
        changed = {**self.resources.get(name, {}), **desired}
        after = {k: v for k, v in changed.items() if v is not None}
        return replace(self, resources={**self.resources, name: after})

    def harm_of(self, after: Resources) -> str | None:
        """Why the resources should not become `after`; None if they may."""
        try:
            before, then = _subscriptions(self.resources), _subscriptions(after)
        except ValueError as error:
            return f"the clients that it would reach are unknown: {error}"
        unseen = _unseen([*before, *then], self.clients)
        if unseen is not None:
            return unseen
        harms = [why for live in self.clients if (why := harm(before, then, live))]
        if not harms:
            return None
        return f"could harm {counted(len(harms), 'live client')}: {harms[0]}"

    def _harms(self, after: Resources) -> Mapping[str, str]:
        """Why the resources should not become `after`, by the instance id of each harmed client."""
        try:
            before, then = _subscriptions(self.resources), _subscriptions(after)
        except ValueError:
            return {}
        return {
            live.client.client_instance_id or "": why
            for live in self.clients
            if (why := harm(before, then, live))
        }


NOBODY = Preflight({}, ())
"""No live client is known, so none is harmed."""


def by_rows(tables: Reader) -> Callable[[Group], Preflight]:
    """The preflight of an entity's rows. Live clients are read only if rows subscribe them."""
    read_once = cache(partial(read, tables))
    return lambda rows: read_once(rows[0].cluster_id) if _is_subscription(rows) else NOBODY


def read(tables: Reader, cluster_id: str) -> Preflight:
    """The client-metrics resources of the last snapshot, and the live clients that could suffer."""
    resources: dict[str, dict[str, str]] = {}
    for row in tables.rows(_RESOURCES.format(literal(cluster_id))):
        resources.setdefault(row["entity_name"], {})[row["config_key"]] = row["config_value"]
    rows = [list(row.values()) for row in tables.rows(_LIVE_CLIENTS.format(literal(cluster_id)))]
    return Preflight(resources, tuple(LiveClient(Client(*client), kind) for *client, kind in rows))


def tables() -> frozenset[str]:
    """The tables that a preflight reads."""
    return frozenset(
        table for sql in (_RESOURCES, _LIVE_CLIENTS) for table in views.dependencies(sql)[0]
    )


def is_readable(tables: Reader) -> bool:
    """Whether all tables that a preflight reads exist."""
    return plan_inputs.all_made(tables, [_RESOURCES, _LIVE_CLIENTS])


def _is_subscription(entity: Group) -> bool:
    return entity[0].entity_type == CLIENT_METRICS


def _unseen(subscriptions: Iterable[Subscription], clients: Iterable[LiveClient]) -> str | None:
    """Why it is unknown whom a resource reaches: tables hide the names; None if it is known."""
    lives = list(clients)
    for subscription in subscriptions:
        for key in subscription.match:
            if any(is_pseudonym(str(getattr(live.client, key))) for live in lives):
                return (
                    f"cannot be judged: {subscription.name} matches by {key}, which "
                    "privacy.columns hides in tables"
                )
    return None


def _subscriptions(resources: Resources) -> list[Subscription]:
    """The resources with configs: a removed one subscribes nobody."""
    return [
        Subscription.from_configs(name, configs) for name, configs in resources.items() if configs
    ]
