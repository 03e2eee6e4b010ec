"""Good inputs to start from: files real brokers wrote (samples/), and what tests/formats/encoders.py writes."""

import gzip
import json
import struct
from functools import cache
from pathlib import Path

import zstandard

from kaudit.formats.application_log.patterns import PROGRAMS, read_patterns
from kaudit.reading.chunk_codec import pack_chunk
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_reader import read_chunk
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.unread_segments import Failure
from kaudit.report.json_documents import pretty, scan_document
from kaudit.report.render_options import RenderOptions
from kaudit.source.layout import SegmentFile
from tests import scan_results
from tests.formats import encoders, text_forms
from tests.formats.zookeeper import zookeeper_bytes
from tests.logs import Log, data, marker
from tests.memory import Memory
from tests.remote_storage import chunk_sizes

SAMPLES = Path(__file__).parents[2] / "samples"
_MAX_BYTES = 3000
"""A seed is small: thousands are tried a second, and any place of it may be the one that matters."""
_MAX_SEEDS = 24


@cache
def _real(pattern: str) -> list[bytes]:
    """Beginnings of the sample files of a name, each different one once, spread over all samples."""
    found = dict.fromkeys(path.read_bytes()[:_MAX_BYTES] for path in sorted(SAMPLES.rglob(pattern)) if path.is_file())
    contents = [content for content in found if content]
    return contents[:: max(1, len(contents) // _MAX_SEEDS)]


def segments() -> list[bytes]:
    """Segments: real ones, damaged ones, transactions, legacy messages, preallocated and torn tails."""
    log = Log()
    for sequence in range(8):
        log.append(data(7, 0, sequence, payload=b"p" * sequence))
        log.append(data(8, 1, sequence, 2, transactional=True))
    log.append(marker(8, 1))
    written = log.encode()
    return [
        *_real("*.log"),
        written,
        written[:-30],
        written + bytes(500),
        b"".join(legacy_messages()) + written,
        b"".join(batches()),
    ]


def batches() -> list[bytes]:
    """One batch of every codec, and one with every kind of field."""
    records = [encoders.record(index, index, b"key", b"value" * index, [(b"h", None)]) for index in range(6)]
    return [
        *(encoders.batch(records, codec=codec) for codec in encoders.COMPRESS),
        encoders.batch(
            records, flags=encoders.LOG_APPEND_TIME, producer_id=2**62, producer_epoch=9, base_sequence=2**31 - 2
        ),
        encoders.batch([], last_offset_delta=4, count=0, codec=encoders.GZIP),
    ]


def control_batches() -> list[bytes]:
    """End markers, KRaft's control records and unknown ones, plain and compressed."""
    return [encoders.marker(kind, 3, codec=codec) for kind in (0, 1, 2, 3, 9) for codec in (0, 1, 4)]


def legacy_messages() -> list[bytes]:
    """Messages of magic 0 and 1, and wrappers of every codec of theirs."""
    found = [encoders.message(3, 0, b"key", b"value"), encoders.message(4, 1, None, b"", timestamp=5)]
    for magic in (0, 1):
        inner = b"".join(encoders.message(index, magic, None, b"v%d" % index) for index in range(3))
        for codec in (encoders.GZIP, encoders.SNAPPY, encoders.LZ4):
            payload = (
                encoders.lz4_of_old_kafka(inner)
                if (magic, codec) == (0, encoders.LZ4)
                else encoders.COMPRESS[codec](inner)
            )
            found.append(encoders.message(7, magic, None, payload, codec=codec))
    return found


def compressed() -> list[bytes]:
    """Payloads of every codec: texts, and kilobytes that become megabytes."""
    texts = (b"", b"kafka " * 100, bytes(range(256)) * 3, bytes(1 << 20))
    return [compress(text) for text in texts for compress in encoders.COMPRESS.values()][:-5] + [
        encoders.COMPRESS[codec](bytes(1 << 20)) for codec in (encoders.GZIP, encoders.LZ4, encoders.ZSTD)
    ]


def checkpoints() -> list[bytes]:
    """Checkpoints of offsets and of leader epochs."""
    return [
        *_real("*-offset-checkpoint"),
        *_real("leader-epoch-checkpoint"),
        b"0\n3\n__transaction_state 4 77\nt 0 5\nu 1 6\n",
    ]


def properties() -> list[bytes]:
    """Property files and the JSON of a clean shutdown."""
    return [
        *_real("meta.properties"),
        *_real("partition.metadata"),
        b"#\n#Sat Nov 21\nnode.id=1\ndirectory.id=zTOi\nversion=1\ncluster.id=a\\:b\\u0041\n",
        b'{"version":0,"brokerEpoch":6}',
    ]


def indexes() -> list[bytes]:
    """Indexes by offset and by time."""
    return [*_real("*.index"), *_real("*.timeindex"), struct.pack(">6i", 1, 2, 3, 4, 5, 6) + bytes(48)]


def transaction_indexes() -> list[bytes]:
    """Indexes of aborted transactions."""
    return [*_real("*.txnindex"), struct.pack(">hqqqqhqqqq", 0, 1, 2, 3, 4, 0, 5, 6, 7, 8)]


def manifests() -> list[bytes]:
    """Manifests of segments in remote storage, whose objects are as they are and compressed."""
    index = {"originalChunkSize": 100, "originalFileSize": 250}
    names = ("offset", "timestamp", "producerSnapshot", "leaderEpoch")
    variable = {**index, "type": "variable", "transformedChunks": chunk_sizes([10, 20, 30])}
    compressed = {
        "version": "1",
        "chunkIndex": variable,
        "segmentIndexes": {**{name: {"position": 0, "size": 1} for name in names}, "transaction": None},
        "compression": True,
    }
    return [*_real("*.rsm-manifest"), json.dumps(compressed).encode()]


def chunks() -> list[bytes]:
    """Chunks of a segment after the number of their bytes: as they are, and as zstd makes them."""
    contents = [b"x" * 300, bytes(range(256))]
    packed = [zstandard.ZstdCompressor().compress(content) for content in contents]
    return [
        len(content).to_bytes(2, "big") + data
        for content, stored in zip(contents, packed, strict=True)
        for data in (content, stored)
    ]


def snapshots() -> list[bytes]:
    """Producer snapshots."""
    return _real("*.snapshot")


def transaction_records() -> list[bytes]:
    """Values of version 0 and 1, and a key."""
    topic = b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\3"
    flexible = b"\2\2t\2\0\0\0\3\0"
    tags = encoders.tagged({0: struct.pack(">q", 5), 1: struct.pack(">q", 6), 2: struct.pack(">h", 2)})
    head = struct.pack(">qhib", 77, 3, 60_000, 1)
    times = struct.pack(">qq", 1_700_000_000_000, 1_700_000_000_001)
    return [
        b"\0\0" + head + topic + times,
        b"\0\0" + head + b"\xff\xff\xff\xff" + times,
        b"\0\1" + head + flexible + times + tags,
        b"\0\0" + encoders.string("transaction"),
    ]


GROUP_KEYS = (
    b"\0\1" + encoders.string("group") + encoders.string("topic") + struct.pack(">i", 3),
    b"\0\2" + encoders.string("group"),
    b"\0\5" + encoders.string("group") + encoders.string("member"),
    b"\0\x17" + encoders.string("group"),
)
SHARE_KEYS = tuple(
    struct.pack(">h", kind) + encoders.string("group") + bytes(16) + struct.pack(">i", 3) for kind in (0, 1)
)


def group_records() -> list[bytes]:
    """Values of offset commits and of group metadata, and the keys themselves."""
    commit = struct.pack(">qi", 42, 7) + encoders.string("meta") + struct.pack(">q", 5)
    member = encoders.string("m-1") + encoders.string(None) + encoders.string("client") + encoders.string("/h")
    member += struct.pack(">iii", 1000, 1000, 3) + b"sub" + struct.pack(">i", 0)
    group = encoders.string("consumer") + struct.pack(">i", 4) + encoders.string("range") + encoders.string("m-1")
    group += struct.pack(">qi", 9, 1) + member
    share = struct.pack(">hiiq", 0, 1, 3, 7) + b"\2" + struct.pack(">qqbh", 7, 9, 4, 2) + b"\0\0"
    return [b"\0\3" + commit, b"\0\1" + commit, b"\0\3" + group, share, *GROUP_KEYS, *SHARE_KEYS]


def metadata_records() -> list[bytes]:
    """Frames of the metadata log: producer ids, a feature level, and what is only named."""

    def frame(api_key: int, body: bytes) -> bytes:
        return encoders.unsigned_varint(1) + encoders.unsigned_varint(api_key) + encoders.unsigned_varint(0) + body

    feature = encoders.compact_string("metadata.version") + struct.pack(">h", 29) + encoders.tagged({})
    return [
        frame(15, struct.pack(">iqq", 1, 2, 1000) + encoders.tagged({})),
        frame(12, feature),
        frame(2, encoders.compact_string("topic") + bytes(17)),
    ]


_BATCH = (
    "baseOffset: {0} lastOffset: {1} count: 2 baseSequence: 0 lastSequence: 1 producerId: 7 producerEpoch: 0 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: {2} "
    "CreateTime: 1795240108273 size: 94 magic: 2 compresscodec: lz4 crc: 2611787814 isvalid: true\n"
)
_OLD_BATCH = (
    "baseOffset: {0} lastOffset: {1} baseSequence: 0 lastSequence: 1 producerId: 7 producerEpoch: 0 partitionLeaderEpoch: "
    "0 isTransactional: false position: {2} CreateTime: 1795240108273 isvalid: true size: 94 magic: 2 compresscodec: LZ4 "
    "crc: 2611787814\n"
)


def formed_texts() -> list[bytes]:
    """Texts of kafka-dump-log as people hold them."""
    text = dumps()[0]
    forms = [*text_forms.ENCODINGS.values(), *map(text_forms.prefixed, text_forms.PREFIXES)]
    return [form(text) for form in (*forms, *map(text_forms.in_json, text_forms.JSON_SHAPES))]


def dumps() -> list[bytes]:
    """Texts of kafka-dump-log of every kind."""
    many, old = ("".join(line.format(2 * n, 2 * n + 1, 94 * n) for n in range(30)) for line in (_BATCH, _OLD_BATCH))
    deep = _BATCH.format(0, 1, 0) + (
        "| offset: 0 CreateTime: 5 keySize: 1 valueSize: 3 sequence: 0 headerKeys: [h] key: k payload: a\nb\n"
        "| offset: 1 CreateTime: 5 keySize: -1 valueSize: 0 sequence: 1 headerKeys: [] payload: \n"
        "| offset: 2 CreateTime: 5 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: COMMIT "
        "coordinatorEpoch: 3\n"
    )
    sides = (
        "Dumping /data/t-0/00000000000000000007.snapshot\nproducerId: 1 producerEpoch: 0 coordinatorEpoch: -1 "
        "currentTxnFirstOffset: None firstSequence: 7 lastSequence: 7 lastOffset: 7 offsetDelta: 0 timestamp: 9\n"
        "version: 0 producerId: 1 firstOffset: 4 lastOffset: 6 lastStableOffset: 7\noffset: 5 position: 400\n"
        "timestamp: 7 offset: 105\nFound 7 invalid bytes at the end of x.log\n"
    )
    head = "Dumping /data/t-0/00000000000000000000.log\nLog starting offset: 0\n"
    return [text.encode() for text in (head + many, head + old, head + deep, sides, _OLD_BATCH.format(0, 1, 0) + deep)]


def zookeeper_logs() -> list[bytes]:
    """Transaction logs that create and set the znode of producer id blocks."""
    path, value = "/latest_producer_id_block", b'{"version":1,"broker":35,"block_start":"0","block_end":"999"}'
    one, two = zookeeper_bytes.create(path, value), zookeeper_bytes.set_data(path, value, 1)
    return [
        zookeeper_bytes.log(
            zookeeper_bytes.transaction(1, 1, one),
            zookeeper_bytes.transaction(2, 5, two),
            zookeeper_bytes.transaction(3, 14, zookeeper_bytes.multi((1, one), (5, two))),
            padding=200,
        )
    ]


def zookeeper_snapshots() -> list[bytes]:
    """A snapshot with the znode of producer id blocks."""
    return [zookeeper_bytes.snapshot(zookeeper_bytes.znode("/latest_producer_id_block", b"{}"))]


def zookeeper_values() -> list[bytes]:
    """Values of znodes."""
    return [
        b'{"version":1,"broker":35,"block_start":"0","block_end":"999"}',
        b'{"version":"1","id":"z6Ovv5MOTcSNNYmRKhBvLg"}',
    ]


def pid_block_lines() -> list[bytes]:
    """Lines people save: the znode's value, zkCli's stat, answers to AllocateProducerIds."""
    return [
        (
            b'{"version":1,"broker":0,"block_start":"0","block_end":"999"}\ncZxid = 0x2c\nmZxid = 0x2c\ndataVersion = 4\n'
            b'{"first_producer_id":1000,"length":1000,"broker":2}\n{"at":5,"znode":{"data":"{}","version":3,"mzxid":9}}\n'
        )
    ]


def attempts() -> list[bytes]:
    """Attempts of several ops."""
    produce = {
        "op": "produce",
        "index": 1,
        "topic": "t",
        "partition": 0,
        "producer_id": 5,
        "producer_epoch": 0,
        "base_sequence": 0,
        "record_count": 3,
        "records_hex": batches()[0].hex()[:400],
    }
    lines = (
        {"op": "broker", "broker_version": "2.8.2", "config": {"producer.id.expiration.ms": 5}},
        produce,
        {"op": "init_producer_id", "index": 2, "transactional_id": "x", "timeout_ms": 60000},
        {"op": "restart", "index": 3, "topic": "t", "partition": 0, "clean": False},
        {"op": "produce", "index": 4, "topic": "t", "partition": 0, "batches": [produce, produce]},
    )
    return ["\n".join(map(json.dumps, lines)).encode(), b"\n".join(json.dumps(line).encode() for line in lines[:2])]


def fingerprints() -> list[bytes]:
    """Fingerprints of a partition: of its beginning, with narrower ranges, and with the batches of one."""
    partition: dict[str, object] = {
        "topic": "orders",
        "partition": 0,
        **dict.fromkeys(("log_start_offset", "start_offset"), 1000),
        **dict.fromkeys(("log_end_offset", "end_offset"), 9000),
        "batches": 2,
        "digest": "0" * 64,
        "ranges": [{"first_offset": 0, "width": 4096, "digests": ["a" * 64, None, "b" * 64]}],
    }
    narrower = [{"first_offset": 4096, "width": 1024, "digests": [None, "c" * 64]}]
    more = {
        "ranges": narrower,
        "listed": [{"first_offset": 1024, "batches": [[1030, 1031, 0, 7], [1032, 1032, -1, 8]]}],
    }
    head = {"schema": "kaudit.fingerprint/1", "inputs": ["/d"], "incomplete": False, "not_audited": []}
    return [json.dumps(head | {"partitions": [each]}).encode() for each in (partition, partition | more)]


def record_fingerprints() -> list[bytes]:
    """Fingerprints of records: of a whole topic, and of some of its windows."""
    partition = {"partition": 0, "windows": [[-1, 2, "0" * 32], [170_000, 10, "a1" * 16]]}
    topic = {
        "topic": "t",
        "appended_times": 0,
        "cleaned": False,
        "complete": True,
        "within": None,
        "partitions": [partition],
    }
    head = {"schema": "kaudit.record-fingerprint/1", "inputs": ["/d"], "incomplete": False, "not_audited": []}
    head |= {"identity": "key,value,headers,timestamp", "read_committed": False, "milliseconds": 10_000}
    return [
        json.dumps(head | {"topics": [each]}).encode()
        for each in (topic, topic | {"within": [[-1, -1], [17, 170_000]]})
    ]


def column_chunks() -> list[bytes]:
    """What is compressed in the column `chunk` of the table of runs: ranges of segments, read, and one that could not be."""
    chunks: list[ChunkRows | Failure] = [Failure("/d/t-0/00000000000000000000.log", "Permission denied")]
    for content in segments()[-5:]:
        file = SegmentFile("/d/t-0/00000000000000000000.log", "00000000000000000000.log", 0, len(content), 0)
        spec = ChunkSpec(0, file, 0, len(content), len(content), None, True, 1 << 62)
        chunks.append(read_chunk(spec, Memory(content)))
    return [
        zstandard.ZstdDecompressor().decompress(pack_chunk(each)[2:]) for each in ([], *([chunk] for chunk in chunks))
    ]


def saved_scans() -> list[bytes]:
    """Documents kaudit saves, small ones, and JSON deeper than a stack."""
    entry = {"fingerprint": "0" * 16, "code": "KA101", "summary": "s", "expires": "2026-12-31", "partition": 0}
    finding = {
        "code": "KA101",
        "name": "duplicate-batch",
        "severity": "error",
        "confidence": "certain",
        "message": "m",
        "fingerprint": "0" * 16,
        "evidence": {"timestamp": "2026-11-21T00:00:00.000Z"},
    }
    return [
        json.dumps({"schema": "kaudit.scan/1", "findings": [finding], "partitions": [], "summary": {}}).encode(),
        pretty(scan_document(scan_results.scan_result(scan_results.old_duplicate()), RenderOptions())).encode(),
        json.dumps({"schema": "kaudit.baseline/1", "entries": [entry]}).encode(),
        b"[" * 100_000,
    ]


def files() -> list[bytes]:
    """Files of every kind."""
    kinds = (batches, indexes, transaction_indexes, snapshots, checkpoints, properties, dumps, control_batches)
    return [seed for kind in kinds for seed in kind()[:8]] + segments()[-5:]


def printed_records() -> list[bytes]:
    """Key, tab and payload as kafka-dump-log's decoders print records of internal topics, from 1.1's to 4.2's."""
    new = '{"version":"1","data":{"producerId":1,"producerEpoch":0,"transactionTimeoutMs":600000,"transactionStatus":1,'
    new += (
        '"transactionPartitions":[{"topic":"t","partitionIds":[0,1]}],"transactionLastUpdateTimestampMs":1795241986945,'
    )
    new += '"transactionStartTimestampMs":1795241986945,"clientTransactionVersion":2,"nextProducerId":-1}}'
    old = "producerId:1,producerEpoch:0,state=Ongoing,partitions=%s,txnLastUpdateTimestamp=1795242099153,txnTimeoutMs=6000"
    return [
        b'{"type":"0","data":{"transactionalId":"tx"}}\t' + new.encode(),
        b"transaction_metadata::transactionalId=tx\t" + (old % "[a-0,b.c-17]").encode(),
        b"transactionalId=tx\t" + (old % "Set(a-0, b-1)").encode(),
        b"transactionalId=tx\t" + (old % "Set()").encode(),
        b'\t{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":21}}',
        b'\t{"type":"PRODUCER_IDS_RECORD","version":0,"data":{"brokerId":1,"brokerEpoch":5,"nextProducerId":1000}}',
    ]


def application_logs() -> list[bytes]:
    """Entries of every program, some with a stack trace, some as collectors keep them."""
    examples = [
        pattern.example for programs in PROGRAMS.values() for name in programs for pattern in read_patterns(name)
    ]
    trace = "\tat kafka.server.ReplicaManager.appendToLocalLog(ReplicaManager.scala:1400)\n"
    logs = ["\n".join(examples[at : at + 5]) + f"\n{trace}" for at in range(0, len(examples), 25)]
    return [
        *(log.encode() for log in logs),
        "".join(f"2026-11-22T10:15:30.123456789Z stdout F {line}\n" for line in logs[0].splitlines()).encode(),
        "".join(
            f"__CURSOR=a\n__REALTIME_TIMESTAMP=1795373104100000\nMESSAGE={line}\n\n" for line in logs[0].splitlines()
        ).encode(),
        logs[1].encode("utf-16"),
        gzip.compress(logs[2].encode()),
    ]
