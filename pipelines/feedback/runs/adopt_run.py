"""`quotaflow adopt`: takes over what nobody would restore, by a person's yes.

That is what a lost warehouse left in the topic of leases, rows of ours without a lease, rows that
another deployment signed, and the leases of another deployment that is named.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.feedback.configs.change import (
    APPEND,
    APPLY,
    SET,
    is_same_value,
    list_entries,
)
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.ledger import deployment, journal
from quotaflow.pipelines.feedback.ledger.leases import LeaseBook, RefusedLease, read_book
from quotaflow.pipelines.feedback.ledger.ledger import DONE, Key, OwnedConfig, Record
from quotaflow.pipelines.feedback.ledger.trust import TrustedLedger, judge
from quotaflow.pipelines.feedback.planning.holds import release_command
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.runs.release_run import Request
from quotaflow.pipelines.feedback.writing import exclusive_section
from quotaflow.pipelines.feedback.writing.change_writer import Configs, resolve_open
from quotaflow.pipelines.kafka.cluster_state import UnansweredError

PLAN_ID = "adopt"


@dataclass(frozen=True, slots=True)
class AdoptedConfig:
    """A config that is taken over: what we would restore, and where that is known from."""

    key: Key
    owned: OwnedConfig
    source: str


@dataclass(frozen=True, slots=True)
class LeftLease:
    """A lease in our name that no key verifies, while its config may still have our value.

    `value` is that of the cluster, null where it is not set. `why` has the command that takes it
    over. `command` restores by hand what the lease claims; null where it cannot be read, or the
    entity does not answer.
    """

    key: Key
    value: str | None
    why: str
    command: str | None


@dataclass(frozen=True, slots=True)
class Adoption:
    """What is taken over, and the ends of open records of other deployments.

    `distrusted` names rows and leases that are not believed. `left` are those of them that stay in
    the topic until a person names them, and `over` those whose values the cluster no longer has.
    """

    configs: tuple[AdoptedConfig, ...] = ()
    ends: tuple[Record, ...] = ()
    distrusted: tuple[str, ...] = ()
    left: tuple[LeftLease, ...] = ()
    over: tuple[Key, ...] = ()


def preview(context: Context, other: str | None = None, named: Request | None = None) -> Adoption:
    """What would be taken over, also from deployment `other`. Nothing is written.

    `named`: this config alone, also by a lease that no key verifies. Raises ConfigError for a
    deployment that has no lease.
    """
    conf = context.writes
    signer = deployment.signer(conf.feedback, conf.warehouse)
    with (
        exclusive_section.open_cluster(conf) as (cluster_id, configs),
        exclusive_section.open_leases(conf) as topic,
    ):
        book = read_book(topic.read(), signer, cluster_id)
        records = journal.read_records(context.tables)
        trust = judge(records, signer, book, cluster_id)
        adoption = _adoption(trust, book, configs, other, datetime.now(UTC))
        return _of_named(
            _with_unverified(adoption, book, configs, context.plans.connection), named, book
        )


def adopt(
    context: Context,
    report: Callable[[str], None],
    other: str | None = None,
    named: Request | None = None,
) -> Adoption:
    """Sign and lease what `preview` shows.

    No lease is removed while its config may have our value: it is the only copy of the value
    before it.
    """
    with exclusive_section.acquired(context.writes, report, purpose=PLAN_ID) as section:
        book, apply = section.leases.book, section.apply
        everything = _adoption(section.trust, book, apply.configs, other, apply.clock())
        everything = _with_unverified(everything, book, apply.configs, context.plans.connection)
        adoption = _of_named(everything, named, book)
        apply.journal.add([*adoption.ends, *_records(adoption.configs, apply.run_id, apply.clock)])
        if named is None:
            section.leases.accept(adoption.over)
        return adoption


def _with_unverified(
    adoption: Adoption, book: LeaseBook, configs: Configs, connection: Connection
) -> Adoption:
    """The same with what is left of leases that no key verifies."""
    taken = {each.key for each in adoption.configs}
    left: list[LeftLease] = []
    over = list(taken & book.refused.keys())
    for key, lease in sorted(
        book.refused.items(), key=lambda item: (*item[0][0].order, item[0][1])
    ):
        if key in taken:
            continue
        try:
            value = configs.read(key[0]).get(key[1])
        except UnansweredError as error:
            left.append(LeftLease(key, None, f"{lease.why}, and {error}", None))
            continue
        if not _stands(key, lease, value):
            over.append(key)
        elif lease.owned is None:
            why = f"{lease.why}, nor can it be read: it stays until the config is removed"
            left.append(LeftLease(key, value, why, None))
        else:
            line = command(key[0], {key[1]: lease.owned.prior_value}, connection)
            adopts = release_command(key).replace("release", "adopt", 1)
            why = f"{lease.why}: {adopts} --yes takes it over"
            left.append(LeftLease(key, value, why, line))
    return replace(adoption, left=tuple(left), over=tuple(over))


def _stands(key: Key, lease: RefusedLease, value: str | None) -> bool:
    """Whether the config may still have what the lease claims to be ours."""
    if lease.is_over or value is None:
        return False
    if lease.owned is None:
        return True
    ours = lease.owned.entries & set(list_entries(value))
    return bool(ours) or is_same_value(key[1], value, lease.owned.value)


def _of_named(adoption: Adoption, named: Request | None, book: LeaseBook) -> Adoption:
    """What a person names, and nothing else: by a lease that no key verifies too."""
    if named is None:
        return adoption
    keys = [*(each.key for each in adoption.configs), *(each.key for each in adoption.left)]
    key = next((key for key in keys if named.key(key[0].cluster_id) == key), None)
    configs = tuple(each for each in adoption.configs if each.key == key)
    lease = None if key is None else book.refused.get(key)
    if not configs and key is not None and lease is not None and lease.owned is not None:
        configs = (AdoptedConfig(key, lease.owned, "a lease in the topic that no key verifies"),)
    if not configs:
        raise ConfigError(
            f"{named.entity_type}/{named.entity_name or ''} {named.config_key}: nothing of it can "
            "be taken over: quotaflow adopt shows what can"
        )
    return Adoption(configs, distrusted=adoption.distrusted)


def _adoption(
    trust: TrustedLedger, book: LeaseBook, configs: Configs, other: str | None, now: datetime
) -> Adoption:
    ends = resolve_open(configs, trust.others, lambda: now)
    stored = trust.others.with_ends(ends).owned
    missing = {key: trust.ledger.owned[key] for key in trust.unstored}
    named = _leases_of(other, book) if other is not None else {}
    sources: list[tuple[Mapping[Key, OwnedConfig], str]] = [
        (stored, "a row of config_changes without a signature of this deployment"),
        (trust.unleased.owned, "a row of config_changes without a lease in the topic"),
        (missing, "a lease in the topic without a row of config_changes"),
        (named, f"a lease of deployment {other}"),
    ]
    adopted = {
        key: AdoptedConfig(key, owned, source)
        for configs_of, source in sources
        for key, owned in configs_of.items()
        if key in named or key not in book.others
    }
    in_order = sorted(adopted.values(), key=lambda each: (*each.key[0].order, each.key[1]))
    return Adoption(tuple(in_order), tuple(end for end in ends if end.step != DONE), trust.problems)


def _leases_of(other: str, book: LeaseBook) -> dict[Key, OwnedConfig]:
    """What a deployment has to restore, as far as our keys verify it."""
    names = sorted({each.deployment for each in book.others.values()})
    if other not in names:
        hint = nearest(other, names) if names else ""
        raise ConfigError(f"no deployment {other} has a lease in the topic{hint}")
    return {
        key: each.lease.owned
        for key, each in book.others.items()
        if each.deployment == other and each.lease is not None and each.lease.owned is not None
    }


def _records(
    configs: Iterable[AdoptedConfig], run_id: str, clock: Callable[[], datetime]
) -> Iterable[Record]:
    for number, each in enumerate(configs):
        owned, written = each.owned, each.owned.record
        entries = ",".join(sorted(owned.entries))
        yield replace(
            written,
            event_time=clock(),
            run_id=run_id,
            number=number,
            plan_id=PLAN_ID,
            purpose=APPLY,
            step=DONE,
            operation=APPEND if entries else SET,
            operand=entries or owned.value,
            prior_value=owned.prior_value,
            config_value=owned.value,
            expires_at=owned.expires_at,
            detail=f"taken over: {each.source}",
        )
