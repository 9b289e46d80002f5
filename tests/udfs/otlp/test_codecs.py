"""Codecs: every codec of every client, bounded, and truncation always an error."""

import contextlib
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.otlp.codecs import COMPRESSION_NAMES, Limits, UnreadableError, decompress

from ...cases import cases

LIMITS = Limits()
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
TEXT = b"a client says the same thing again and again " * 200
CODECS = ("gzip", "snappy", "lz4", "zstd")


def compress(data: bytes, codec: str) -> bytes:
    """As librdkafka does: one frame, one raw block of snappy."""
    if codec == "none":
        return data
    if codec == "snappy":
        return pa.Codec("snappy").compress(data, asbytes=True)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def xerial(*blocks: bytes) -> bytes:
    """As snappy-java does, and with it Kafka's Java client."""
    packed = [compress(block, "snappy") for block in blocks]
    return XERIAL + b"".join(struct.pack(">i", len(block)) + block for block in packed)


def reason(payload: bytes, codec: str, limits: Limits = LIMITS) -> str:
    with pytest.raises(UnreadableError) as caught:
        decompress(payload, codec, limits)
    assert len(caught.value.detail) <= 200
    return caught.value.reason


def test_ids_are_those_of_kafka():
    assert dict(enumerate(COMPRESSION_NAMES)) == {
        0: "none",
        1: "gzip",
        2: "snappy",
        3: "lz4",
        4: "zstd",
    }


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_of_kafkas_own_codecs(golden, codec):
    packed = (golden / f"otlp/java-cons-bob.codec.{codec}").read_bytes()
    plain = (golden / "otlp/java-cons-bob.data.bin").read_bytes()
    assert decompress(packed, codec, LIMITS) == plain


@given(st.binary(max_size=3_000), st.sampled_from(COMPRESSION_NAMES))
def test_what_was_compressed_comes_back(data, codec):
    assert decompress(compress(data, codec), codec, LIMITS) == data


@given(st.lists(st.binary(min_size=1, max_size=500), max_size=5))
def test_xerial_blocks_come_back_in_order(blocks):
    assert decompress(xerial(*blocks), "snappy", LIMITS) == b"".join(blocks)


@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation_is_an_error(codec):
    packed = compress(TEXT, codec)
    assert {reason(packed[:size], codec) for size in range(1, len(packed))} == {"corrupt_payload"}


def test_concatenated_xerial_streams_are_one_payload():
    """As SnappyInputStream reads them, Kafka's own reader."""
    streams = xerial(TEXT, b"second") + xerial() + xerial(b"third")
    assert decompress(streams, "snappy", LIMITS) == TEXT + b"secondthird"


def test_every_truncation_of_xerial_is_an_error_but_between_blocks():
    first, whole = xerial(TEXT), xerial(TEXT, b"second")
    for size in range(1, len(whole)):
        if size in (len(XERIAL), len(first)):
            decompress(whole[:size], "snappy", LIMITS)
        else:
            assert reason(whole[:size], "snappy") == "corrupt_payload"


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_concatenated_frames_are_one_payload(codec):
    assert decompress(compress(TEXT, codec) * 2, codec, LIMITS) == TEXT * 2


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("tail", [b"\x00", b"garbage after the end"])
def test_trailing_garbage_is_an_error(codec, tail):
    assert reason(compress(TEXT, codec) + tail, codec) == "corrupt_payload"


@pytest.mark.parametrize("codec", COMPRESSION_NAMES)
def test_no_bytes_are_an_empty_payload(codec):
    assert decompress(b"", codec, LIMITS) == b""


@pytest.mark.parametrize("codec", ["id 9", "", "ZSTD", "lzma"])
def test_only_kafkas_codecs_are_known(codec):
    assert reason(b"x", codec) == "unknown_codec"


@cases(
    ("codec", "payload"),
    ("no gzip at all", "gzip", b"plain bytes"),
    ("another codec than the client named", "zstd", compress(TEXT, "lz4")),
    ("a raw block without a length", "snappy", b"\xff\xff\xff\xff\xff\xff"),
    ("a block of negative length", "snappy", XERIAL + struct.pack(">i", -1)),
    ("a block of no bytes", "snappy", XERIAL + struct.pack(">i", 0)),
    ("a block after the end", "snappy", XERIAL + struct.pack(">i", 2**31 - 1)),
    ("half a header", "snappy", XERIAL[:12]),
)
def test_corrupt_payloads(codec, payload):
    assert reason(payload, codec) == "corrupt_payload"


@pytest.mark.parametrize("codec", COMPRESSION_NAMES)
def test_the_bound_itself_is_allowed_and_one_byte_more_is_not(codec):
    packed = compress(TEXT, codec)
    assert decompress(packed, codec, Limits(decoded_bytes=len(TEXT))) == TEXT
    assert reason(packed, codec, Limits(decoded_bytes=len(TEXT) - 1)) == "payload_too_large"


def test_xerial_blocks_share_one_bound():
    limits = Limits(decoded_bytes=len(TEXT) + 10)
    assert reason(xerial(TEXT, TEXT), "snappy", limits) == "payload_too_large"


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f"])
@pytest.mark.parametrize("header", [b"", XERIAL + struct.pack(">i", 6)])
def test_a_length_a_block_claims_is_not_allocated(header, size):
    before = pa.total_allocated_bytes()
    assert reason(header + size + b"\x00", "snappy") == "payload_too_large"
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_bomb_of_zeros_stops_at_the_bound(codec):
    assert reason(compress(bytes(64 << 20), codec), codec) in (
        "payload_too_large",
        "ratio_too_high",
    )


def test_the_ratio_counts_only_above_its_floor():
    packed = compress(bytes(1 << 20), "zstd")
    assert len(packed) * LIMITS.ratio < 1 << 20
    assert decompress(packed, "zstd", LIMITS) == bytes(1 << 20)
    assert reason(packed, "zstd", Limits(ratio_floor_bytes=1 << 16)) == "ratio_too_high"


@given(st.binary(max_size=300), st.sampled_from(CODECS), st.booleans())
def test_random_bytes_are_read_or_refused(data, codec, has_header):
    with contextlib.suppress(UnreadableError):
        decoded = decompress(
            XERIAL + data if has_header else data, codec, Limits(decoded_bytes=999)
        )
        assert len(decoded) < 1_000


def test_a_limit_below_one_is_refused_by_name():
    with pytest.raises(ValueError, match="limit points must be at least 1, got 0"):
        Limits(points=0)
