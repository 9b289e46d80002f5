"""Pseudonyms: keyed hashes in place of names of a client or its machine, the same in all tables.

HMAC-SHA256 (RFC 2104) under a key that is in no table, so nobody without it can test names. Equal
texts of one column get equal pseudonyms, so tables still join. A text that looks like a pseudonym
is hashed like any other, so no client can take another's.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from quotaflow.schemas.events import HEADER_PREFIX

ADDRESS, CLIENT_ID = "client_address", "client_id"
COLUMNS = (ADDRESS, CLIENT_ID)
SCOPE_NAME = "scope_name"
"""The key for the name of an OTLP scope."""
MIN_KEY_BYTES = 32
_MARK = "hmac"
_HEX_DIGITS = 24
_PSEUDONYM = re.compile(rf"{_MARK}\.[a-z0-9]{{1,16}}\.[0-9a-f]{{{_HEX_DIGITS}}}")

# A member id of the classic protocol is the client id, or the static member's, and a UUID.
_MEMBER = re.compile(r"(?s)(.+)(-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
# local:port-remote:port-processor-index; before Kafka 4.0 without the processor. The zone of an
# IPv6 address may have hyphens, so the local address ends at its port.
_CONNECTION = re.compile(r"(?s)(.*?:\d+-)(.*)(:\d+-\d+(?:-\d+)?)")
# librdkafka's OTLP scope, and threads of Kafka Streams (KIP-1076), begin with the client id.
_OF_CLIENT = re.compile(r"(?s)(.+?)(#(?:producer|consumer)-\d+|-(?:Global)?StreamThread(?:-\d+)?)")
_OF_CLIENT_KEYS = {SCOPE_NAME, "thread_id", "thread-id"}
_MEMBER_KEYS = {"memberId", "leader", "group_member_id", "member_id"}
_CONNECTION_KEYS = {"connection_id"}
_KEYS = {
    "clientId": CLIENT_ID,
    "client_id": CLIENT_ID,
    "client.id": CLIENT_ID,
    "client-id": CLIENT_ID,
    "client_address": ADDRESS,
    "client_source_address": ADDRESS,
}
_ENTITY_COLUMNS = {"client_id": CLIENT_ID, "ip": ADDRESS}
MATCH = "match"
"""The config of a client-metrics resource that selects clients (KIP-714)."""
_SELECTORS = {"client_id": CLIENT_ID, "client_source_address": ADDRESS}
_SHOWN_SELECTORS = {
    *("client_instance_id", "client_software_name", "client_software_version"),
    "client_source_port",
}
Plain = Mapping[str, str | None]
"""Names of a row's own client, by column: they are hidden wherever they occur."""


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Hashes the columns in `hidden` (of COLUMNS); all others pass through."""

    key: bytes = field(repr=False)
    key_id: str
    hidden: frozenset[str] = frozenset(COLUMNS)

    def pseudonym(self, column: str, text: str) -> str:
        """The pseudonym of a text of a column; an empty text names nobody and is kept."""
        if not text or column not in self.hidden:
            return text
        # The column is hashed too: a client id that is an address must not match that address.
        message = f"{column}\0{text}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(self.key, message, "sha256").hex()[:_HEX_DIGITS]
        return f"{_MARK}.{self.key_id}.{digest}"

    def member_id(self, text: str) -> str:
        """A group member id with its client id hidden; the UUID after it is kept."""
        parts = _MEMBER.fullmatch(text)
        return self.pseudonym(CLIENT_ID, parts[1]) + parts[2] if parts else text

    def connection_id(self, text: str) -> str:
        """Kafka's connection id with the client's address hidden; another form is hidden whole."""
        parts = _CONNECTION.fullmatch(text)
        if parts is None:
            return self.pseudonym(ADDRESS, text)
        return parts[1] + self.pseudonym(ADDRESS, parts[2]) + parts[3]

    def match(self, text: str) -> str:
        """A `match` of a client-metrics resource (KIP-714) with names of clients hidden.

        An entry that no broker accepts is hidden too, because it can hold any text.
        """
        return ",".join(map(self._entry, text.split(",")))

    def _entry(self, entry: str) -> str:
        name, equals, pattern = entry.partition("=")
        if name.strip() in _SELECTORS:
            return f"{name}{equals}{self.pseudonym(_SELECTORS[name.strip()], pattern.strip())}"
        if name.strip() in _SHOWN_SELECTORS or CLIENT_ID not in self.hidden:
            return entry
        return self.pseudonym(CLIENT_ID, entry.strip())

    def config(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row of client_quotas, or of configs of client-metrics, with clients hidden."""
        changed = {
            name: self.pseudonym(column, row[name])
            for name, column in _ENTITY_COLUMNS.items()
            if row.get(name)
        }
        if row["config_key"] == MATCH and row.get("config_value"):
            changed["config_value"] = self.match(row["config_value"])
        return {**row, **changed}

    def tag(self, key: str, text: str) -> str:
        """The text of a key: of an attribute (OTLP), or of a request's JSON."""
        key = key.removeprefix(HEADER_PREFIX)
        if key in _MEMBER_KEYS:
            return self.member_id(text)
        if key in _OF_CLIENT_KEYS:
            parts = _OF_CLIENT.fullmatch(text)
            return self.pseudonym(CLIENT_ID, parts[1]) + parts[2] if parts else text
        if key in _CONNECTION_KEYS:
            return self.connection_id(text)
        return self.pseudonym(_KEYS[key], text) if key in _KEYS else text


def is_pseudonym(text: str | None) -> bool:
    """Whether a text has the form of a pseudonym, under any key."""
    return bool(text and _PSEUDONYM.fullmatch(text))
