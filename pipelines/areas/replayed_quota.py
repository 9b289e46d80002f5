"""A byte quota to replay: its entity, the requests that share it, and what each is charged."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.programs import program_of
from quotaflow.udfs.rules.byte_replay import Charge
from quotaflow.udfs.rules.principal_name import bare
from quotaflow.udfs.rules.quota import ANY, DEFAULT, LEVELS, NAMED

PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"
LEAST_BYTES_PER_S = 1_000.0
"""Below it a large answer is cut into very many pieces, and nobody sets such a quota."""
APIS = {PRODUCER: "PRODUCE", CONSUMER: "FETCH"}
"""By kind of quota, the API whose requests it is charged for."""


@dataclass(frozen=True, slots=True)
class ReplayedQuota:
    """A quota to replay: its entity as kafka-configs names it, its kind, and bytes per second."""

    kind: str
    bytes_per_s: float
    user: str | None = None
    client_id: str | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError for a quota that no broker takes."""
        if self.user is None and self.client_id is None:
            raise ConfigError("whose quota? Name --user, --client-id or both")
        if not LEAST_BYTES_PER_S <= self.bytes_per_s < math.inf:
            option = f"--{self.kind.replace('_', '-')}"
            least = f"{LEAST_BYTES_PER_S:g}"
            raise ConfigError(f"{option} is {self.bytes_per_s:g}, and must be at least {least}")

    @property
    def level(self) -> int:
        """How specific its entity is, in LEVELS: a more specific quota of another one wins."""
        return LEVELS.index((NAMED if self.user else ANY, NAMED if self.client_id else ANY))

    def name(self) -> str:
        """Its entity in words."""
        parts = (("user", self.user), ("client id", self.client_id))
        return " with ".join(f"{kind} {texts.label(name)}" for kind, name in parts if name)


def members(
    rows: list[dict[str, Any]], other: ReplayedQuota, quotas: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The requests that would share the quota: no more specific one is set for their client."""
    is_member = dict[tuple[str, str, str], bool]()
    for row in rows:
        client = (row["cluster_id"], bare(row["principal"]), row["client_id"] or "")
        if client not in is_member:
            levels = (_level(quota, *client) for quota in quotas)
            is_member[client] = all(level is None or level >= other.level for level in levels)
        if is_member[client]:
            yield row


def _level(quota: dict[str, Any], cluster_id: str, user: str, client_id: str) -> int | None:
    """The level of a quota that could limit a client; null if it is not about this client."""
    kinds = []
    for name, is_default, own in (
        (quota["user"], quota["is_default_user"], user),
        (quota["client_id"], quota["is_default_client_id"], client_id),
    ):
        if name is not None and name != own:
            return None
        kinds.append(DEFAULT if is_default else ANY if name is None else NAMED)
    if quota["cluster_id"] != cluster_id:
        return None
    return LEVELS.index((kinds[0], kinds[1]))


def charge(row: dict[str, Any]) -> Charge:
    """What a broker charged for a request, and whom."""
    weight = row["weight"] or 1
    client = program_of(row["client_id"] or "")
    return Charge(
        row["at_ms"],
        f"{row['principal']}\0{client}",
        row["connection_id"] or f"{row['principal']}\0{row['client_id']}",
        weight * sum(size or 0 for size in row["sizes"] or ()),
        row["throttle_time_ms"] or 0,
        weight,
    )
