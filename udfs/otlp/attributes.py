"""Attributes as text, with the different names that clients use for one thing brought to one.

Java and librdkafka differ: node_id "node-2" against node.id 2, group_member_id against member_id
(KIP-714 leaves the spelling to the client). Values other than strings become JSON text, bytes
become base64.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from operator import itemgetter

from mmh3 import mmh3_x64_128_utupledigest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from quotaflow.schemas.events import HEADER_PREFIX
from quotaflow.udfs.otlp.codecs import Limits

CUT_MARK = "…"
DROPPED = "otel.dropped_attributes_count"

_INT_MAX = 2**31 - 1
_INT_CHARS = len(str(-_INT_MAX))
_LEAST_COORDINATOR = 2**30
_Json = str | bool | int | float | None | list["_Json"] | dict[str, "_Json"]


def digest(texts: Iterable[str | None]) -> int:
    """64 bits that identify texts in their order, the same in every process.

    MurmurHash3; lengths are hashed too, so that two texts never run together.
    """
    return digest_of(b"".join(map(digest_part, texts)))


def digest_part(text: str | None) -> bytes:
    """What is hashed of a text."""
    return b"-" if text is None else b"%d:%s" % (len(text), text.encode())


def digest_of(parts: bytes) -> int:
    """The digest of texts, given the parts of all of them."""
    return mmh3_x64_128_utupledigest(parts)[0]


Shape = tuple[tuple[str, ...], tuple[int, ...]]
"""The keys of a set in their order, and the size of each value in bytes, -1 for null."""


class Tags(tuple[tuple[str, str | None], ...]):
    """Attributes by key, sorted; a null value is one that the client named and did not set.

    Derived values are computed once per set, because clients push the same sets again and again.
    """

    @cached_property
    def by_key(self) -> dict[str, str | None]:
        """The values by their keys."""
        return dict(self)

    @cached_property
    def shape(self) -> Shape:
        """With `content` all there is of the set."""
        sizes = (-1 if value is None else len(value.encode()) for _, value in self)
        return tuple(key for key, _ in self), tuple(sizes)

    @cached_property
    def content(self) -> bytes:
        """The values end to end."""
        return "".join(value or "" for _, value in self).encode()

    @cached_property
    def digest(self) -> int:
        """64 bits that identify the set."""
        return digest(text for tag in self for text in tag)

    @cached_property
    def characters(self) -> int:
        """The total length of its texts."""
        return sum(len(key) + len(value or "") for key, value in self)


def cut(text: str, limits: Limits) -> str:
    """The text, or as much as the limit allows with `…` as its last character."""
    if len(text) <= limits.string_chars:
        return text
    return text[: limits.string_chars - 1] + CUT_MARK


def tags(attributes: Sequence[KeyValue], limits: Limits) -> Tags:
    """Attributes as text by key: the last of a repeated key wins, as in a map.

    Of a record's headers the first: a Collector writes over the first and leaves the others, which
    are the client's.

    Attributes over the limit are dropped and counted in `otel.dropped_attributes_count`, the name
    OpenTelemetry gives that count where it has no field.
    """
    first_ones = list(islice(attributes, limits.attributes))
    kept = {cut(kv.key, limits): _text(kv.value, limits) for kv in first_ones}
    if len(kept) < len(first_ones):
        kept |= {
            cut(kv.key, limits): _text(kv.value, limits)
            for kv in reversed(first_ones)
            if kv.key.startswith(HEADER_PREFIX)
        }
    if (dropped := len(attributes) - limits.attributes) > 0:
        kept[DROPPED] = str(dropped)
    return Tags(sorted(kept.items(), key=_key) if len(kept) > 1 else kept.items())


_key = itemgetter(0)


def _text(value: AnyValue, limits: Limits) -> str | None:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return cut(value.string_value, limits)
    if kind == "bytes_value":
        return cut(base64.b64encode(value.bytes_value).decode(), limits)
    plain = _json(value, limits.nesting)
    if plain is None:
        return None
    return cut(json.dumps(plain, ensure_ascii=False, separators=(",", ":")), limits)


def _json(value: AnyValue, depth: int) -> _Json:
    """A nested value for JSON, cut to `…` below `depth` levels."""
    kind = value.WhichOneof("value")
    if kind in ("array_value", "kvlist_value") and not depth:
        return CUT_MARK
    if kind == "array_value":
        return [_json(item, depth - 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {kv.key: _json(kv.value, depth - 1) for kv in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind in ("string_value", "bool_value", "int_value", "double_value"):
        scalar: _Json = getattr(value, kind)
        return scalar
    return None


def node(text: str | None) -> tuple[int | None, str | None]:
    """Broker id and kind of node: a broker, a bootstrap address, or a coordinator connection.

    Java's NetworkClient numbers bootstrap addresses -1, -2, ... and gives the connection to a
    group coordinator the id Integer.MAX_VALUE - broker id; a bootstrap address has no broker id.
    librdkafka gives -1 to bootstrap addresses and to coordinator connections alike.
    """
    number = whole_number(text.removeprefix("node-")) if text else None
    if text is None or number is None:
        return None, None
    if number < 0:
        return None, "bootstrap" if text.startswith("node-") else None
    if number >= _LEAST_COORDINATOR:
        return _INT_MAX - number, "coordinator"
    return number, "broker"


def whole_number(text: str | None) -> int | None:
    """A decimal number that fits an INT, as clients print ids; anything else is none."""
    if not text or len(text) > _INT_CHARS:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if -_INT_MAX <= number <= _INT_MAX else None
