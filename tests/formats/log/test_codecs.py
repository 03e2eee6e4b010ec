import gzip
import os
import time
import tracemalloc
import zlib

import cramjam
import lz4.block
import lz4.frame
import pytest
import xxhash
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from kaudit.formats.errors import LimitExceededError, Reason, WireError
from kaudit.formats.log.codecs import Codec, decompress
from kaudit.formats.log.compressed_frames import _descriptor_end
from tests.formats import encoders
from tests.formats.fuzz import damaged, outcome, quick

LIMIT = 1 << 20
TEXT = b"".join(b"%d,the quick brown fox;" % number for number in range(4000))


@given(st.binary(max_size=3000), st.integers(1, 60), st.sampled_from(list(encoders.COMPRESS)))
@quick
def test_round_trip(data, repeat, codec):
    assert decompress(codec, 2, encoders.COMPRESS[codec](data * repeat), len(data) * repeat) == data * repeat


@pytest.mark.parametrize("codec", encoders.COMPRESS)
def test_the_limit_is_exact(codec):
    packed = encoders.COMPRESS[codec](TEXT)
    assert decompress(codec, 2, memoryview(packed), len(TEXT)) == TEXT
    with pytest.raises(LimitExceededError) as caught:
        decompress(codec, 2, memoryview(packed), len(TEXT) - 1)
    assert caught.value.limit == len(TEXT) - 1


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_every_truncation_raises(codec):
    packed = encoders.COMPRESS[codec](TEXT[:500])
    for size in range(len(packed)):
        if codec == Codec.SNAPPY and size in (0, 16):
            continue  # a frame header and no block yet is a complete stream of nothing, to snappy-java too
        with pytest.raises(WireError):
            decompress(codec, 2, packed[:size], LIMIT)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_bytes_after_the_end_raise(codec):
    with pytest.raises(WireError):
        decompress(codec, 2, encoders.COMPRESS[codec](TEXT) + b"\x00\x01\x02", LIMIT)


@pytest.mark.parametrize("codec", encoders.COMPRESS)
def test_below_nothing_nothing_is_decompressed(codec):
    with pytest.raises(LimitExceededError, match="nothing may be decompressed any more"):
        decompress(codec, 2, encoders.COMPRESS[codec](b""), -1)


def test_what_is_no_frame_of_the_codec():
    with pytest.raises(WireError, match="gzip"):
        decompress(Codec.GZIP, 2, zlib.compress(TEXT), LIMIT)  # RFC 1950
    with pytest.raises(WireError, match="frame magic 05224d18") as caught:
        decompress(Codec.LZ4, 2, b"\x05" + lz4.frame.compress(TEXT)[1:], LIMIT)
    assert (caught.value.position, caught.value.reason) == (0, Reason.DECOMPRESSION)


def test_the_header_of_an_lz4_frame_has_a_size_and_a_dictionary_if_its_flags_say_so():
    """The LZ4 frame format: 4 bytes of magic, flags, block descriptor, then 8 and 4 bytes; the checksum is behind them."""
    for flags, extra in ((0x40, 0), (0x48, 8), (0x41, 4), (0x49, 12)):
        descriptor = bytes([flags, 0x40]) + bytes(range(extra))
        frame = b"\x04\x22\x4d\x18" + descriptor + bytes([xxhash.xxh32_intdigest(descriptor) >> 8 & 0xFF])
        assert _descriptor_end(frame) == len(frame) - 1
        with pytest.raises(WireError) as caught:
            _descriptor_end(frame[:-1])
        assert caught.value.reason is Reason.TRUNCATED


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_mean_nothing(codec):
    with pytest.raises(WireError) as caught:
        decompress(codec, 2, b"", LIMIT)
    assert caught.value.reason is Reason.CODEC


def test_raw_snappy_without_framing():
    assert decompress(Codec.SNAPPY, 1, bytes(cramjam.snappy.compress_raw(TEXT)), LIMIT) == TEXT


def test_concatenated_frames_are_one_payload():
    assert decompress(Codec.GZIP, 2, gzip.compress(b"ab") + gzip.compress(b"cd"), 4) == b"abcd"
    assert decompress(Codec.ZSTD, 2, encoders.zstd(b"ab") + encoders.zstd(b"cd"), 4) == b"abcd"
    assert decompress(Codec.SNAPPY, 2, encoders.xerial(b"ab") + encoders.xerial(b"cd"), 4) == b"abcd"
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert decompress(Codec.ZSTD, 2, skippable + encoders.zstd(b"ab") + skippable, 4) == b"ab"


@pytest.mark.parametrize("frame", [gzip.compress(b"", mtime=0), encoders.zstd(b"")])
def test_endless_empty_frames_are_a_limit(frame):
    codec = Codec.GZIP if frame[0] == 0x1F else Codec.ZSTD
    with pytest.raises(LimitExceededError):
        decompress(codec, 2, frame * 5000, LIMIT)


