"""Names the format of a value that is neither JSON nor a layout, and what helps.

A format is here if it has a fingerprint that no line of a request log has, nor any part of one.
"""

import re
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

_END_CHARS = 100
_JSON = "write JSON, or the line alone as the record's value"


class UnreadFormat(NamedTuple):
    """A format that is not read, and what to do instead."""

    name: str
    cure: str


_PACKED = "send values as they are, and let the producer compress (compression.type)"
COMPRESSED: tuple[tuple[UnreadFormat, re.Pattern[bytes]], ...] = tuple(
    (UnreadFormat(name, _PACKED), re.compile(magic))
    for name, magic in (
        ("gzip", rb"\x1f\x8b"),
        ("zstd", rb"\x28\xb5\x2f\xfd"),
        ("lz4", rb"\x04\x22\x4d\x18"),
        ("snappy", rb"\x82SNAPPY\0|\xff\x06\0\0sNaPpY"),
        ("zlib", rb"\x78[\x01\x9c\xda](?![\x80-\xbf])"),
    )
)
"""Values that hide a line."""

BINARY: tuple[tuple[UnreadFormat, re.Pattern[bytes]], ...] = tuple(
    (UnreadFormat(name, cure), re.compile(magic, re.DOTALL))
    for name, cure, magic in (
        (
            "msgpack",
            "write JSON, such as @type json in fluentd's <format>, Format json in Fluent Bit",
            # A map whose first key is a text, or fluentd's list of a tag or a time, and a record.
            rb"(?:[\x81-\x8f]|\xde[\0-\x7f].|\xdf\0...)[\xa1-\xbf\xd9\xda]"
            rb"|[\x92-\x94](?:[\xa1-\xbf\xd9\xce\xcf\xcb]|\xd7\0|\xc7\x08\0)",
        ),
        ("CBOR", _JSON, rb"(?:[\xa1-\xb7]|\xbf)[\x61-\x78]"),
        ("Smile", _JSON, rb":\)\n"),
        ("Avro file", "write strings, without a schema", rb"Obj\x01"),
        ("Java serialization", "use StringSerializer", rb"\xac\xed\0\x05"),
        ("GELF in chunks", "send GELF by TCP or HTTP, or in one chunk", rb"\x1e\x0f"),
    )
)
"""Values that are no text."""

CUT: tuple[tuple[UnreadFormat, re.Pattern[str]], ...] = tuple(
    (UnreadFormat(name, cure), re.compile(rf"{end}(?: \([\w.]+\))?\s*\Z"))
    for name, cure, end in (
        (
            "cut by JsonTemplateLayout",
            "raise its maxStringLength (16,384), or log bare lines",
            "…",
        ),
        (
            "cut by the Datadog Agent",
            "raise its logs_config.max_message_size_bytes",
            r"\.\.\.TRUNCATED\.\.\.",
        ),
        ("cut by PatternLayout", "take %maxLen out of its pattern", r"\.\.\."),
    )
)
"""Ends of a text that its writer has cut, and marks as such."""

TEXTS: tuple[tuple[UnreadFormat, re.Pattern[str]], ...] = tuple(
    (UnreadFormat(name, cure), re.compile(fingerprint, re.DOTALL))
    for name, cure, fingerprint in (
        ("XML", "use a JSON layout, or a pattern with %m", r"<(?:[?!]|[A-Za-z_][\w.:-]*[\s/>])"),
        (
            "YAML",
            "use a JSON layout, or a pattern with %m",
            r"---\s|\"?[A-Za-z_@][\w.@-]*\"?:(?:[ \t][^\n]*)?\r?\n"
            r"[ \t]*\"?[A-Za-z_@][\w.@-]*\"?:\s",
        ),
        ("Connect's Struct", "use JsonConverter, or a field alone", r"Struct\{\w+="),
        ("Ruby's hash", "write JSON: @type json in fluentd's <format>", r'\{"[^"]*"\s?=>'),
        ("CEF", _JSON, r"CEF:\d\|"),
        ("LEEF", _JSON, r"LEEF:\d"),
        ("LTSV", _JSON, r"[A-Za-z_@][\w.@-]*:[^\t\n\"]*\t[A-Za-z_@][\w.@-]*:"),
        (
            "CSV",
            _JSON,
            # Quotes of the line are doubled, or have a backslash within quotes of the field.
            r'(?=.*""\w+"":)|(?:(?:[^,;\t"{}\n]*|"[^"{}\n]*")[,;\t])+"[^"]*\{\\"',
        ),
        (
            "InfluxDB line protocol",
            _JSON,
            r'[^\s,={}"\[\]:]+(?:,[^\s,={}"]+=(?:\\.|[^\s,="\\])+)*\s[^\s,={}"]+='
            r'(?:"|-?\d[\d.]*[iu]?(?:,|\s|\Z))',
        ),
        (
            "logfmt",
            "write JSON (encoding.codec in Vector), or the line alone as the record's value",
            r'(?:[A-Za-z_@][\w.@/-]*=(?:"(?:[^"\\]|\\.)*"|[^\s"={}]*)\s+)+[A-Za-z_@][\w.@/-]*=',
        ),
    )
)
"""Beginnings of texts, also in a field of a shipper's record; the first that fits."""


def compressed(value: bytes) -> str | None:
    """What helps for a value that is compressed; None for any other."""
    return _named(COMPRESSED, value)


def binary(value: bytes) -> str | None:
    """What helps for a value of a format that is no text; None for any other."""
    return _named(BINARY, value)


def of_text(text: str) -> str | None:
    """What helps for a text that has no readable line; None if its format has no fingerprint."""
    end = text[-_END_CHARS:]
    formats = chain(
        (each for each, mark in CUT if mark.search(end)),
        (each for each, fingerprint in TEXTS if fingerprint.match(text)),
    )
    return next((f"{each.name}: {each.cure}" for each in formats), None)


def _named(formats: Iterable[tuple[UnreadFormat, re.Pattern[bytes]]], value: bytes) -> str | None:
    named = (each for each, magic in formats if magic.match(value))
    return next((f"{each.name}: {each.cure}" for each in named), None)
