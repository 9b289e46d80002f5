"""Leases: the part of the ledger that lives in the cluster, one signed record per owned config.

A lease has all that a restore needs: the baseline, the value that is ours, the end of the lease,
and the open records. A head of each deployment lists its leases, so a copied old lease and a
missing one are noticed. Pure: topic and key are arguments.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import Baseline, Key, Ledger, OwnedConfig, Record
from quotaflow.pipelines.feedback.ledger.signing import HEAD, LEASE, Signer
from quotaflow.schemas.configs import BROKER_LOGGER
from quotaflow.udfs.counted import counted

Item = tuple[bytes, bytes | None]
"""Key and value of a record of the topic; without a value it is a tombstone."""

_TAG_CHARS = 16
_NAME_CHARS = 100
_KEY_PARTS = 5


@dataclass(frozen=True, slots=True)
class Lease:
    """What a deployment has to restore of one config.

    `open_records` have no end yet, each with its baseline and the time of the last record of its
    run. `last_write` is our last write that was read back. `unstored` are records that the tables
    do not have yet, because the warehouse could not be written. `replaces` is the tag of the lease
    before it that the head lists.
    """

    key: Key
    deployment: str
    sequence: int
    owned: OwnedConfig | None
    open_records: tuple[tuple[Record, Baseline, datetime], ...] = ()
    last_write: Record | None = None
    unstored: tuple[Record, ...] = ()
    replaces: str | None = None
    mac: str = ""

    @property
    def tag(self) -> str:
        """A short name for this state of the lease."""
        return self.mac[:_TAG_CHARS]

    @property
    def is_over(self) -> bool:
        """Whether nothing is to be restored."""
        return self.owned is None and not self.open_records

    @property
    def is_done(self) -> bool:
        """Whether the topic needs it no more."""
        return self.is_over and not self.unstored


@dataclass(frozen=True, slots=True)
class OtherLease:
    """A lease of another deployment; null `lease` if no key of ours verifies it."""

    deployment: str
    lease: Lease | None
    item: Item


@dataclass(frozen=True, slots=True)
class RefusedLease:
    """A lease in our name that is not believed. `owned`: what it claims to be ours, if readable."""

    why: str
    owned: OwnedConfig | None
    is_readable: bool

    @property
    def is_over(self) -> bool:
        """Whether it claims that nothing is ours."""
        return self.is_readable and self.owned is None


@dataclass(frozen=True, slots=True)
class LeaseBook:
    """The leases of a topic, as far as a deployment may believe them.

    `problems` name what does not verify, is a copy of an old lease, or is missing. `refused` are
    the leases in our name that are not believed. `tags` are those of the head, null where
    there is none. `sequence` is the newest. `ignored` counts records under no key that quotaflow
    writes: everybody who may write to the topic can add them, and they mean nothing.
    """

    leases: Mapping[Key, Lease] = field(default_factory=dict)
    others: Mapping[Key, OtherLease] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    tags: frozenset[str] | None = None
    sequence: int = 0
    refused: Mapping[Key, RefusedLease] = field(default_factory=dict)
    ignored: int = 0

    @property
    def ledger(self) -> Ledger:
        """What is to be restored, as the tables' ledger has it."""
        return ledger(self.leases.values())


def ledger(leases: Iterable[Lease]) -> Ledger:
    """The part of a ledger that leases show."""
    of_keys = list(leases)
    started = [each for lease in of_keys for each in lease.open_records]
    last_at: dict[str, datetime] = {}
    for run_id, at in (pair for lease in of_keys for pair in _run_times(lease)):
        last_at[run_id] = max(at, last_at.get(run_id, at))
    return Ledger(
        owned={lease.key: lease.owned for lease in of_keys if lease.owned is not None},
        last_writes={lease.key: lease.last_write for lease in of_keys if lease.last_write},
        open_records=tuple(record for record, _, _ in started),
        last_record_by_run=last_at,
        baselines={record.write: baseline for record, baseline, _ in started},
    )