def test_many_members_before_much_data_cost_linear_time():
    """Each member used to copy all that follows: 1,000 of them before 32 MiB took half a minute."""
    payload = gzip.compress(b"") * 1000 + gzip.compress(os.urandom(32 << 20), 1)
    started = time.process_time()
    assert len(decompress(Codec.GZIP, 2, payload, 64 << 20)) == 32 << 20
    assert time.process_time() - started < 5


def test_lz4_header_checksum_of_old_magic():
    old = encoders.lz4_of_old_kafka(TEXT)
    wrong = old[:6] + bytes([old[6] ^ 1]) + old[7:]
    assert decompress(Codec.LZ4, 0, wrong, LIMIT) == TEXT
    assert decompress(Codec.LZ4, 0, old, LIMIT) == decompress(Codec.LZ4, 1, old, LIMIT) == TEXT
    with pytest.raises(WireError) as caught:
        decompress(Codec.LZ4, 2, old, LIMIT)
    assert caught.value.reason is Reason.DECOMPRESSION


def test_lz4_with_content_size_in_the_header():
    assert decompress(Codec.LZ4, 2, lz4.frame.compress(TEXT, store_size=True), LIMIT) == TEXT


def test_zstd_whose_declared_size_its_blocks_cannot_hold():
    frame = bytearray(encoders.zstd(TEXT))
    assert decompress(Codec.ZSTD, 2, frame, LIMIT) == TEXT
    frame[5:9] = b"\xff\xff\xff\x7f"
    with pytest.raises(WireError):
        decompress(Codec.ZSTD, 2, frame, 1 << 40)


def _lz4(data, **options):
    return lz4.frame.compress(data, **({"store_size": False} | options))


ONE_BLOCK = [
    _lz4(TEXT[:900]),
    _lz4(b""),
    _lz4(os.urandom(50)),
    _lz4(TEXT[:900], block_linked=False),
    _lz4(TEXT[:900], content_checksum=True, block_checksum=True),
    _lz4(TEXT[:900], block_size=lz4.frame.BLOCKSIZE_MAX4MB),
    _lz4(bytes(1 << 16)),
    zstandard.ZstdCompressor(write_content_size=False).compress(TEXT[:900]),
    zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(TEXT[:900]),
    zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 16)),
    zstandard.ZstdCompressor(write_content_size=False).compress(os.urandom(50)),
]


@given(damaged(ONE_BLOCK), st.sampled_from([Codec.LZ4, Codec.ZSTD]), st.integers(0, 2), st.booleans())
@quick
def test_the_short_way_of_one_block_answers_as_the_long_way(data, codec, magic, view):
    """A limit below one block keeps decompress from its short way."""
    data = memoryview(bytearray(data)) if view else data
    quickly, error = outcome(decompress, codec, magic, data, LIMIT << 3)
    carefully, careful_error = outcome(decompress, codec, magic, data, (1 << 16) - 1)
    if careful_error is None:
        assert (quickly, error) == (carefully, None)
    elif not isinstance(careful_error, LimitExceededError):
        assert error is not None


@pytest.mark.parametrize("frame", ONE_BLOCK, ids=range(len(ONE_BLOCK)))
def test_one_block_that_lacks_or_has_a_byte_too_much(frame):
    codec = Codec.LZ4 if frame[0] == 4 else Codec.ZSTD
    decompress(codec, 2, frame, LIMIT << 3)
    for broken in (frame[:-1], frame + b"\x00", frame + bytes(4)):
        with pytest.raises(WireError):
            decompress(codec, 2, broken, LIMIT << 3)


def test_an_lz4_block_larger_than_its_frame_allows():
    """Java's KafkaLZ4BlockInputStream refuses it, and so does the library, though 65,535 bytes come out of it."""
    block = b"\xf0" + b"\xff" * 256 + b"\xf0" + os.urandom(65_535)
    frame = b"\x04\x22\x4d\x18\x60\x40\x82" + len(block).to_bytes(4, "little") + block + bytes(4)
    assert len(lz4.block.decompress(block, 1 << 16)) == 65_535
    with pytest.raises(WireError):
        decompress(Codec.LZ4, 2, frame, LIMIT)


def _bomb(codec):
    zeros = bytes(1 << 26)
    return encoders.COMPRESS[codec](zeros) if codec != Codec.SNAPPY else b"\xff\xff\xff\xff\x0f" + b"\x00" * 5


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_bombs_cost_no_more_than_the_limit(codec):
    bomb = _bomb(codec)
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceededError):
            decompress(codec, 2, bomb, LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * LIMIT + len(bomb)


SAMPLES = [encode(TEXT[:700]) for encode in encoders.COMPRESS.values()] + [encoders.lz4_of_old_kafka(os.urandom(90))]


@given(damaged(SAMPLES), st.integers(0, 7), st.integers(0, 2))
@example(b"\x28\xb5\x2f\xfd", 4, 2)
@quick
def test_fuzz(data, codec, magic):
    result, error = outcome(decompress, codec, magic, data, 5000)
    assert len(result) <= 5000 if error is None else 0 <= error.position <= len(data)
