"""A journal that signs records, and keeps the leases of the cluster in step with the tables.

A lease is in the topic before its config is altered, and until the tables have the end. So
all that the tables own has a lease in the topic, also after kill -9 between any two steps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.ledger.journal import Journal
from quotaflow.pipelines.feedback.ledger.leases import (
    Item,
    Lease,
    LeaseBook,
    head_item,
    is_leased,
    read_book,
    to_item,
    topic_key,
)
from quotaflow.pipelines.feedback.ledger.ledger import STARTED, Key, LedgerBuilder, Record
from quotaflow.pipelines.feedback.ledger.signing import Signer

_UNREAD = 1_000
"""More than one commit of records: the tables may have them, and no lease yet."""


class LeaseTopic(Protocol):
    """The topic of leases. Methods raise KafkaError."""

    def read(self) -> list[Item]:
        """The records since the last read."""
        ...

    def append(self, items: Sequence[Item]) -> None:
        """Write records durably, in this order."""


class SignedJournal:
    """Signs and stores records of one run, and writes the leases that follow from them.

    Without `tables` the warehouse cannot be written now: the leases keep the records until a later
    run stores them.
    """

    def __init__(
        self,
        signer: Signer,
        cluster_id: str,
        topic: LeaseTopic,
        book: LeaseBook,
        *,
        tables: Journal | None = None,
        sequence: int = 0,
    ) -> None:
        """`sequence` is the newest of the tables."""
        self.signer = signer
        self._cluster_id = cluster_id
        self._topic = topic
        self._tables = tables
        self._leases = dict(book.leases)
        self._book = book
        self._sequence = max(sequence, book.sequence) + (_UNREAD if tables is None else 0)
        live = [lease for lease in book.leases.values() if not lease.is_done]
        self._in_head = set(book.tags or ())
        # Leases that a killed run wrote are not in the head yet, and what they replace still is.
        taken_over = [other.lease for other in book.others.values() if other.lease is not None]
        replaced = {each.replaces for each in (*book.leases.values(), *taken_over)}
        self._listed = self._in_head - replaced
        self._listed |= {lease.tag for lease in live}
        self._has_head = book.tags is not None
        self._state = LedgerBuilder(book.ledger)

    @property
    def book(self) -> LeaseBook:
        """The leases as they are in the topic now."""
        return replace(self._book, leases=dict(self._leases), sequence=self._sequence)

    def add(self, records: Sequence[Record]) -> None:
        """Sign and store all of them or none. Raises as the tables and the topic do."""
        if not records:
            return
        signed = [self._signed(record) for record in records]
        if any(record.step == STARTED for record in signed):
            self._check_others(self._write_leases(signed))
            self._store(signed)
        else:
            self._store(signed)
            self._write_leases(signed)

    def settle(self, stored: Iterable[str | None]) -> None:
        """Store what a run without tables left in leases, and drop those that are done.

        `stored` are the MACs of the records that the tables have.
        """
        left = [lease for lease in self._leases.values() if lease.unstored]
        if self._tables is not None:
            existing = set(stored)
            records = [r for lease in left for r in lease.unstored if r.mac not in existing]
            if records:
                self._tables.add(sorted(records, key=lambda record: record.sequence or 0))
            # A new sequence, or the head would call them old until it is written, too.
            left = [replace(each, unstored=(), sequence=self._next_sequence()) for each in left]
        done = [lease for lease in self._leases.values() if lease.is_done]
        if self._tables is not None and (left or done):
            self._publish(left, done)

    def accept(self, removed: Iterable[Key]) -> None:
        """List the leases that are in the topic, forget those that are missing, and remove these,
        whose values the cluster no longer has.
        """
        self._listed = {each.tag for each in self._leases.values() if not each.is_done}
        tombstones = [(topic_key(key), None) for key in removed if key not in self._leases]
        self._topic.append([*tombstones, self._head()])
        self._in_head = set(self._listed)

    def _signed(self, record: Record) -> Record:
        return self.signer.signed(record, self._next_sequence())

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def _store(self, records: Sequence[Record]) -> None:
        if self._tables is not None:
            self._tables.add(records)

    def _write_leases(self, records: Sequence[Record]) -> list[Item]:
        """Write the leases that these records change. Returns their records of the topic."""
        unstored: dict[Key, list[Record]] = {}
        changed: dict[Key, Lease] = {}
        for record in records:
            self._state.add(record)
            if is_leased(record.key) and self._is_of_lease(record):
                if self._tables is None:
                    unstored.setdefault(record.key, []).append(record)
                changed[record.key] = self._lease(record, unstored.get(record.key, []))
        return self._publish(list(changed.values()), []) if changed else []

    def _is_of_lease(self, record: Record) -> bool:
        """Whether a record changes a lease: what a broker refused before the start does not."""
        lease = self._leases.get(record.key)
        is_live = lease is not None and not lease.is_over
        return is_live or record.step == STARTED or record.key in self._state.owned

    def _lease(self, record: Record, unstored: Sequence[Record]) -> Lease:
        before = self._leases.get(record.key)
        return Lease(
            key=record.key,
            deployment=self.signer.deployment,
            sequence=record.sequence or 0,
            owned=self._state.owned.get(record.key),
            open_records=self._state.open_parts(record.key),
            last_write=self._state.last_write(record.key),
            unstored=(*(before.unstored if before else ()), *unstored),
        )

    def _publish(self, leases: Sequence[Lease], done: Sequence[Lease]) -> list[Item]:
        """Write leases, then the head that lists them, then tombstones of those that are done."""
        items: list[Item] = []
        before_all: list[Item] = []
        if not self._has_head:
            # Else a copied lease of before would pass for one of a killed first run.
            before_all.append(self._head_of(set(), 0))
            self._has_head = True
        for lease in leases:
            replaced = self._leases.get(lease.key)
            tag = self._adopted_tag(lease) if replaced is None else self._tag_in_head(replaced)
            made, item = to_item(replace(lease, replaces=tag), self.signer)
            items.append(item)
            if replaced is not None:
                self._listed.discard(replaced.tag)
            if not made.is_done:
                self._listed.add(made.tag)
            self._leases[made.key] = made
        over = [lease for lease in (*leases, *done) if self._leases[lease.key].is_done]
        self._listed -= {self._leases[lease.key].tag for lease in over}
        tombstones = [(topic_key(key), None) for key in dict.fromkeys(lease.key for lease in over)]
        self._topic.append([*before_all, *items, self._head(), *tombstones])
        self._in_head = set(self._listed)
        for lease in over:
            self._leases.pop(lease.key, None)
        return items

    def _adopted_tag(self, lease: Lease) -> str | None:
        """The tag of another deployment's lease that this one takes over."""
        other = self._book.others.get(lease.key)
        return None if other is None or other.lease is None else other.lease.tag

    def _tag_in_head(self, lease: Lease) -> str | None:
        return lease.tag if lease.tag in self._in_head else lease.replaces

    def _head(self) -> Item:
        return self._head_of(self._listed, self._sequence)

    def _head_of(self, tags: set[str], sequence: int) -> Item:
        return head_item(tags, sequence, self._cluster_id, self.signer)

    def _check_others(self, items: Sequence[Item]) -> None:
        """Raise FeedbackError if another deployment leased one of these configs a moment before.

        Its lease is written again, because ours followed it.
        """
        ours = dict(items)
        first: dict[bytes, bytes] = {}
        for key, value in self._topic.read():
            if value is not None and (value == ours.get(key) or self._is_of_other(key, value)):
                first.setdefault(key, value)
        theirs = {k: value for k, value in first.items() if k in ours and value != ours[k]}
        if not theirs:
            return
        self._topic.append(list(theirs.items()))
        book = read_book(theirs.items(), self.signer, self._cluster_id)
        names = [f"{k[0]}: {k[1]} by {other.deployment}" for k, other in book.others.items()]
        raise FeedbackError(
            f"another deployment leased the same configs this moment ({', '.join(sorted(names))}): "
            "nothing was written"
        )

    def _is_of_other(self, key: bytes, value: bytes) -> bool:
        return bool(read_book([(key, value)], self.signer, self._cluster_id).others)


def open_journal(
    records: Iterable[Record],
    items: Iterable[Item],
    signer: Signer,
    cluster_id: str,
    topic: LeaseTopic,
    *,
    tables: Journal | None = None,
) -> SignedJournal:
    """The journal of a run, once it stored what a run without tables left.

    `records` are those of the tables, and `items` those of the topic.
    """
    stored = [record for record in records if signer.verifies(record)]
    book = read_book(items, signer, cluster_id)
    newest = max((record.sequence or 0 for record in stored), default=0)
    opened = SignedJournal(signer, cluster_id, topic, book, tables=tables, sequence=newest)
    opened.settle(record.mac for record in stored)
    return opened
