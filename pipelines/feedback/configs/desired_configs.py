"""What results desire: one row of the view desired_configs, and its entity."""

import re
from dataclasses import dataclass
from datetime import datetime

from quotaflow.schemas.configs import BROKER, BROKER_LOGGER, ENTITY_TYPES, IP
from quotaflow.udfs.rules.address import normalized

_NULLS_FIRST = ""
_BROKER_ID = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class ConfigEntity:
    """The owner of a dynamic config: a user, client id, address, broker, topic or other resource.

    Without an `entity_name` it is the default of its type. `client_id` narrows a client quota of a
    user to that user's clients of this id (KIP-55).
    """

    cluster_id: str
    entity_type: str
    entity_name: str | None
    client_id: str | None = None

    @property
    def can_be(self) -> bool:
        """Whether a cluster can have it: its type is known, and its name is of that type.

        A broker's name is a number. That of an address is its usual text: Kafka would look up the
        name of a host, and keeps a quota for each text of one address.
        """
        if self.entity_type not in ENTITY_TYPES:
            return False
        if not self.entity_name:
            return True
        if self.entity_type in {BROKER, BROKER_LOGGER}:
            return _BROKER_ID.fullmatch(self.entity_name) is not None
        return self.entity_type != IP or normalized(self.entity_name) == self.entity_name

    @property
    def is_default(self) -> bool:
        """Whether it is the default of its type, which binds all without a config of their own."""
        return self.entity_name is None

    @property
    def order(self) -> tuple[str, ...]:
        """The key to sort entities by."""
        parts = (self.cluster_id, self.entity_type, self.entity_name, self.client_id)
        return tuple(part or _NULLS_FIRST for part in parts)

    @property
    def text(self) -> str:
        """Its type and name, for lines about one cluster."""
        name = f"(the default of all {self.entity_type}s)" if self.is_default else self.entity_name
        client = "" if self.client_id is None else f" with client id {self.client_id}"
        return f"{self.entity_type} {name}{client}"

    def __str__(self) -> str:
        return f"{self.text} in cluster {self.cluster_id}"


@dataclass(frozen=True, slots=True)
class DesiredConfig:
    """A config as results desire it; a null `config_value` removes it.

    `prior_value` is the value in the last snapshot, or a newer one in the request log. It is null
    where the config was not set, or no source has it. `blocked_reason` says why the row may not be
    planned. `lease_s` is the length of its lease, in seconds; after it the prior value comes back.
    A lower `priority` is more urgent. A row with `renew_only` changes nothing: it renews the lease
    of a value that we set for the same evidence, because the value fits, or, with a
    `blocked_reason`, because nothing better may be planned now.

    `direction`: RAISE, null, or, as a plan decides it, TIGHTEN or REVERT. `observed` is what the
    value must lower, as udfs/rules/limit.py has it for each config, and `least_value` the floor of
    a limit. Of a user, `usage_p99` is its usage at its busiest broker over the last 7 days, in the
    unit of the quota, `history_s` the seconds of known usage, and `quota_in_force` the quota that
    applies by the last snapshot, own or inherited.
    """

    cluster_id: str
    entity_type: str
    entity_name: str | None
    config_key: str
    config_value: str | None
    prior_value: str | None
    reason: str
    evidence_table: str
    evidence_key: str
    since: datetime
    priority: int
    blocked_reason: str | None = None
    lease_s: int | None = None
    entity_client_id: str | None = None
    renew_only: bool = False
    observed: float | None = None
    direction: str | None = None
    usage_p99: float | None = None
    history_s: float | None = None
    quota_in_force: float | None = None
    least_value: float | None = None

    @property
    def entity(self) -> ConfigEntity:
        """The entity of the config."""
        return ConfigEntity(
            self.cluster_id, self.entity_type, self.entity_name, self.entity_client_id
        )

    @property
    def key(self) -> tuple[ConfigEntity, str]:
        """The config: its entity and key."""
        return self.entity, self.config_key


Group = tuple[DesiredConfig, ...]
"""The rows of one entity. They are planned together or not at all."""