def _run_times(lease: Lease) -> Iterable[tuple[str, datetime]]:
    """Times of records by run: the leases of a run are written at different times."""
    records = [*lease.unstored, *([lease.last_write] if lease.last_write else [])]
    yield from ((record.run_id, record.event_time) for record in records)
    yield from ((record.run_id, at) for record, _, at in lease.open_records)


def is_leased(key: Key) -> bool:
    """Whether writes of this config have a lease in the topic.

    The level of a logger has none: its broker alone knows it, and forgets it when it restarts.
    """
    return key[0].entity_type != BROKER_LOGGER


def topic_key(key: Key) -> bytes:
    """The key of a config's lease: the same for all deployments."""
    entity, config_key = key
    parts = [LEASE, entity.entity_type, entity.entity_name, entity.client_id, config_key]
    return json.dumps(parts, separators=(",", ":")).encode()


def head_key(deployment: str) -> bytes:
    """The key of a deployment's head."""
    return json.dumps([HEAD, deployment], separators=(",", ":")).encode()


_LEASE = TypeAdapter(Lease)


def to_item(lease: Lease, signer: Signer) -> tuple[Lease, Item]:
    """The lease with its MAC, and its record of the topic."""
    key = topic_key(lease.key)
    text = _LEASE.dump_json(lease, exclude={"mac"}).decode()
    mac = signer.mac(LEASE, [key.decode(), text])
    return replace(lease, mac=mac), (key, _envelope(lease.deployment, text, mac))


def head_item(tags: Iterable[str], sequence: int, cluster_id: str, signer: Signer) -> Item:
    """The head of this deployment: its newest sequence, and the tags of its leases."""
    key = head_key(signer.deployment)
    text = json.dumps({"cluster_id": cluster_id, "sequence": sequence, "tags": sorted(tags)})
    return key, _envelope(signer.deployment, text, signer.mac(HEAD, [key.decode(), text]))


def _envelope(deployment: str, text: str, mac: str) -> bytes:
    return json.dumps({"deployment": deployment, "text": text, "mac": mac}).encode()


def read_book(items: Iterable[Item], signer: Signer, cluster_id: str) -> LeaseBook:
    """The leases of all records of a topic, in their order."""
    latest: dict[bytes, bytes] = {}
    for key, value in items:
        latest.pop(key, None)
        if value is not None:
            latest[key] = value
    head = _head(latest.pop(head_key(signer.deployment), None), signer, cluster_id)
    leases: dict[Key, Lease] = {}
    others: dict[Key, OtherLease] = {}
    refused: dict[Key, RefusedLease] = {}
    ignored = 0
    for topic_record in latest.items():
        parsed = _key(topic_record[0], cluster_id)
        if parsed is None:
            ignored += not _is_head(topic_record[0])
            continue
        deployment, lease = _lease(parsed, topic_record, signer)
        if deployment != signer.deployment:
            others[parsed] = OtherLease(deployment, lease, topic_record)
        elif lease is None:
            refused[parsed] = _refused(parsed, topic_record, "does not verify")
        elif head is not None and not lease.is_over and head.is_old(lease):
            refused[parsed] = _refused(parsed, topic_record, "is an old one, written again")
        else:
            leases[parsed] = lease
    problems = [f"{key[0]}: {key[1]}: {each.why}" for key, each in refused.items()]
    problems += [*(head.problems if head else ()), *_missing(head, leases, others)]
    sequences = [lease.sequence for lease in leases.values()]
    newest = max([*sequences, 0 if head is None else head.sequence], default=0)
    tags = None if head is None else head.tags
    return LeaseBook(leases, others, tuple(sorted(problems)), tags, newest, refused, ignored)


