"""Bounds of a write that no table can move: by conf, by the cluster, and by our own ledger.

Rows of results say what would help. People who write tables can forge those rows, but they have
neither conf, nor the cluster, nor the key that signs the ledger. So a plan, and apply again just
before each write, ask these three whether the write is allowed. Only what no answer of the product
asks for is refused. Pure: conf, the facts of the cluster, the ledger and the time are arguments.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from quotaflow.pipelines.config import (
    AlertsSection,
    PlanSection,
    ProducerIdsSection,
    QuotasSection,
    ReplicationSection,
)
from quotaflow.pipelines.feedback.configs.change import (
    APPLY,
    DELETE,
    RENEW,
    SET,
    SUBTRACT,
    Change,
    apply_operation,
    is_same_value,
    list_entries,
)
from quotaflow.pipelines.feedback.configs.cluster_facts import NO_FACTS, ClusterFacts
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import Key, Ledger
from quotaflow.schemas import configs
from quotaflow.schemas.config_values import NumberValue
from quotaflow.udfs.rules.address import LOOPBACK, is_within, normalized, special_kind

_ALL = "*"
_DAY = timedelta(days=1)
_ADVICE = "quota_advice"
_DEFAULT_EXPIRATION_MS = 86_400_000
"""Kafka's own, where a broker has no dynamic value."""
_RESOURCES = ("quotaflow-alert-", "quotaflow-troubleshoot-")


@dataclass(frozen=True, slots=True)
class TrustedBounds:
    """The sections of conf that say what plans may write, and its login, null if it has none."""

    plan: PlanSection
    quotas: QuotasSection
    producer_ids: ProducerIdsSection
    replication: ReplicationSection
    alerts: AlertsSection
    own_principal: str | None

    @property
    def raise_budget(self) -> float | None:
        """The bytes/s of all raised quotas of one kind together; None: conf has no capacity."""
        most = self.replication.capacity_bytes_per_s
        if most is None:
            return None
        return self.quotas.raise_budget_share * min([most, *self.replication.brokers.values()])

    @property
    def max_lease_s(self) -> int:
        """No lease is longer."""
        return max(self.plan.lease_s, self.plan.max_lease_s, self.replication.lease_s)


def problem(
    changes: Sequence[Change],
    actual: Mapping[str, str],
    bounds: TrustedBounds,
    ledger: Ledger,
    now: datetime,
    *,
    facts: ClusterFacts = NO_FACTS,
    earlier: Iterable[Change] = (),
) -> str | None:
    """Why these changes of an entity that has `actual` may not be written; None if they may.

    `earlier`: what the same run may write, which the ledger does not have yet.
    """
    if len({change.desired.key for change in changes}) < len(changes):
        return "one config has two changes"
    alike = tuple(earlier)
    for change in changes:
        value = actual.get(change.desired.config_key)
        write = _Write(change, value, bounds, facts, ledger, now, alike)
        why = _operation_problem(change) or (
            _lease_problem(change, bounds) or _write_problem(write)
            if change.purpose == APPLY
            else _return_problem(change, ledger)
        )
        if why is not None:
            return why
    return match_problem(changes, actual)


@dataclass(frozen=True, slots=True)
class _Write:
    change: Change
    now_set: str | None
    bounds: TrustedBounds
    facts: ClusterFacts
    ledger: Ledger
    now: datetime
    earlier: Sequence[Change]

    @property
    def entity(self) -> ConfigEntity:
        return self.change.entity

    @property
    def config_key(self) -> str:
        return self.change.desired.config_key

    @property
    def is_removal(self) -> bool:
        return self.change.operation.name in {DELETE, SUBTRACT}

    @property
    def numbers(self) -> tuple[float | None, float | None]:
        """The numbers now and after the write; None where there is none."""
        return _number(self.now_set), _number(self.change.value)

    @property
    def default(self) -> float | None:
        """The quota that binds the entity while it has none of its own."""
        if self.entity.is_default:
            return None
        return self.facts.default_quotas.get((self.entity.entity_type, self.config_key))


def _write_problem(write: _Write) -> str | None:
    rule = _RULES.get((write.entity.entity_type, write.config_key))
    if rule is None or write.entity.client_id is not None:
        client = "" if write.entity.client_id is None else " and client id"
        return f"no result asks for {write.config_key} of a {write.entity.entity_type}{client}"
    return rule(write)


def _operation_problem(change: Change) -> str | None:
    """The value that is checked must be the one that the operation gives."""
    name, operand = change.operation.name, change.operation.operand
    if name in {RENEW, DELETE}:
        is_whole = operand is None and (name == RENEW or change.value is None)
    elif name == SET:
        is_whole = operand is not None and operand == change.value
    else:
        after = apply_operation(change.desired.prior_value, change.operation)
        is_whole = (
            change.entity.entity_type == configs.TOPIC and bool(operand) and after == change.value
        )
    return (
        None
        if is_whole
        else f"the operation {name} {operand} does not give the value {change.value}"
    )


