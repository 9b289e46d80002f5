"""The MAC of records and leases: it proves that a process with the key wrote them as they are.

HMAC-SHA256 over length-prefixed fields, so no two different records have the same bytes. Pure: the
keys are arguments, and no text of this module has them.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.ledger.ledger import Record

RECORD, LEASE, HEAD = "record", "lease", "head"
"""The kinds of texts that are signed: the MAC of one kind is not valid for another."""
_VERSION = "quotaflow-1"
# `detail` is for people alone, and is added after the fact.
_UNSIGNED = {"mac", "detail", "entity", "observed"}
_SIGNED = tuple(each.name for each in fields(Record) if each.name not in _UNSIGNED)
_LENGTH_BYTES = 8
HOW_TO_MAKE_A_KEY = (
    "make one with (umask 077; openssl rand -hex 32 > FILE) and name it in "
    "feedback.signing_keys: [file:FILE]"
)


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs with the first key, and verifies with all of them. Without a key nothing verifies."""

    keys: tuple[bytes, ...] = field(repr=False)
    deployment: str

    def mac(self, kind: str, parts: Iterable[object]) -> str:
        """The MAC of a text in parts. Raises ConfigError without a key."""
        if not self.keys:
            raise ConfigError(f"no key signs what is written: {HOW_TO_MAKE_A_KEY}")
        return _mac(self.keys[0], kind, list(parts))

    def is_valid(self, kind: str, parts: Iterable[object], mac: str | None) -> bool:
        """Whether one of the keys made this MAC of these parts."""
        content, given = list(parts), (mac or "").encode("utf-8", "surrogatepass")
        return any(
            hmac.compare_digest(_mac(key, kind, content).encode(), given) for key in self.keys
        )

    def signed(self, record: Record, sequence: int) -> Record:
        """The record with its place in the order of this deployment's records, and its MAC."""
        named = replace(record, sequence=sequence, deployment=self.deployment)
        return replace(named, mac=self.mac(RECORD, _parts(named)))

    def verifies(self, record: Record) -> bool:
        """Whether a record is as it was signed, by this or by another deployment."""
        return record.sequence is not None and self.is_valid(RECORD, _parts(record), record.mac)


def _parts(record: Record) -> Sequence[object]:
    entity = record.entity
    names = [entity.cluster_id, entity.entity_type, entity.entity_name, entity.client_id]
    # A table gives a whole number back as one with a fraction.
    observed = None if record.observed is None else float(record.observed)
    return [*names, observed, *(getattr(record, name) for name in _SIGNED)]


def _mac(key: bytes, kind: str, parts: Iterable[object]) -> str:
    content = b"".join(map(_encoded, [_VERSION, kind, *parts]))
    return hmac.new(key, content, hashlib.sha256).hexdigest()


def _encoded(part: object) -> bytes:
    """A field with its type and length; null differs from every text."""
    if part is None:
        return b"-"
    if isinstance(part, datetime):
        part = part.astimezone(UTC).isoformat(timespec="microseconds")
    text = str(part).encode("utf-8", "surrogatepass")
    return b"+" + len(text).to_bytes(_LENGTH_BYTES, "big") + text