@dataclass(frozen=True, slots=True)
class _Head:
    sequence: int
    tags: frozenset[str]
    problems: tuple[str, ...] = ()

    def is_old(self, lease: Lease) -> bool:
        """Whether the head was written after this lease and does not list it."""
        return lease.sequence <= self.sequence and lease.tag not in self.tags


def _head(value: bytes | None, signer: Signer, cluster_id: str) -> _Head | None:
    if value is None:
        return None
    key = head_key(signer.deployment).decode()
    _, text, mac = _opened(value)
    content = json.loads(text) if signer.is_valid(HEAD, [key, text], mac) else {}
    if content.get("cluster_id") != cluster_id:
        return _Head(0, frozenset(), ("the list of leases in the topic does not verify",))
    return _Head(content["sequence"], frozenset(content["tags"]))


def _missing(
    head: _Head | None, leases: Mapping[Key, Lease], others: Mapping[Key, OtherLease]
) -> list[str]:
    if head is None:
        live = [lease for lease in leases.values() if not lease.is_over]
        return ["the list of leases is missing in the topic"] if live else []
    theirs = [other.lease for other in others.values() if other.lease is not None]
    present = {tag for each in [*leases.values(), *theirs] for tag in (each.tag, each.replaces)}
    count = len(head.tags - present)
    missing = counted(
        count, "lease that was written is missing", "leases that were written are missing"
    )
    return [f"{missing} in the topic"] if count else []


def _lease(key: Key, item: Item, signer: Signer) -> tuple[str, Lease | None]:
    """The deployment that a record names, and its lease if a key of ours verifies it."""
    deployment, text, mac = _opened(item[1] or b"")
    if not signer.is_valid(LEASE, [item[0].decode(), text], mac):
        return deployment, None
    lease = replace(_LEASE.validate_json(text), mac=mac)
    is_of_key = lease.key == key and lease.deployment == deployment
    return deployment, lease if is_of_key else None


def _refused(key: Key, item: Item, why: str) -> RefusedLease:
    """What a lease claims that is not believed: everybody may have written it."""
    claimed, is_readable = None, False
    with suppress(ValueError):
        lease = _LEASE.validate_json(_opened(item[1] or b"")[1])
        claimed = ledger([lease]).assuming_open_done().owned.get(key)
        is_readable = lease.key == key
    return RefusedLease(f"its lease in the topic {why}", claimed, is_readable)


def _key(key: bytes, cluster_id: str) -> Key | None:
    """The config of a lease's key; None for other records.

    Another spelling of the key in JSON is another record to Kafka, so it is no lease.
    """
    parts = _parts(key)
    if len(parts) != _KEY_PARTS or parts[0] != LEASE:
        return None
    _, entity_type, entity_name, client_id, config_key = parts
    texts = all(isinstance(part, str) for part in (entity_type, config_key))
    names = all(part is None or isinstance(part, str) for part in (entity_name, client_id))
    if not texts or not names:
        return None
    parsed = ConfigEntity(cluster_id, entity_type, entity_name, client_id), config_key
    return parsed if topic_key(parsed) == key else None


def _is_head(key: bytes) -> bool:
    parts = _parts(key)
    return len(parts) == 2 and parts[0] == HEAD and head_key(parts[1]) == key  # noqa: PLR2004


def _parts(key: bytes) -> list[Any]:
    """The parts of a key; none of what is no list."""
    try:
        parts = json.loads(key.decode("ascii"))
    except (ValueError, RecursionError):
        return []
    return parts if isinstance(parts, list) else []


def _opened(value: bytes) -> tuple[str, str, str]:
    """Deployment, text and MAC of a record's value; empty where it is no envelope."""
    try:
        envelope = json.loads(value)
        parts = [envelope[name] for name in ("deployment", "text", "mac")]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "", "", ""
    if not all(isinstance(part, str) for part in parts):
        return "", "", ""
    return parts[0][:_NAME_CHARS], parts[1], parts[2]
