"""A segment in the three objects of Aiven's plugin: its bytes at any position, the files beside it, and objects that are not whole."""

import json
import os

import pytest
import zstandard

from kaudit.source import segment_object
from kaudit.source.bytes import read_bytes
from kaudit.source.filesystem import FileStatus
from kaudit.source.local import LocalFileSystem
from kaudit.source.segment_object import (
    ChunkedSegment,
    SegmentObject,
    index_files,
    manifest_of,
    object_name,
    read_manifest,
)
from kaudit.source.uri import Uri
from tests.memory import Memory
from tests.remote_storage import chunk_sizes

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
STEM = f"{17:020d}-{ID}"
CONTENT = bytes(range(250))
CHUNKS = [CONTENT[:100], CONTENT[100:200], CONTENT[200:]]
INDEXES = {"offset": b"oooo", "timestamp": b"tt", "producerSnapshot": b"sss", "leaderEpoch": b"e", "transaction": b""}


def written(directory, *, compressed=True, metadata=True, indexes=INDEXES, damaged=None, cut=0):
    """The three objects; returns the places of the log and of the indexes."""
    packed = [
        zstandard.ZstdCompressor(write_content_size=True).compress(chunk) if compressed else chunk for chunk in CHUNKS
    ]
    if damaged is not None:
        packed[damaged] = b"\xff" * len(packed[damaged])
    ranges, held = {}, b""
    for name, content in indexes.items():
        ranges[name] = {"position": len(held), "size": len(content)}
        held += content
    document = {
        "version": "1",
        "chunkIndex": {
            "type": "variable",
            "originalChunkSize": 100,
            "originalFileSize": 250,
            "transformedChunks": chunk_sizes([len(each) for each in packed]),
        },
        "segmentIndexes": {"transaction": None, **ranges},
        "compression": compressed,
    }
    if metadata:
        document["remoteLogSegmentMetadata"] = {
            "remoteLogSegmentId": {"topicIdPartition": {"topicId": ID, "topicPartition": {"topic": "t", "partition": 0}}, "id": ID},
            "startOffset": 17, "endOffset": 29, "maxTimestampMs": 0, "brokerId": 0, "eventTimestampMs": 0, "segmentLeaderEpochs": {"0": 17},
        }  # fmt: skip
    log = b"".join(packed)
    contents = {"log": log[: len(log) - cut], "indexes": held, "rsm-manifest": json.dumps(document).encode()}
    for suffix, content in contents.items():
        (directory / f"{STEM}.{suffix}").write_bytes(content)
        os.utime(directory / f"{STEM}.{suffix}", (1_700_000_000, 1_700_000_000))
    return [Uri.parse(str(directory / f"{STEM}.{suffix}")) for suffix in ("log", "indexes")]


def opened(place):
    files = LocalFileSystem()
    return SegmentObject(files, place, files.status(place))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{STEM}.log", (17, ID, "log")),
        (f"{STEM}.indexes", (17, ID, "indexes")),
        (f"{STEM}.rsm-manifest", (17, ID, "rsm-manifest")),
        (f"{STEM}.index", None),
        (f"{STEM}.log.tmp", None),
        (f"{STEM[1:]}.log", None),
        (f"{STEM}x.log", None),
        (f"{17:020d}.log", None),
    ],
)
def test_names_of_objects(name, expected):
    assert object_name(name) == expected


def test_the_manifest_lies_beside_an_object():
    assert str(manifest_of(Uri.parse(f"s3://b/t/0/{STEM}.log"))) == f"s3://b/t/0/{STEM}.rsm-manifest"


@pytest.mark.parametrize("compressed", [True, False])
def test_the_log_is_a_file_that_is_read_at_any_position(tmp_path, compressed):
    log, _ = written(tmp_path, compressed=compressed)
    held = opened(log)
    assert held.status(log.content) == FileStatus(f"{STEM}.log!", False, 250, 1_700_000_000_000)
    with pytest.raises(FileNotFoundError, match="no such directory in the object"):
        held.entries(log.content)
    source = held.open(log.content)
    assert source.size() == 250
    for at in (0, 1, 99, 100, 101, 199, 200, 249, 250, 300):
        for length in (0, 1, 99, 100, 101, 150, 250, 300):
            assert read_bytes(source, at, length) == CONTENT[at : at + length]
    source.close()


def test_the_indexes_are_files_of_a_directory(tmp_path):
    _, indexes = written(tmp_path)
    held, inside = opened(indexes), indexes.content
    names = {
        f"{17:020d}.index": b"oooo",
        f"{17:020d}.timeindex": b"tt",
        f"{17:020d}.txnindex": b"",
        f"{30:020d}.snapshot": b"sss",
        "leader-epoch-checkpoint": b"e",
    }
    assert held.status(inside) == FileStatus(f"{STEM}.indexes!", True, 0, 1_700_000_000_000)
    assert held.entries(inside) == [
        FileStatus(name, False, len(names[name]), 1_700_000_000_000) for name in sorted(names)
    ]
    for name, content in names.items():
        source = held.open(inside / name)
        assert (source.size(), read_bytes(source, 0, 99)) == (len(content), content)
        source.close()
    for call in (held.open, held.status):
        with pytest.raises(FileNotFoundError, match="no such index in the object"):
            call(inside / "x.index")
    with pytest.raises(FileNotFoundError, match="no such directory"):
        held.entries(inside / "x")


