"""Which records of the tables and leases of the topic are believed, and why others are not.

The topic says what is ours now, the tables what was. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from quotaflow.pipelines.feedback.configs.change import RESTORE
from quotaflow.pipelines.feedback.ledger.leases import LeaseBook, is_leased
from quotaflow.pipelines.feedback.ledger.leases import ledger as leases_ledger
from quotaflow.pipelines.feedback.ledger.ledger import DONE, Key, Ledger, Record
from quotaflow.pipelines.feedback.ledger.signing import Signer


@dataclass(frozen=True, slots=True)
class TrustedLedger:
    """The ledger of what verifies, and what is left out of it.

    `problems` name each row and lease that is not believed. `others` is the ledger of rows that
    another deployment signed, by a key of ours: a person can take them over. `unstored` have a
    lease of ours and no row, as after the loss of a warehouse. `unleased` have a row of ours and
    no lease.
    """

    ledger: Ledger = field(default_factory=Ledger)
    problems: tuple[str, ...] = ()
    others: Ledger = field(default_factory=Ledger)
    unstored: tuple[Key, ...] = ()
    unleased: Ledger = field(default_factory=Ledger)

    @property
    def refused(self) -> tuple[str, ...]:
        """Each row or lease that is not believed, in words."""
        others = [*self.others.owned, *(record.key for record in self.others.open_records)]
        return (
            *self.problems,
            *(
                f"{_named(key)}: no signature of this deployment: quotaflow adopt shows it"
                for key in sorted(set(others), key=_order)
            ),
            *(
                f"{_named(key)}: config_changes says that it is ours, and the topic has no lease "
                "of it: an old row was copied, or the topic was lost: quotaflow adopt shows it"
                for key in sorted(self.unleased.owned, key=_order)
            ),
        )


def judge(
    records: Iterable[Record], signer: Signer, book: LeaseBook, cluster_id: str
) -> TrustedLedger:
    """What of these records of the tables and of these leases is believed."""
    trusted: dict[str | None, Record] = {}
    of_others: list[Record] = []
    problems: list[str] = []
    for record in records:
        if record.entity.cluster_id != cluster_id:
            continue
        if not signer.verifies(record):
            problems.append(_altered(record))
        elif record.deployment != signer.deployment:
            of_others.append(record)
        else:
            # A copy of a row is the same row.
            trusted.setdefault(record.mac, record)
    stored = Ledger.from_records(trusted.values())
    given_back = _given_back(book, trusted.values())
    problems += [
        f"{_named(key)}: its lease in the topic is older than the row that gave it back"
        for key in given_back
    ]
    leases = {key: lease for key, lease in book.leases.items() if key not in given_back}
    live = leases_ledger(leases.values())
    unleased = [key for key in stored.owned if is_leased(key) and key not in book.leases]
    return TrustedLedger(
        ledger=_joined(stored, live),
        problems=(*book.problems, *sorted(set(problems))),
        others=_left(Ledger.from_records(of_others), trusted.values()),
        unstored=tuple(
            key
            for key, lease in leases.items()
            if lease.owned and not lease.open_records and not lease.unstored
            if key not in stored.owned
        ),
        unleased=stored.restricted_to(unleased),
    )


def _given_back(book: LeaseBook, trusted: Iterable[Record]) -> set[Key]:
    """Configs whose lease is older than the end of their restore, as in a copy of an old topic.

    A run that was killed between table and topic left the lease open, so that is none.
    """
    newest: dict[Key, int] = {}
    for record in trusted:
        if record.step == DONE and record.purpose == RESTORE:
            newest[record.key] = max(record.sequence or 0, newest.get(record.key, 0))
    return {
        key
        for key, lease in book.leases.items()
        if lease.owned is not None and not lease.open_records
        if lease.sequence < newest.get(key, 0)
    }


def _joined(stored: Ledger, live: Ledger) -> Ledger:
    """The history of the tables with what the topic says is ours."""
    ran = dict(stored.last_record_by_run)
    for run_id, at in live.last_record_by_run.items():
        ran[run_id] = max(at, ran.get(run_id, at))
    loggers = {key: owned for key, owned in stored.owned.items() if not is_leased(key)}
    started = [record for record in stored.open_records if not is_leased(record.key)]
    return replace(
        stored,
        owned=loggers | dict(live.owned),
        last_writes={**live.last_writes, **stored.last_writes},
        open_records=(*started, *live.open_records),
        last_record_by_run=ran,
        baselines={**stored.baselines, **live.baselines},
    )


def _left(others: Ledger, trusted: Iterable[Record]) -> Ledger:
    """The configs of other deployments that nobody has taken over since."""
    since: dict[Key, datetime] = {}
    for record in trusted:
        since[record.key] = max(record.event_time, since.get(record.key, record.event_time))
    left = [key for key, owned in others.owned.items() if not _is_after(since, key, owned.since)]
    still = [r for r in others.open_records if not _is_after(since, r.key, r.event_time)]
    return replace(others.restricted_to(left), open_records=tuple(still))


def _is_after(since: Mapping[Key, datetime], key: Key, at: datetime) -> bool:
    return key in since and since[key] >= at


def _altered(record: Record) -> str:
    name = _named(record.key)
    return f"{name}: the row of {record.event_time:%Y-%m-%d %H:%M:%S} UTC does not verify"


def _named(key: Key) -> str:
    return f"{key[0]}: {key[1]}"


def _order(key: Key) -> tuple[str, ...]:
    return (*key[0].order, key[1])
