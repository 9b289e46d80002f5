"""Kafka's compression codecs with bounds: a client's bytes are hostile until they are read.

The codecs are pyarrow's, the only available ones that both stop at a bound and detect a truncated
stream. The codec is the one that the client named (KIP-714 CompressionType), never guessed.
"""

import struct
from dataclasses import dataclass

import pyarrow as pa

from quotaflow.udfs.otlp.varints import varint

COMPRESSION_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
"""Kafka's compression ids 0 to 4 by name (org.apache.kafka.common.record.CompressionType)."""

_STREAMS = {"gzip": "gzip", "lz4": "lz4", "zstd": "zstd"}
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_LENGTH_BYTES = 4
_SIZE_BYTES = 5
_CHUNK_BYTES = 1 << 20
_DETAIL_CHARS = 200

PER_POINT = 32
"""Messages per data point, two for each attribute; and buckets that count as one point."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large one payload can become; over a bound it is unreadable, or is cut.

    The ratio counts only above `ratio_floor_bytes`: a small, repetitive payload (an idle consumer
    of a thousand partitions reaches 100) is no bomb at any ratio. Real telemetry stays
    below 30; zeros reach 30,000 with zstd and 1,030 with gzip.

    `points` bounds what one payload becomes: data points with their exemplars and quantiles, and
    one for every PER_POINT of their bounds and buckets. It also bounds the number of resources,
    scopes, or metrics, and PER_POINT times it the messages of any kind, attributes included.
    """

    decoded_bytes: int = 16 << 20
    ratio: int = 1_000
    ratio_floor_bytes: int = 4 << 20
    points: int = 100_000
    flat_bytes: int = 256 << 20
    attributes: int = 128
    string_chars: int = 4_096
    nesting: int = 16

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"limit {name} must be at least 1, got {value}")

    @property
    def messages(self) -> int:
        """The most protobuf messages in one payload, at any depth."""
        return PER_POINT * self.points


class UnreadableError(ValueError):
    """A payload that could not be read: `reason` is a code, `detail` is bounded text."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail[:_DETAIL_CHARS]}")
        self.reason = reason
        self.detail = detail[:_DETAIL_CHARS]


def decompress(payload: bytes, compression: str, limits: Limits) -> bytes:
    """The whole payload decompressed, and never more than the limits allow.

    Reasons: unknown_codec, corrupt_payload (truncated streams and trailing garbage too),
    payload_too_large, ratio_too_high. Concatenated frames of one codec are one payload;
    zero bytes are an empty payload with any codec (librdkafka sends them).
    """
    if compression not in COMPRESSION_NAMES:
        candidates = " ".join(COMPRESSION_NAMES)
        raise UnreadableError("unknown_codec", f"{compression!r} is none of {candidates}")
    if not payload or compression == "none":
        decoded = payload
    elif compression == "snappy":
        decoded = _snappy(payload, limits.decoded_bytes)
    else:
        decoded = _stream(payload, _STREAMS[compression], _bound(len(payload), limits))
    _check_size(len(payload), len(decoded), limits)
    return decoded


def compress(payload: bytes, compression: str) -> bytes:
    """A payload that `decompress` reads, with one of its codecs; snappy as one block."""
    if compression == "none":
        return payload
    if compression == "snappy":
        return bytes(pa.compress(payload, "snappy", asbytes=True))
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, _STREAMS[compression]) as stream:
        stream.write(payload)
    return bytes(packed.getvalue().to_pybytes())


def _bound(size: int, limits: Limits) -> int:
    return min(limits.decoded_bytes, max(limits.ratio_floor_bytes, size * limits.ratio))


def _check_size(size: int, decoded: int, limits: Limits) -> None:
    if decoded > limits.decoded_bytes:
        raise _too_large(decoded, limits.decoded_bytes)
    if decoded > _bound(size, limits):
        raise UnreadableError(
            "ratio_too_high", f"{size} bytes became over {limits.ratio} times as many"
        )


def _too_large(size: int, bound: int) -> UnreadableError:
    return UnreadableError("payload_too_large", f"at least {size} bytes decoded, at most {bound}")


def _stream(payload: bytes, codec: str, bound: int) -> bytes:
    chunks, total = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(payload), codec) as stream:
            while total <= bound and (chunk := stream.read(min(_CHUNK_BYTES, bound + 1 - total))):
                chunks.append(chunk)
                total += len(chunk)
    except (OSError, pa.ArrowException) as error:
        raise UnreadableError("corrupt_payload", f"{codec}: {error}") from error
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _snappy(payload: bytes, bound: int) -> bytes:
    if not payload.startswith(_XERIAL_MAGIC):
        return _snappy_block(payload, bound)
    blocks, at, left = list[bytes](), 0, bound
    while at < len(payload):
        if payload.startswith(_XERIAL_MAGIC, at):  # streams may be concatenated
            at += _XERIAL_HEADER_BYTES
            if at > len(payload):
                raise UnreadableError("corrupt_payload", "snappy: the xerial header is cut short")
            continue
        at, end = at + _LENGTH_BYTES, at + _LENGTH_BYTES + _xerial_length(payload, at)
        if end > len(payload):
            raise UnreadableError(
                "corrupt_payload", f"snappy: a block ends at {end}, after the end"
            )
        blocks.append(_snappy_block(payload[at:end], left))
        left -= len(blocks[-1])
        at = end
    return b"".join(blocks)


def _xerial_length(payload: bytes, at: int) -> int:
    if at + _LENGTH_BYTES > len(payload):
        raise UnreadableError("corrupt_payload", "snappy: a block's length is cut short")
    (size,) = struct.unpack_from(">i", payload, at)
    if size <= 0:
        raise UnreadableError("corrupt_payload", f"snappy: a block of {size} bytes")
    return int(size)


def _snappy_block(block: bytes, bound: int) -> bytes:
    size = _block_size(block)
    if size > bound:
        raise _too_large(size, bound)
    try:
        return bytes(pa.Codec("snappy").decompress(block, size, asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise UnreadableError("corrupt_payload", f"snappy: {error}") from error


def _block_size(block: bytes) -> int:
    try:
        return varint(block, 0, _SIZE_BYTES)[0]
    except (ValueError, IndexError):
        raise UnreadableError("corrupt_payload", "snappy: the block has no length") from None
