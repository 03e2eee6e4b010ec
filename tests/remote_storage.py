"""Segments of a log directory copied to remote storage: the layouts of LocalTieredStorage and of Aiven's plugin, by their public documentation.

An encoder that shares nothing with kaudit: README.md of github.com/Aiven-Open/tiered-storage-for-apache-kafka says what a chunk, a chunk
index and a manifest are; the names are those of ObjectKeyFactory, RemoteTopicPartitionDirectory and RemoteLogSegmentFileset.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import struct
import uuid
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import zstandard
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.logs import Log, data

SAMPLES = Path(__file__).parents[1] / "samples"
TOPIC_ID = "MWJ6FHTfRYy67jzwZdeqSQ"


def id_of(text: str) -> str:
    """An id in Kafka's base64, always the same for a text."""
    return base64.urlsafe_b64encode(uuid.uuid5(uuid.NAMESPACE_OID, text).bytes).rstrip(b"=").decode()


@dataclass
class Segment:
    """The files of one segment as a broker hands them to its plugin; `end` is the last offset."""

    start: int
    end: int
    files: dict[str, bytes]
    topic_id: str = TOPIC_ID

    @classmethod
    def of(cls, directory: Path, start: int, following: int) -> "Segment":
        """The segment that begins at `start`; its snapshot is the one at `following`, as RemoteLogManager takes it."""
        files = {
            suffix: file.read_bytes()
            for suffix in ("log", "index", "timeindex", "txnindex")
            if (file := directory / f"{start:020d}.{suffix}").exists()
        }
        snapshot, epochs = directory / f"{following:020d}.snapshot", directory / "leader-epoch-checkpoint"
        files["snapshot"] = snapshot.read_bytes() if snapshot.exists() else b""
        rows = epochs.read_text().splitlines()[2:] if epochs.exists() else []
        known = [row for row in rows if int(row.split()[1]) < following]  # RemoteLogManager.getLeaderEpochEntries
        files["leader_epoch_checkpoint"] = "\n".join(["0", str(len(known)), *known, ""]).encode()
        metadata = directory / "partition.metadata"
        named = re.search(r"topic_id: (\S+)", metadata.read_text()) if metadata.exists() else None
        own = id_of(directory.name.rpartition("-")[0]) if named is None else named[1]
        return cls(start, following - 1, {"index": b"", "timeindex": b"", **files}, own)


def starts_of(directory: Path) -> list[int]:
    """The base offsets of a partition's segments."""
    return sorted(int(file.name[:20]) for file in directory.glob("*.log"))


