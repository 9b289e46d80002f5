"""Hides every name of a client in the JSON of a request and its response."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quotaflow.udfs.rules.pseudonym import ADDRESS, CLIENT_ID, MATCH, Plain, Pseudonyms

_ENTITIES = {"client-id": CLIENT_ID, "ip": ADDRESS}
# Bytes of group members (JOIN_GROUP, SYNC_GROUP): those of Kafka Streams name its machines.
_OPAQUE = ("assignment", "metadata", "userData")
_HIDDEN = "[hidden]"
# The machine of a Kafka Streams client (KIP-1071).
_ENDPOINT = "userEndpoint"
# An ACL, or a filter of ACLs: its host is an address of a client.
_ACL, _ANY_HOST = "permissionType", "*"
_ACL_HOSTS = ("host", "hostFilter")
_ENTITY_NAMES = ("entityName", "match")
# Here a broker says why it refused, and quotes the request.
_CITES = "errorMessage"


def hidden_body(text: str, pseudonyms: Pseudonyms, plain: Plain) -> str:
    """The body with its clients hidden, also where an error quotes a text hidden elsewhere.

    A body that cannot be walked is replaced by its size in bytes.
    """
    try:
        body = json.loads(text)
        own = {text: pseudonyms.pseudonym(column, text) for column, text in plain.items() if text}
        walk = _Walk(pseudonyms, plain, own)
        walked = walk.node("", body)
        if walk.hidden and _CITES in text:
            walked = _without("", walked, _any_of(walk.hidden), walk.hidden)
    except (ValueError, RecursionError):
        walked = {"omitted_bytes": len(text.encode("utf-8", "surrogatepass"))}
    walked_text = json.dumps(walked, ensure_ascii=False, separators=(",", ":"))
    # Half of a surrogate pair, which an escape can hold, is no text.
    return walked_text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk through a body: `hidden` collects every changed text with its pseudonym."""

    pseudonyms: Pseudonyms
    plain: Plain
    hidden: dict[str, str]

    def node(self, key: str, node: Any) -> Any:
        if isinstance(node, str):
            return self._changed(node, self._text(key, node))
        if isinstance(node, list):
            return [self.node(key, each) for each in node]
        if not isinstance(node, dict):
            return node
        walked = {name: self.node(name, each) for name, each in node.items()}
        if key == _ENDPOINT and isinstance(node.get("host"), str):
            hidden = self.pseudonyms.pseudonym(ADDRESS, node["host"])
            walked["host"] = self._changed(node["host"], hidden)
        for name in _ACL_HOSTS if _ACL in node else ():
            if isinstance(node.get(name), str) and node[name] != _ANY_HOST:
                hidden = self.pseudonyms.pseudonym(ADDRESS, node[name])
                walked[name] = self._changed(node[name], hidden)
        column = _ENTITIES.get(str(node.get("entityType")))
        for name in _ENTITY_NAMES if column else ():
            if isinstance(node.get(name), str):
                hidden = self.pseudonyms.pseudonym(str(column), node[name])
                walked[name] = self._changed(node[name], hidden)
        if node.get("name") == MATCH and isinstance(node.get("value"), str):
            walked["value"] = self._match(node["value"])
        return walked

    def _match(self, text: str) -> str:
        # A broker quotes the one entry of a match that it refuses.
        for entry in text.split(","):
            self._changed(entry, self.pseudonyms.match(entry))
        return self.pseudonyms.match(text)

    def _text(self, key: str, text: str) -> str:
        if key in _OPAQUE and text:
            return _HIDDEN
        named = next((column for column, own in self.plain.items() if own and own == text), None)
        return self.pseudonyms.pseudonym(named, text) if named else self.pseudonyms.tag(key, text)

    def _changed(self, text: str, hidden: str) -> str:
        if hidden != text:
            self.hidden[text] = hidden
        return hidden


def _any_of(texts: Mapping[str, str]) -> re.Pattern[str]:
    """A pattern for any of the texts as a whole word, the longest first."""
    longest = sorted(texts, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)")


def _without(key: str, node: Any, names: re.Pattern[str], hidden: Mapping[str, str]) -> Any:
    if isinstance(node, str) and key == _CITES:
        return names.sub(lambda match: hidden[match[0]], node)
    if isinstance(node, list):
        return [_without(key, each, names, hidden) for each in node]
    if isinstance(node, dict):
        return {name: _without(name, each, names, hidden) for name, each in node.items()}
    return node
