"""`quotaflow adopt`: takes over what nobody would give back, by a person's yes.

That is what an earlier release wrote without a signature, what a lost warehouse left in the topic
of leases, rows of ours without a lease, and the leases of another deployment that is named.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.feedback import deployment, exclusive_section, journal
from quotaflow.pipelines.feedback.change import APPEND, APPLY, SET
from quotaflow.pipelines.feedback.change_writer import Configs, resolve_open
from quotaflow.pipelines.feedback.leases import LeaseBook, read_book
from quotaflow.pipelines.feedback.ledger import DONE, Key, OwnedConfig, Record
from quotaflow.pipelines.feedback.trust import TrustedLedger, judge
from quotaflow.pipelines.warehouse.tables import open_tables

PLAN_ID = "adopt"


@dataclass(frozen=True, slots=True)
class AdoptedConfig:
    """A config that is taken over: what we would give back, and where that is known from."""

    key: Key
    owned: OwnedConfig
    source: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """What is taken over, and the ends of open records without a signature.

    `distrusted` names rows and leases that are not believed, and that nobody can take over.
    """

    configs: tuple[AdoptedConfig, ...] = ()
    ends: tuple[Record, ...] = ()
    distrusted: tuple[str, ...] = ()


def preview(conf: Conf, other: str | None = None) -> Adoption:
    """What would be taken over, also from deployment `other`. Nothing is written.

    Raises ConfigError for a deployment that has no lease.
    """
    signer = deployment.signer(conf)
    with (
        exclusive_section.open_cluster(conf) as (cluster_id, configs),
        exclusive_section.open_leases(conf) as topic,
    ):
        book = read_book(topic.read(), signer, cluster_id)
        records = journal.read_records(open_tables(conf))
        trust = judge(records, signer, book, cluster_id)
        return _adoption(trust, book, configs, other, datetime.now(UTC))


def adopt(conf: Conf, report: Callable[[str], None], other: str | None = None) -> Adoption:
    """Sign and lease what `preview` shows."""
    exclusive_section.check_stop_file(conf)
    with exclusive_section.acquired(conf, report, purpose=PLAN_ID) as section:
        assert section.leases is not None
        book, apply = section.leases.book, section.apply
        adoption = _adoption(section.trust, book, apply.configs, other, apply.clock())
        apply.journal.add([*adoption.ends, *_records(adoption.configs, apply.run_id, apply.clock)])
        section.leases.accept()
        return adoption


def _adoption(
    trust: TrustedLedger, book: LeaseBook, configs: Configs, other: str | None, now: datetime
) -> Adoption:
    ends = resolve_open(configs, trust.unsigned, lambda: now)
    unsigned = trust.unsigned.with_ends(ends).owned
    missing = {key: trust.ledger.owned[key] for key in trust.unstored}
    named = _leases_of(other, book) if other is not None else {}
    sources: list[tuple[Mapping[Key, OwnedConfig], str]] = [
        (unsigned, "a row of config_changes without a signature of this deployment"),
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
    """What a deployment has to give back, as far as our keys verify it."""
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
