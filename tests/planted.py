"""Looks for planted texts in everything files hold: as bytes, unpacked, and as values of tables."""

import base64
import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from quotaflow.udfs.otlp.codecs import COMPRESSION_NAMES, Limits, UnreadableError, decompress

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")


def files_with(folder: Path, texts: Collection[str]) -> list[str]:
    """Which of these texts stand in files below a folder, and in which; their names count too."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files, f"{folder} is empty: a search of nothing finds nothing"
    return [
        f"{text} in {file.relative_to(folder)}"
        for file in files
        for content in [b"\n".join(_contents(file))]
        for text in texts
        if text in str(file) or text.encode() in content
    ]


def _contents(file: Path) -> Iterator[bytes]:
    data = file.read_bytes()
    yield data
    if file.suffix == ".parquet":
        table = pq.ParquetFile(file).read()
        for column in table.columns:
            for value in column.to_pylist():
                yield from _value(value)
    elif file.suffix == ".gz":
        yield gzip.decompress(data)


def _value(value: Any) -> Iterator[bytes]:
    """A cell as bytes: what is packed in it unpacked, what is nested in it too."""
    if isinstance(value, bytes):
        yield value
        yield from _unpacked(value)
    elif isinstance(value, str):
        encoded = value.encode("utf-8", "surrogatepass")
        yield encoded
        for text in _BASE64.findall(encoded):
            yield from _decoded(text)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _value(name)
            yield from _value(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _value(each)


def _unpacked(data: bytes) -> Iterator[bytes]:
    for codec in COMPRESSION_NAMES[1:]:
        try:
            yield decompress(data, codec, Limits())
        except UnreadableError:
            continue


def _decoded(text: bytes) -> Iterator[bytes]:
    padded = text.rstrip(b"=") + b"=" * (-len(text.rstrip(b"=")) % 4)
    try:
        data = base64.b64decode(padded, altchars=b"-_")
    except ValueError:
        return
    yield data
    try:
        yield zlib.decompress(data, wbits=47)
    except zlib.error:
        return
