"""Manifests of Aiven's plugin: the chunk indexes that its documentation and its own tests give as examples, and damaged ones."""

import base64
import json

import pytest
import zstandard

from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.segment_manifest import Chunk, parse_chunk_sizes, parse_segment_manifest
from tests.remote_storage import chunk_sizes

THREE_CHUNKS = "KLUv/SAPeQAAAAAAAwAAAAoBAAoAAAAe"
"""10, 20 and 30, as the plugin's own tests give it (ChunkIndexSerializationTest)."""
FIXED = {
    "type": "fixed",
    "originalChunkSize": 100,
    "originalFileSize": 250,
    "transformedChunkSize": 110,
    "finalTransformedChunkSize": 30,
}
VARIABLE = {
    "type": "variable",
    "originalChunkSize": 100,
    "originalFileSize": 250,
    "transformedChunks": THREE_CHUNKS,
}
RANGE = {"position": 0, "size": 1}
INDEXES = {"offset": RANGE, "timestamp": RANGE, "producerSnapshot": RANGE, "leaderEpoch": RANGE, "transaction": None}


def manifest(index, **more):
    document = {"version": "1", "chunkIndex": index, "segmentIndexes": INDEXES, "compression": False, **more}
    return json.dumps(document).encode()


def chunks(index):
    found = parse_segment_manifest(manifest(index)).chunks
    return [found.at(position) for position in range(0, found.file_size, found.chunk_size)]


def test_chunks_of_one_size():
    assert chunks(FIXED) == [Chunk(0, 0, 100, 0, 110), Chunk(1, 100, 100, 110, 110), Chunk(2, 200, 50, 220, 30)]


def test_chunks_of_many_sizes():
    assert chunks(VARIABLE) == [Chunk(0, 0, 100, 0, 10), Chunk(1, 100, 100, 10, 20), Chunk(2, 200, 50, 30, 30)]


def test_a_byte_is_in_the_chunk_that_holds_it():
    found = parse_segment_manifest(manifest(VARIABLE)).chunks
    assert [found.at(position).number for position in (0, 99, 100, 199, 200, 249)] == [0, 0, 1, 1, 2, 2]
    assert (found.count, found.object_size) == (3, 60)


def test_an_object_that_is_the_segment_itself():
    plain = {**FIXED, "transformedChunkSize": 100, "finalTransformedChunkSize": 50}
    assert parse_segment_manifest(manifest(plain)).is_plain
    assert not parse_segment_manifest(manifest(FIXED)).is_plain
    assert not parse_segment_manifest(manifest(VARIABLE)).is_plain


def test_huge_numbers_cost_nothing():
    index = {**FIXED, "originalChunkSize": 1, "originalFileSize": 2**31 - 1}
    found = parse_segment_manifest(manifest(index)).chunks
    assert found.at(2**31 - 2).object_start == 110 * (2**31 - 2)


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [213],
        [2**31 - 1],
        [0, 1000, 2, 44002, 369],
        [2**31 - 1, 2**31 - 2, 2**31 - 3, 10],
        [1, 2**24 + 10, 2**31 - 1, 3],
    ],
)
def test_sizes_of_chunks(sizes):
    assert parse_chunk_sizes(chunk_sizes(sizes)).tolist() == sizes


def test_what_the_broker_said_of_the_segment():
    metadata = {
        "remoteLogSegmentId": {
            "topicIdPartition": {
                "topicId": "lZ6vvmajTWKDBUTV6SQAtQ",
                "topicPartition": {"topic": "topic1", "partition": 42},
            },
            "id": "adh9f8BMS4anaUnD8KWfWg",
        },
        "startOffset": 0,
        "endOffset": 1000,
        "maxTimestampMs": 1000000000,
        "brokerId": 2,
        "eventTimestampMs": 2000000000,
        "segmentLeaderEpochs": {"0": 100, "1": 200, "2": 300},
    }
    found = parse_segment_manifest(manifest(FIXED, remoteLogSegmentMetadata=metadata)).metadata
    assert found is not None
    assert (found.start_offset, found.end_offset) == (0, 1000)
    assert found.segment_leader_epochs == {0: 100, 1: 200, 2: 300}


def test_the_key_of_an_encrypted_segment():
    found = parse_segment_manifest(manifest(FIXED, encryption={"dataKey": "key1:AAAA", "aad": "CgsMDQ=="}))
    assert found.encryption is not None
    assert found.encryption.key_id == "key1"


def packed(data):
    return base64.b64encode(zstandard.ZstdCompressor().compress(data)).decode()


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "not a manifest in JSON"),
        (b"\xff\xfe", "not a manifest in JSON"),
        (b"[" * 100_000, "got `array`"),
        (manifest(FIXED)[:-1], "not a manifest in JSON"),
        (manifest(FIXED, version="2"), "version 2"),
        (manifest({**FIXED, "type": "other"}), "type"),
        (manifest({**FIXED, "originalChunkSize": 0}), "originalChunkSize"),
        (manifest({**FIXED, "originalFileSize": -1}), "originalFileSize"),
        (manifest({**FIXED, "originalFileSize": 2**31}), "originalFileSize"),
        (manifest({"type": "fixed", "originalChunkSize": 1, "originalFileSize": 1}), "without the sizes"),
        (manifest({"type": "variable", "originalChunkSize": 1, "originalFileSize": 1}), "without the sizes"),
        (manifest({**VARIABLE, "originalFileSize": 500}), "sizes of 3 chunks"),
        (manifest({**VARIABLE, "transformedChunks": "%"}), "not in base64"),
        (manifest({**VARIABLE, "transformedChunks": "AAAA"}), "zstd"),
        (manifest({**VARIABLE, "transformedChunks": packed(b"\0\0")}), "end after 2 bytes"),
        (manifest({**VARIABLE, "transformedChunks": packed(b"\0\0\0\1")}), "end after 4 bytes"),
        (manifest({**VARIABLE, "transformedChunks": packed(b"\xff" * 4)}), "not the sizes of -1 chunks"),
        (manifest({**VARIABLE, "transformedChunks": packed(b"\x7f\xff\xff\xff" + b"\0" * 5)}), "not 2147483647 sizes"),
        (manifest({**VARIABLE, "transformedChunks": packed(bytes(11 << 20))}), "more than the limit"),
    ],
)  # fmt: skip
def test_damaged_manifests_are_refused(data, detail):
    with pytest.raises(WireError, match=detail):
        parse_segment_manifest(data)


@pytest.mark.parametrize(
    ("chunk", "file", "transformed", "last", "plain"),
    [
        (100, 250, 100, 50, True),
        (100, 60, 7, 60, True),  # of one chunk only the last size counts
        (100, 100, 7, 100, True),
        (100, 60, 100, 59, False),
        (100, 101, 7, 94, False),  # as long as the segment, and not the segment
        (100, 150, 90, 60, False),
        (100, 150, 100, 51, False),
        (100, 0, 100, 50, True),
    ],
)
def test_when_an_object_is_the_segment_itself(chunk, file, transformed, last, plain):
    index = {"type": "fixed", "originalChunkSize": chunk, "originalFileSize": file, "transformedChunkSize": transformed, "finalTransformedChunkSize": last}  # fmt: skip
    assert parse_segment_manifest(manifest(index)).is_plain is plain
    assert not parse_segment_manifest(manifest(index, compression=True)).is_plain