def _lease_problem(change: Change, bounds: TrustedBounds) -> str | None:
    needs_none = change.operation.name in {DELETE, SUBTRACT} and change.lease_s is None
    if needs_none or 0 < (change.lease_s or 0) <= bounds.max_lease_s:
        return None
    return f"the lease is {change.lease_s} s, and conf allows 1 to {bounds.max_lease_s} s"


def _return_problem(change: Change, ledger: Ledger) -> str | None:
    """Only what is ours is restored, to a value that it had before a write of ours."""
    key = change.desired.key
    owned = ledger.owned.get(key)
    if owned is None:
        return "it is not ours, so there is nothing to restore"
    if owned.entries:
        removed = change.operation.operand if change.operation.name == SUBTRACT else None
        entries = list_entries(change.desired.prior_value if removed is None else removed)
        is_ours = change.operation.name in {DELETE, SUBTRACT} and set(entries) <= owned.entries
        return None if is_ours else "only entries of ours are restored"
    before = [owned.prior_value, *(step.prior_value for step in ledger.limits.get(key, ()))]
    if any(is_same_value(key[1], change.value, value) for value in before):
        return None
    return f"{change.value} is no value that it had before a write of ours"


def _advised_quota(write: _Write) -> str | None:
    name = write.entity.entity_name
    if write.change.desired.evidence_table != _ADVICE:
        return f"no result but {_ADVICE} asks for {write.config_key} of a user"
    if not name or {name, _ALL}.isdisjoint(write.bounds.quotas.advised_users):
        return "quotas.advised_users of conf does not have this user"
    return None if write.change.operation.name == RENEW else _quota_step(write)


def _quota_step(write: _Write) -> str | None:
    before, after = write.numbers
    if after is None:
        return "no result removes the quota of a user"
    if before is None:
        return _above_default(write) or _below_floor(write, after)
    if after < before:
        return f"no result lowers the quota of a user: it is {before:.15g} now"
    return _raise_problem(write, before, after) if after > before else None


def _below_floor(write: _Write, after: float) -> str | None:
    values = configs.CONFIGS[write.config_key].values
    least = values.floor if isinstance(values, NumberValue) else None
    if least is None or after >= least:
        return None
    return f"{after:.15g} is below {least:.15g}, the least that a plan sets"


def _above_default(write: _Write) -> str | None:
    """A first value must not free an entity from a default that binds it."""
    after, default = write.numbers[1], write.default
    if after is None or default is None or after <= default:
        return None
    return f"{after:.15g} is more than {default:.15g}, the default that binds it now"


def _raise_problem(write: _Write, before: float, after: float) -> str | None:
    bounds, key = write.bounds, write.change.desired.key
    at = _written_at(key, write.ledger)
    if at is not None and write.now - at < _DAY:
        return f"we wrote it at {at:%Y-%m-%d %H:%M:%S} UTC, and a raise waits for a day after that"
    most = before * bounds.plan.max_step_factor
    if after > most:
        return f"{after:.15g} is more than {most:.15g} (plan.max_step_factor)"
    if not write.config_key.endswith("byte_rate"):
        return f"{write.config_key} has no capacity in conf, so it is not raised"
    if bounds.raise_budget is None:
        return "replication.capacity_bytes_per_s of conf is not set, so nothing is raised"
    total = after + _raised(key, write)
    if total <= bounds.raise_budget:
        return None
    budget = f"and quotas.raise_budget_share of the capacity is {bounds.raise_budget:.15g}"
    return f"all raised quotas of {write.config_key} would be {total:.15g} bytes/s, {budget}"


def _written_at(key: Key, ledger: Ledger) -> datetime | None:
    """Our last write of a config, also one of which it is not known whether it was made."""
    times = [record.event_time for record in ledger.applied if record.key == key]
    changed_at = ledger.changed_at(*key)
    return max([*times, *([changed_at] if changed_at else [])], default=None)


def _raised(key: Key, write: _Write) -> float:
    """What all other quotas of this kind have that we raised and did not restore."""
    total = 0.0
    values = {
        other: (owned.prior_value, owned.value) for other, owned in write.ledger.owned.items()
    }
    values |= {c.desired.key: (c.desired.prior_value, c.value) for c in write.earlier}
    for other, (prior, value) in values.items():
        before, after = _number(prior), _number(value)
        is_alike = other != key and other[1] == key[1] and other[0].cluster_id == key[0].cluster_id
        if is_alike and before is not None and after is not None and after > before:
            total += after
    return total


def _limit(write: _Write) -> str | None:
    """A limit only tightens: it is not above what binds the entity now."""
    if write.change.operation.name == RENEW:
        return None
    before, after = write.numbers
    if after is None:
        return "no result removes a limit"
    if before is not None and after > before:
        return f"no result loosens a limit: it is {before:.15g} now"
    return _above_default(write) if before is None else None


def _id_rate(write: _Write) -> str | None:
    ids, after = write.bounds.producer_ids, write.numbers[1]
    quota = ids.quotas.get(write.entity.entity_name or "", ids.default_quota_per_s)
    if quota is None:
        return "producer_ids of conf has no quota of this user"
    if write.change.operation.name != RENEW and after is not None and after < quota:
        return f"{after:.15g} is below {quota:.15g}, the quota of conf (producer_ids)"
    return _limit(write)