@pytest.mark.parametrize(
    ("metadata", "indexes", "names"),
    [
        (False, INDEXES, ["index", "timeindex", "txnindex", "leader-epoch-checkpoint"]),
        (True, {**INDEXES, "leaderEpoch": b""}, ["index", "timeindex", "txnindex", "snapshot"]),
        (True, {**INDEXES, "producerSnapshot": b""}, ["index", "timeindex", "txnindex", "leader-epoch-checkpoint"]),
        (True, {name: INDEXES[name] for name in ("offset", "timestamp", "producerSnapshot", "leaderEpoch")}, ["index", "timeindex", "leader-epoch-checkpoint", "snapshot"]),
    ],
)  # fmt: skip
def test_which_files_there_are(tmp_path, metadata, indexes, names):
    log, _ = written(tmp_path, metadata=metadata, indexes=indexes)
    found = index_files(17, read_manifest(LocalFileSystem(), manifest_of(log)))
    assert [name.rpartition(".")[2] for name in found] == names
    assert next(iter(found.values())) == (0, 4)


def test_bytes_of_the_object_are_announced(tmp_path):
    log, _ = written(tmp_path, compressed=False)
    announced: list[tuple[int, int]] = []
    source = Memory(CONTENT)
    source.announce = lambda *places: announced.append(places)  # type: ignore[attr-defined]
    segment = ChunkedSegment(source, read_manifest(LocalFileSystem(), manifest_of(log)))
    for start, stop in ((0, 1), (99, 100), (99, 101), (100, 250), (150, 999), (250, 260), (10, 10)):
        segment.announce(start, stop)
    assert announced == [(0, 100), (0, 100), (0, 200), (100, 250), (100, 250)]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_chunk_that_cannot_be_decoded_is_no_batch(tmp_path, number):
    log, _ = written(tmp_path, damaged=number)
    held = opened(log)
    expected = b"".join(b"\xff" * len(chunk) if at == number else chunk for at, chunk in enumerate(CHUNKS))
    assert read_bytes(held.open(log.content), 0, 250) == expected
    for at in range(3):
        chunk, problem = held.chunk_at(100 * at)
        assert (chunk.number, chunk.start, bool(problem)) == (at, 100 * at, at == number)


@pytest.mark.parametrize("cut", [1, 40, 60, 200])
def test_an_object_that_ends_early(tmp_path, cut):
    log, _ = written(tmp_path, compressed=False, cut=cut)
    held = opened(log)
    whole = (250 - cut) // 100 * 100
    assert read_bytes(held.open(log.content), 0, 250) == CONTENT[:whole] + b"\xff" * (250 - whole)
    chunk, problem = held.chunk_at(249)
    missing = min(cut, chunk.size)
    assert problem == f"the object ends {missing} bytes before the chunk does"
    assert [held.chunk_at(at)[1] for at in range(0, whole, 100)] == [""] * (whole // 100)


def test_manifests_that_cannot_be_read(tmp_path, monkeypatch):
    log, _ = written(tmp_path)
    manifest = tmp_path / f"{STEM}.rsm-manifest"
    content = manifest.read_bytes()
    monkeypatch.setattr(segment_object, "MANIFEST_BYTES", len(content))
    opened(log)
    monkeypatch.setattr(segment_object, "MANIFEST_BYTES", len(content) - 1)
    with pytest.raises(OSError, match=f"its manifest {STEM}.rsm-manifest has more than 0 MiB"):
        opened(log)
    manifest.write_bytes(content[:-1])
    with pytest.raises(OSError, match=f"its manifest {STEM}.rsm-manifest is damaged: "):
        opened(log)
    manifest.unlink()
    with pytest.raises(OSError, match="is missing: the upload did not finish, or somebody deleted it"):
        opened(log)
    manifest.mkdir()
    with pytest.raises(OSError, match=f"its manifest {STEM}.rsm-manifest: "):
        opened(log)


@pytest.mark.parametrize(("compressed", "most", "good"), [(True, 100, True), (True, 99, False), (False, 100, True)])
def test_chunks_that_are_larger_than_is_held(tmp_path, monkeypatch, compressed, most, good):
    log, _ = written(tmp_path, compressed=compressed)
    monkeypatch.setattr(segment_object, "UNPACKED_BYTES", most)
    if good:
        opened(log)
    else:
        with pytest.raises(OSError, match="chunks of 100 bytes: kaudit holds 0 MiB"):
            opened(log)