def chunk_sizes(sizes: list[int]) -> str:
    """ChunkSizesBinaryCodec: count, base, bytes per value, differences, the last in full; zstd; base64."""
    if len(sizes) < 2:
        data = struct.pack(f">i{len(sizes)}i", len(sizes), *sizes)
    else:
        least = min(sizes[:-1])
        width = max(max(1, -(-(size - least).bit_length() // 8)) for size in sizes[:-1])
        data = struct.pack(">iiB", len(sizes), least, width)
        data += b"".join((size - least).to_bytes(width, "big") for size in sizes[:-1]) + struct.pack(">i", sizes[-1])
    return base64.b64encode(zstandard.ZstdCompressor(write_content_size=True).compress(data)).decode()


@dataclass
class Encryption:
    """A data key of one segment and what is authenticated besides each chunk, both random."""

    data_key: bytes = field(default_factory=lambda: os.urandom(32))
    aad: bytes = field(default_factory=lambda: os.urandom(32))

    def encrypted(self, content: bytes) -> bytes:
        """A chunk or an index: an initialization vector, and what AES-GCM makes of the content."""
        vector = os.urandom(12)
        return vector + AESGCM(self.data_key).encrypt(vector, content, self.aad)

    def in_manifest(self, key: Path) -> dict[str, str]:
        """What a manifest says: the data key encrypted with the public key (OAEP of RFC 8017, 7.1.1, with SHA3-512)."""
        private = load_pem_private_key(key.read_bytes(), None)
        assert isinstance(private, RSAPrivateKey)
        public, size = private.public_key().public_numbers(), private.key_size // 8
        block = hashlib.sha3_512().digest() + (b"\1" + self.data_key).rjust(size - 129, b"\0")
        seed = os.urandom(64)
        masked = _exclusive_or(block, _mask(seed, len(block)))
        padded = _exclusive_or(seed, _mask(masked, 64)) + masked
        wrapped = pow(int.from_bytes(padded), public.e, public.n).to_bytes(size)
        return {
            "dataKey": f"{key.stem}:{base64.b64encode(wrapped).decode()}",
            "aad": base64.b64encode(self.aad).decode(),
        }


def _mask(seed: bytes, size: int) -> bytes:
    """MGF1 of RFC 8017, B.2.1."""
    found, counter = b"", 0
    while len(found) < size:
        found += hashlib.sha3_512(seed + counter.to_bytes(4)).digest()
        counter += 1
    return found[:size]


def _exclusive_or(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one) ^ int.from_bytes(other)).to_bytes(len(one))


@dataclass
class AivenPlugin:
    """Writes `PREFIX/TOPIC-TOPICID/PARTITION/OFFSET-SEGMENTID.log`, `.indexes` and `.rsm-manifest`.

    `key`: the file with the RSA key of its key ring that is active; its name is the key's id.
    """

    chunk_size: int = 4096
    compression: bool = False
    key: Path | None = None

    def copy(self, segment: Segment, location: Path, topic: str, partition: int, again: str = "") -> Path:
        """Write the three objects of a segment; return the one of the log."""
        own = id_of(f"{topic} {partition} {segment.start}{again}")
        stem = location / f"{topic}-{segment.topic_id}" / str(partition) / f"{segment.start:020d}-{own}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        log = segment.files["log"]
        chunks = [log[at : at + self.chunk_size] for at in range(0, len(log), self.chunk_size)]
        if self.compression:
            chunks = [zstandard.ZstdCompressor(write_content_size=True).compress(chunk) for chunk in chunks]
        encryption = Encryption()
        if self.key is not None:
            chunks = [encryption.encrypted(chunk) for chunk in chunks]
        index: dict[str, object] = {
            "type": "variable" if self.compression else "fixed",
            "originalChunkSize": self.chunk_size,
            "originalFileSize": len(log),
        }
        if self.compression:
            index["transformedChunks"] = chunk_sizes([len(chunk) for chunk in chunks])
        else:
            index["transformedChunkSize"] = len(chunks[0])
            index["finalTransformedChunkSize"] = len(chunks[-1])
        positions: dict[str, dict[str, int] | None] = {"transaction": None}
        held = b""
        for name, suffix in (
            ("offset", "index"),
            ("timestamp", "timeindex"),
            ("producerSnapshot", "snapshot"),
            ("leaderEpoch", "leader_epoch_checkpoint"),
            ("transaction", "txnindex"),
        ):
            if suffix in segment.files:
                own_file = segment.files[suffix]
                stored = encryption.encrypted(own_file) if own_file and self.key is not None else own_file
                positions[name] = {"position": len(held), "size": len(stored)}
                held += stored
        manifest = {
            "version": "1",
            "chunkIndex": index,
            "segmentIndexes": positions,
            "compression": self.compression,
            **({} if self.key is None else {"encryption": encryption.in_manifest(self.key)}),
            "remoteLogSegmentMetadata": {
                "remoteLogSegmentId": {
                    "topicIdPartition": {
                        "topicId": segment.topic_id,
                        "topicPartition": {"topic": topic, "partition": partition},
                    },
                    "id": own,
                },
                "startOffset": segment.start,
                "endOffset": segment.end,
                "maxTimestampMs": 0,
                "brokerId": 0,
                "eventTimestampMs": 0,
                "segmentLeaderEpochs": {"0": segment.start},
            },
        }
        contents = {"log": b"".join(chunks), "indexes": held, "rsm-manifest": json.dumps(manifest).encode()}
        for suffix, content in contents.items():
            stem.with_name(f"{stem.name}.{suffix}").write_bytes(content)
        return stem.with_name(f"{stem.name}.log")


class LocalTieredStorage:
    """Writes `TOPIC-PARTITION-TOPICID/OFFSET-SEGMENTID.log`, `.index` and so on."""

    @staticmethod
    def copy(segment: Segment, location: Path, topic: str, partition: int, again: str = "") -> Path:
        """Write the files of a segment; return the one of the log."""
        directory = location / f"{topic}-{partition}-{segment.topic_id}"
        directory.mkdir(parents=True, exist_ok=True)
        own = id_of(f"{topic} {partition} {segment.start}{again}")
        for suffix, content in segment.files.items():
            if suffix == "snapshot" and not content:
                continue  # none was there
            (directory / f"{segment.start:020d}-{own}.{suffix}").write_bytes(content)
        return directory / f"{segment.start:020d}-{own}.log"


def move(directory: Path, location: Path, plugin: AivenPlugin | LocalTieredStorage, *, kept: int = 1) -> list[Path]:
    """Copy all segments of a partition but the last to remote storage, and delete all but the last `kept` here; return the copies."""
    topic, _, partition = directory.name.rpartition("-")
    starts = starts_of(directory)
    copies = [
        plugin.copy(Segment.of(directory, start, following), location, topic, int(partition))
        for start, following in pairwise(starts)
    ]
    first = starts[-kept]
    for file in directory.iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) < first:
            file.unlink()
    return copies


def split(directory: Path, parts: int = 4) -> Path:
    """Cut the segments of a log where batches begin, one into about `parts` of equal length, and write the indexes of each."""
    files = sorted(directory.glob("*.log"))
    content = b"".join(file.read_bytes() for file in files)
    starts = {int(file.name[:20]) for file in files}
    segments: dict[int, bytearray] = {}
    at = 0
    while at < len(content):
        base, length = struct.unpack_from(">qi", content, at)
        if base in starts or (len(files) == 1 and at >= len(segments) * len(content) / parts):
            segments[base] = bytearray()
        segments[[*segments][-1]] += content[at : at + 12 + length]
        at += 12 + length
    for file in files:
        file.unlink()
    opened: dict[int, int] = {}
    for base, held in segments.items():
        for suffix, written in {"log": bytes(held), **indexes(bytes(held), base, opened)}.items():
            (directory / f"{base:020d}.{suffix}").write_bytes(written)
    return directory


def indexes(segment: bytes, base_offset: int, opened: dict[int, int]) -> dict[str, bytes]:
    """The indexes of a segment: a row for every batch but the first. `opened`: the first offset of each open transaction."""
    offsets, times, aborted = b"", b"", b""
    at, newest = 0, -1
    while at < len(segment):
        base, length = struct.unpack_from(">qi", segment, at)
        attributes, last, _, latest, producer = struct.unpack_from(">hiqqq", segment, at + 21)
        if at:
            offsets += struct.pack(">ii", base + last - base_offset, at)
        if latest > newest:
            newest = latest
            times += struct.pack(">qi", latest, base + last - base_offset)
        if attributes & 0x20:
            (commit,) = struct.unpack_from(">h", segment, at + 68)
            first = opened.pop(producer, None)
            if first is not None and not commit:
                aborted += struct.pack(">hqqqq", 0, producer, first, base, min(opened.values(), default=base + 1))
        elif attributes & 0x10:
            opened.setdefault(producer, base)
        at += 12 + length
    return {"index": offsets, "timeindex": times, **({"txnindex": aborted} if aborted else {})}


def dated(root: Path, seconds: int) -> Path:
    """Give all files one time of their last change: an audit's clock follows from it."""
    for file in root.rglob("*"):
        os.utime(file, (seconds, seconds))
    return root


def write(target: Path = SAMPLES) -> None:
    """Write samples/remote-storage: a log of four segments, three of them in remote storage; one object is cut off, one is missing."""
    root = target / "remote-storage"
    shutil.rmtree(root / "data", ignore_errors=True)
    shutil.rmtree(root / "store", ignore_errors=True)
    log = Log()
    for number in range(24):
        log.append(data(4001, 0, number, payload=b"order %d" % number))
    directory = split(log.write(root / "data" / "orders-0"))
    (root / "data" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    copies = move(directory, root / "store", AivenPlugin(chunk_size=200))
    copies[1].write_bytes(copies[1].read_bytes()[:-50])
    copies[2].with_suffix(".indexes").unlink()


if __name__ == "__main__":
    write()