def _address_rate(write: _Write) -> str | None:
    name = write.entity.entity_name or ""
    kind = special_kind(name)
    # Side-cars, tunnels and tools of a broker's host connect from loopback, so a person decides.
    is_listed = kind == LOOPBACK and normalized(name) in write.bounds.producer_ids.limited_addresses
    if kind is not None and not is_listed:
        return f"{name} is no address of one client ({kind})"
    if is_within(name, write.bounds.producer_ids.protected_addresses):
        return "producer_ids.protected_addresses of conf has this address"
    if name in write.facts.broker_addresses:
        return "it is the address of a broker"
    return _limit(write)


def _expiration(write: _Write) -> str | None:
    if not write.bounds.producer_ids.manage_expiration:
        return "producer_ids.manage_expiration of conf is false"
    if write.change.operation.name == RENEW:
        return None
    before, after = write.numbers
    most = _DEFAULT_EXPIRATION_MS if before is None else before
    if after is None or after > most:
        return f"no result makes it longer: it is {most:.15g} ms now"
    return None


def _throttle_rate(write: _Write) -> str | None:
    if write.is_removal:
        return _removed_throttle(write)
    if not write.bounds.replication.manage:
        return "replication.manage of conf is false"
    name, after = write.entity.entity_name or "", write.numbers[1]
    capacity = write.bounds.replication.capacity(int(name)) if name.isdecimal() else None
    if capacity is None or after is None or after <= capacity:
        return None
    return f"{after:.15g} is more than {capacity:.15g}, the capacity of the broker by conf"


def _throttled_list(write: _Write) -> str | None:
    if write.is_removal:
        return _removed_throttle(write)
    return None if write.bounds.replication.manage else "replication.manage of conf is false"


def _removed_throttle(write: _Write) -> str | None:
    moves, own = write.bounds.replication, write.bounds.own_principal
    if any((own, moves.cleanup_principals, moves.remove_leftovers)):
        return None
    if write.change.desired.key in write.ledger.owned:
        return None
    keys = "replication.cleanup_principals or replication.remove_leftovers"
    return f"conf lets a plan remove no throttle of others: set {keys}"


def _resource(write: _Write) -> str | None:
    name, rules = write.entity.entity_name or "", write.bounds.alerts.metric_rules
    if not name.startswith(_RESOURCES):
        return f"a plan writes only resources whose names begin with {' or '.join(_RESOURCES)}"
    if write.is_removal:
        return None
    prefixes = {prefix for rule in rules for prefix in rule.subscribed_prefixes}
    unknown = set(list_entries(write.change.value)) - prefixes
    if write.config_key == configs.METRICS.key and unknown:
        return f"no alert of conf asks for {min(unknown)}"
    least, after = min((r.subscribe_interval_s * 1_000 for r in rules), default=0), write.numbers[1]
    if write.config_key == configs.INTERVAL_MS.key and after is not None and after < least:
        return f"{after:.15g} ms is below {least} ms, the least of conf's alerts"
    return None


def match_problem(changes: Sequence[Change], actual: Mapping[str, str]) -> str | None:
    """Why changes of an entity would leave a client-metrics resource without its match, or None."""
    if not changes or changes[0].entity.entity_type != configs.CLIENT_METRICS:
        return None
    after: dict[str, str | None] = dict(actual)
    after |= {change.desired.config_key: change.value for change in changes}
    if after.get(configs.MATCH.key) or all(value is None for value in after.values()):
        return None
    return "without its match the resource would subscribe every client"


def _number(text: str | None) -> float | None:
    with suppress(TypeError, ValueError):
        return float(text)  # type: ignore[arg-type]
    return None


_RULES: Mapping[tuple[str, str], Callable[[_Write], str | None]] = {
    **{
        (configs.USER, config.key): _advised_quota
        for config in (
            configs.PRODUCER_BYTE_RATE,
            configs.CONSUMER_BYTE_RATE,
            configs.REQUEST_PERCENTAGE,
        )
    },
    (configs.USER, configs.PRODUCER_IDS_RATE.key): _id_rate,
    (configs.IP, configs.CONNECTION_CREATION_RATE.key): _address_rate,
    (configs.BROKER, configs.PRODUCER_ID_EXPIRATION_MS.key): _expiration,
    **{
        (configs.BROKER, config.key): _throttle_rate
        for config in (configs.LEADER_RATE, configs.FOLLOWER_RATE)
    },
    **{
        (configs.TOPIC, config.key): _throttled_list
        for config in (configs.LEADER_REPLICAS, configs.FOLLOWER_REPLICAS)
    },
    **{
        (configs.CLIENT_METRICS, config.key): _resource
        for config in (configs.METRICS, configs.INTERVAL_MS, configs.MATCH)
    },
}
"""What a result of the product may ask for, and how each is bounded."""
