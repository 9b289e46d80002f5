"""Garbage by the thousand, the same for the same seed: lines that are none, payloads that are none.

What is made here is unreadable by how it is made, not by what our reader says of it.
"""

import base64
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import zstandard

from quotaflow.udfs.otlp.codecs import COMPRESSION_NAMES, compress

_CODECS = COMPRESSION_NAMES[1:]
_NUMBER = re.compile(rb'"correlationId":-?\d+')
_MIB = 1 << 20
_BOMB_MIB = 64
# A tag of wire type 7, which protobuf does not have: no bytes after it make it a message.
_NO_TAG = b"\x07"


def lines(rng: random.Random, good: Sequence[bytes], number: int) -> Iterator[bytes]:
    """So many lines that are no request lines, of every kind by turns."""
    kinds = (_noise, _cut, _glued, _trailed, _other_json, _deep, _long_number, _misshapen, _binary)
    for index in range(number):
        yield kinds[index % len(kinds)](rng, rng.choice(good))


def _noise(rng: random.Random, _: bytes) -> bytes:
    return b"\xff" + rng.randbytes(rng.randrange(1, 400))


def _cut(rng: random.Random, good: bytes) -> bytes:
    return good[: rng.randrange(1, len(good))]


def _glued(rng: random.Random, good: bytes) -> bytes:
    """A line torn in its middle by another one, as two writers without a lock leave it."""
    at = rng.randrange(1, len(good) - 1)
    return good[:at] + good


def _trailed(rng: random.Random, good: bytes) -> bytes:
    """A whole line with the beginning of another one behind it: two whole lines are two rows."""
    return good + good[: rng.randrange(8, len(good))]


def _other_json(rng: random.Random, _: bytes) -> bytes:
    return rng.choice([b"{}", b"[]", b"null", b"1e999", b'"text"', b'{"r":null}', b'{"ts":1}'])


def _deep(rng: random.Random, _: bytes) -> bytes:
    bracket = rng.choice([b"[", b'{"r":'])
    return b'{"ts":1,"broker":1,"r":' + bracket * rng.randrange(2_000, 20_000)


def _long_number(rng: random.Random, _: bytes) -> bytes:
    return b'{"ts":' + b"9" * rng.randrange(2_000, 50_000) + b',"broker":1,"r":{}}'


def _misshapen(rng: random.Random, good: bytes) -> bytes:
    """A line whose header is something else."""
    line = json.loads(good)
    inner = line.get("r", line)
    inner["requestHeader"] = rng.choice([None, 5, [], "FETCH", {"requestApiKey": {}}])
    return json.dumps(line).encode()


def _binary(rng: random.Random, good: bytes) -> bytes:
    """A line with a NUL where its JSON has a quote."""
    at = rng.choice([i for i, byte in enumerate(good[:200]) if byte == ord('"')])
    return good[:at] + b"\0" + good[at + 1 :]


def pushes(rng: random.Random, good: Sequence[bytes], number: int) -> Iterator[bytes]:
    """So many pushes of well-formed lines whose payloads are unreadable, of every kind by turns."""
    bombs = [(zstd_bomb(), 4), (compress(bytes(_BOMB_MIB * _MIB), "gzip"), 1), _snappy_claim()]
    bombs.append((compress(bytes(_BOMB_MIB * _MIB), "lz4"), 3))
    kinds: tuple[Callable[[random.Random, bytes], tuple[bytes | str, int]], ...] = (
        lambda rng, _: (_NO_TAG + rng.randbytes(rng.randrange(400)), 0),
        _cut_payload,
        _wrong_codec,
        lambda rng, payload: (payload, rng.choice([-1, 5, 99, 127])),
        lambda rng, _: (_NO_TAG + rng.randbytes(rng.randrange(400)), rng.randrange(1, 5)),
        lambda rng, _: ("!" * rng.randrange(1, 50), rng.randrange(5)),
        lambda rng, _: (
            compress(_NO_TAG + rng.randbytes(90), name := rng.choice(_CODECS)),
            id_of(name),
        ),
    )
    for index in range(number):
        line = json.loads(numbered(rng.choice(good), index))
        is_bomb = index % 20 == 0
        made = kinds[index % len(kinds)]
        payload, codec = rng.choice(bombs) if is_bomb else made(rng, opened(line))
        yield pushing(line, payload, codec)


def numbered(line: bytes, number: int) -> bytes:
    """The line of another request, which nobody recorded: ids of recorded ones are smaller."""
    return _NUMBER.sub(b'"correlationId":%d' % (10**9 + number), line, count=1)


def id_of(codec: str) -> int:
    """Kafka's id of a codec."""
    return COMPRESSION_NAMES.index(codec)


def opened(line: Any) -> bytes:
    """The payload of a recorded push, decompressed."""
    request = line["request"]
    packed = base64.b64decode(request["metrics"])
    if COMPRESSION_NAMES[request["compressionType"]] == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    return packed


def pushing(line: Any, payload: bytes | str, codec: int) -> bytes:
    """The line with another payload: bytes, or text in the place of base64."""
    text = payload if isinstance(payload, str) else base64.b64encode(payload).decode()
    request = line["request"] | {"metrics": text, "compressionType": codec}
    return json.dumps(line | {"request": request}, separators=(",", ":")).encode()


def _cut_payload(rng: random.Random, payload: bytes) -> tuple[bytes, int]:
    name = rng.choice(_CODECS)
    packed = compress(payload, name)
    return packed[: rng.randrange(1, len(packed))], id_of(name)


def _wrong_codec(rng: random.Random, payload: bytes) -> tuple[bytes, int]:
    name, claimed = rng.sample(_CODECS, 2)
    return compress(payload, name), id_of(claimed)


def zstd_bomb() -> bytes:
    """Zeros, of which zstd makes one part in thirty thousand."""
    packed = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(packed, closefd=False) as writer:
        for _ in range(_BOMB_MIB):
            writer.write(bytes(_MIB))
    return packed.getvalue()


def _snappy_claim() -> tuple[bytes, int]:
    """A block of snappy that says it holds 4 GiB."""
    block = bytes(pa.Codec("snappy").compress(b"a" * 1_000, asbytes=True))
    return b"\xff\xff\xff\xff\x0f" + block[2:], id_of("snappy")
