"""What is fuzzed: every parser of bytes or text that comes from outside, with the promises it makes for any input.

A target returns for every input, or raises what is a finding. A parser may refuse bytes with WireError (or the error its
docstring names) and nothing else; what else it promises is asserted here.
"""

import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import crc32c
import numpy as np
import zstandard

from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from kaudit.diff.fingerprint.document import FingerprintError, read_fingerprint_document
from kaudit.diff.records.fingerprints import RecordFingerprintError, read_record_fingerprint
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.formats.application_log.patterns import PROGRAMS
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.application_log.reader import read_events
from kaudit.formats.dump_text.columns import DumpBatchColumns
from kaudit.formats.dump_text.lines import DumpLines
from kaudit.formats.dump_text.partial_rows import ROW_START, looks_like_dump
from kaudit.formats.dump_text.record_content import parse_printed_metadata, parse_printed_transaction
from kaudit.formats.dump_text.rows import DumpRecord, DumpRow
from kaudit.formats.dump_text.text import read_dump, read_dump_batches
from kaudit.formats.errors import Damage, WireError
from kaudit.formats.internal_topics.metadata_records import parse_metadata_record
from kaudit.formats.internal_topics.record_schemas import parse_framed_record, parse_keyed_record
from kaudit.formats.internal_topics.transaction_state import parse_transaction_key, parse_transaction_value
from kaudit.formats.java_properties import parse_properties
from kaudit.formats.log.candidate_scan import Framing
from kaudit.formats.log.codecs import decompress
from kaudit.formats.log.control import parse_control, parse_marker, read_control_records
from kaudit.formats.log.crc_algebra import corrupt_indexes, restore_heads
from kaudit.formats.log.legacy import LegacyMessage, read_legacy_records, read_messages
from kaudit.formats.log.record_batch import batch_crc_holds, gather_headers, walk
from kaudit.formats.log.records import read_records
from kaudit.formats.log.resync import candidates, looks_torn
from kaudit.formats.plain_text.forms import PLAIN
from kaudit.formats.sidefiles import checkpoints
from kaudit.formats.sidefiles.indexes import parse_offset_index, parse_time_index, parse_transaction_index
from kaudit.formats.sidefiles.producer_snapshot import parse_producer_snapshot
from kaudit.formats.sidefiles.segment_manifest import Chunk, parse_segment_manifest
from kaudit.formats.zookeeper.pid_block import parse_cluster_id, parse_pid_block, parse_pid_block_lines
from kaudit.formats.zookeeper.snapshot import scan_snapshot
from kaudit.formats.zookeeper.transaction_log import scan_log
from kaudit.inspect.rows import BytesFormatter
from kaudit.inspect.walk import InspectOptions, inspect_rows
from kaudit.model.internal_topics import CLUSTER, GROUPS, REMOTE_LOG, SHARE_STATE
from kaudit.policy.baseline import parse_baseline
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_codec import unpack_chunk
from kaudit.reading.chunk_rows import ChunkRows
from kaudit.reading.segment import ByteRange
from kaudit.reading.struct_codec import FORMAT
from kaudit.reading.unread_segments import Failure
from kaudit.replay.session import AttemptError, Session
from kaudit.results.saved_scan import SavedScanError, read_saved
from kaudit.scanning.options import ScanOptions
from kaudit.source.bytes import ByteSource, HeldBytes
from kaudit.source.kafka.fetched_segment import NO_ABORTS, FetchedSegment
from kaudit.source.layout import FetchedRange
from kaudit.source.plain_text import PlainText, plain_text
from kaudit.source.segment_object import ChunkedSegment, decoded_chunk
from tests.fuzz import archives, commands, made, outcomes, seeds
from tests.memory import Memory

_LIMIT = 50_000
"""Bytes one batch may become; no output may be larger."""
_BATCH = "00000000000000000000.log"


@dataclass(frozen=True)
class Target:
    """`run` takes any bytes. `seal` makes the checksums of such bytes right, so that the code after the checksum is reached.

    `made` makes inputs that are well formed and say impossible things.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    seal: Callable[[bytes], bytes] | None = None
    made: Callable[[Random], bytes] | None = None

    def feed(self, data: bytes) -> None:
        """Run the input as it is, and sealed."""
        self.run(data)
        if self.seal is not None:
            self.run(self.seal(data))


def _parse(*parsers: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """Each parser returns, or refuses at a byte of the input; damage it lists lies in the input too."""

    def run(data: bytes) -> None:
        for parser in parsers:
            try:
                parsed = parser(data)
            except WireError as error:
                assert 0 <= error.position <= len(data), error  # noqa: PT017
                outcomes.note(parser, error.detail)
                continue
            outcomes.note(type(parsed).__name__)
            for damage in _damages(parsed):
                assert 0 <= damage.position <= damage.end <= len(data), damage

    return run


def _damages(parsed: object) -> Iterable[Damage]:
    return getattr(parsed, "damage", None) or getattr(parsed, "damages", None) or ()


def _decode(data: bytes, read: Callable[[bytes], Iterable[object]]) -> None:
    """Records decode, or are refused; where is a byte of what was decompressed."""
    try:
        for _ in read(data):
            pass
    except WireError as error:
        assert 0 <= error.position <= max(len(data), _LIMIT), error  # noqa: PT017
        outcomes.note(error.detail)


def _legacy_records(message: LegacyMessage, _: bytes) -> Iterable[object]:
    return read_legacy_records(message, _LIMIT)


def _legacy(data: bytes) -> None:
    try:
        for message in read_messages(data):
            _decode(data, partial(_legacy_records, message))
    except WireError as error:
        assert 0 <= error.position <= len(data), error  # noqa: PT017


def _control(data: bytes) -> None:
    _decode(data, partial(read_control_records, limit=_LIMIT))
    _parse(partial(parse_marker, limit=_LIMIT), lambda raw: parse_control(raw[:8], raw[8:]))(data)


def _codecs(data: bytes) -> None:
    for codec in range(8):
        for magic in (0, 2):
            try:
                assert len(decompress(codec, magic, data, _LIMIT)) <= _LIMIT
                outcomes.note("codec", "abcdefgh"[codec])
            except WireError as error:
                assert 0 <= error.position <= len(data), error  # noqa: PT017
                outcomes.note("abcdefgh"[codec], error.detail)


def _dump_text(data: bytes) -> None:
    rows = list(read_dump([data]))
    numbers = [row.line for row in rows]
    assert numbers == sorted(numbers)
    assert all(number <= data.count(b"\n") + 1 for number in numbers)
    # columns, and lines in pieces of any size, are the rows of a reader that takes line by line
    if data:
        lines = DumpLines()
        one_by_one = [*lines.feed(data.removesuffix(b"\n").split(b"\n")), *lines.finish()]
        assert rows == one_by_one or not data.strip(b"\n")
    assert list(read_dump(data[at : at + 7] for at in range(0, len(data), 7))) == rows
    looks_like_dump(data)
    # what scan reads: the same without records of data
    batches: list[DumpRow] = []
    for row in read_dump_batches([data]):
        batches += row.rows() if isinstance(row, DumpBatchColumns) else [row]
    assert [row for row in batches if not _is_data_record(row)] == [row for row in rows if not _is_data_record(row)]


def _plain_text(data: bytes) -> None:
    """A text in any form is a file of plain lines: reads anywhere give what one pass gives."""
    text, form = plain_text(HeldBytes(memoryview(data)), ROW_START)
    size = text.size()
    whole = _bytes_of(text, 0, size + 9)
    assert len(whole) == size
    assert whole == (data if form == PLAIN else whole)
    again = PlainText(HeldBytes(memoryview(data)), form)
    for at in (size // 2, 0, max(size - 5, 0)):
        assert _bytes_of(again, at, 64) == whole[at : at + 64] or form == PLAIN


def _bytes_of(source: ByteSource, position: int, length: int) -> bytes:
    buffer = bytearray(length)
    return bytes(buffer[: source.read_into(position, memoryview(buffer))])


def _application_log(data: bytes) -> None:
    """Events come in order, lie in the log, and do not depend on how the bytes come in pieces."""
    for origin in PROGRAMS:
        counts, in_pieces = LogCounts(), LogCounts()
        events = list(read_events([data], origin, path="log", counts=counts))
        lines = [event.line for event in events]
        assert lines == sorted(lines)
        assert all(1 <= line <= counts.lines for line in lines)
        assert 0 <= counts.unknown_lines <= counts.lines
        pieces = (data[at : at + 7] for at in range(0, len(data), 7))
        assert list(read_events(pieces, origin, path="log", counts=in_pieces)) == events
        assert in_pieces == counts


def _is_data_record(row: object) -> bool:
    return isinstance(row, DumpRecord) and row.end_marker is None and row.control is None


def _printed_records(data: bytes) -> None:
    key, _, payload = data.partition(b"\t")
    _parse(parse_printed_metadata)(payload)
    try:
        parse_printed_transaction(key, payload)
    except WireError as error:
        assert 0 <= error.position <= len(data), error  # noqa: PT017


def _segment(data: bytes) -> None:
    """Every byte of a segment is in one batch or one damage, and the window it is read through changes no batch.

    A hole of zeros is reported from its first zero on: the batch it begins in lies before it.
    """
    sound = []
    for window in (4 << 20, 512):
        found = sorted(_extents(data, window))
        sound.append([extent for extent in found if extent[2] == "batch"])
        at = 0
        for start, end, kind in found:
            assert start == at or (kind == "zeros" and start > at), (
                f"bytes {at}..{start} are in nothing or in two things"
            )
            assert end > start
            at = end
        assert at == len(data)
    assert sound[0] == sound[1]


def _extents(data: bytes, window: int) -> set[tuple[int, int, str]]:
    found: set[tuple[int, int, str]] = set()
    for piece in stream_batches(
        Memory(data), ByteRange(0, len(data), len(data)), expected_offset=0, window_bytes=window
    ):
        positions, sizes = piece.batches["position"].tolist(), piece.batches["size"].tolist()
        found |= {(position, position + size, "batch") for position, size in zip(positions, sizes, strict=True)}
        found |= {(damage.position, damage.end, damage.kind.value) for damage in piece.damages}
        outcomes.note(*(damage.detail for damage in piece.damages))
    return found


def _framing(data: bytes) -> None:
    """What looks at all bytes at once finds what a walk finds, and one CRC over everything what one a batch finds."""
    buffer = memoryview(bytearray(data))
    framing, end = Framing(), len(data)
    walked = walk(buffer, 0, end, end)
    for again in (False, True):
        followed = framing.follow(buffer, 0, end, end)
        if again and not walked.valid:  # after an obstacle it takes short steps
            count = len(followed.positions)
            stop = int(walked.positions[count]) if count < len(walked.positions) else walked.stop
            assert followed.positions.tolist() == walked.positions[:count].tolist()
            assert followed.stop == stop
            assert count or not followed.valid or stop >= end
        else:
            assert followed.positions.tolist() == walked.positions.tolist()
            assert (followed.stop, followed.valid) == (walked.stop, walked.valid)
        framing.mean_size = 100.0
    assert all(0 <= at < end for at in candidates(buffer, 0, 0).tolist())
    looks_torn(buffer[:61], end, 0)
    positions = walked.positions
    if not len(positions):
        return
    headers = gather_headers(buffer, positions)
    ends = [*positions[1:].tolist(), walked.stop]
    each = [batch_crc_holds(buffer, at, stop - at) for at, stop in zip(positions.tolist(), ends, strict=True)]
    if (headers["magic"] == 2).all():
        corrupt = corrupt_indexes(buffer, positions, headers["crc"].astype(np.uint32), walked.stop)
        restore_heads(buffer, positions, headers)
        assert corrupt == [index for index, holds in enumerate(each) if not holds]
        assert bytes(buffer) == data


_NAMES = (
    _BATCH,
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000007.snapshot",
    "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint",
    "meta.properties",
    "partition.metadata",
    ".kafka_cleanshutdown",
    "quorum-state",
    "any.bin",
)
_TOPICS = ("orders-0", "__transaction_state-0", "__consumer_offsets-0", "__cluster_metadata-0")


def _inspect(data: bytes) -> None:
    """Any bytes under any name are shown: rows that are JSON, and never more than a refusal."""
    choice = sum(data[:64])
    with TemporaryDirectory() as root:
        directory = Path(root) / _TOPICS[choice % len(_TOPICS)]
        directory.mkdir()
        path = directory / _NAMES[choice % len(_NAMES)]
        path.write_bytes(data)
        for options in (
            InspectOptions([str(path)], records=True, limit=_LIMIT, texts=BytesFormatter(limit=40)),
            InspectOptions([str(path)], around=choice % 50),
            InspectOptions([str(path)], at=choice % (len(data) + 1)),
            InspectOptions([str(directory)]),
        ):
            try:
                for row in inspect_rows(options, batches=False):
                    json.dumps(row, allow_nan=False)
            except (UsageError, NothingToAuditError):
                continue


def _scan(data: bytes) -> None:
    """A partition of these bytes, and one of the same cut in two segments, is audited."""
    half = len(data) // 2
    with TemporaryDirectory() as root:
        for name, parts in (("orders-0", [data]), ("orders-1", [data[:half], data[half:]])):
            directory = Path(root) / name
            directory.mkdir()
            for number, part in enumerate(parts):
                (directory / f"{number * 5:020d}.log").write_bytes(part)
        result = local.scan(ScanOptions([root], jobs=1), SilentProgress())
        json.dumps([finding.to_dict() for finding in result.findings], allow_nan=False)
        outcomes.note(*sorted({f"{finding.name} {finding.severity.value}" for finding in result.findings}))
        json.dumps([item.to_dict() for item in result.not_audited])


def _scan_text(data: bytes) -> None:
    """Any text is audited as if it were a segment, or refused."""
    with TemporaryDirectory() as root:
        path = Path(root) / "dump.txt"
        path.write_bytes(data)
        try:
            result = local.scan(ScanOptions([str(path)], jobs=1), SilentProgress())
        except NothingToAuditError:
            return
        json.dumps([finding.to_dict() for finding in result.findings], allow_nan=False)
        outcomes.note(*sorted({f"{finding.name} {finding.severity.value}" for finding in result.findings}))
        json.dumps([item.to_dict() for item in result.not_audited])


def _text(*parsers: Callable[[str], object], refusing: tuple[type[Exception], ...]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        for parser in parsers:
            try:
                parser(text)
                outcomes.note("parsed")
            except refusing as error:
                outcomes.note(error)

    return run


def _attempts(data: bytes) -> None:
    for lines in (data.split(b"\n"), data.decode("utf-8", "replace").encode().splitlines()):
        try:
            for _ in Session(lines, Broker(profile_for("3.9.1"))).answered():
                pass
        except AttemptError as error:
            assert 1 <= error.line <= len(lines)  # noqa: PT017
            outcomes.note(error)


def _seal_batches(data: bytes) -> bytes:
    """Put the right CRC into every magic 2 batch the lengths lead to."""
    sealed = bytearray(data)
    at = 0
    while at + 61 <= len(sealed):
        end = at + 12 + struct.unpack_from(">i", sealed, at + 8)[0]
        if end <= at + 21 or end > len(sealed) or sealed[at + 16] != 2:
            break
        struct.pack_into(">I", sealed, at + 17, crc32c.crc32c(bytes(sealed[at + 21 : end])))
        at = end
    return bytes(sealed)


def _seal_snapshot(data: bytes) -> bytes:
    return data[:2] + struct.pack(">I", crc32c.crc32c(data[6:])) + data[6:] if len(data) > 6 else data


def _compressed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(data)


def _formatted(data: bytes) -> bytes:
    return FORMAT.to_bytes(2, "big") + _compressed(data)


def _column_chunk(data: bytes) -> None:
    """What a table's column `chunk` holds is the outcomes of reading a range, or refused."""
    try:
        found = unpack_chunk(data)
    except UsageError as error:
        outcomes.note(error)
        return
    assert all(isinstance(outcome, ChunkRows | Failure) for outcome in found)
    outcomes.note("chunk")


def _some(make: Callable[[Random], bytes]) -> list[bytes]:
    return [make(Random(number)) for number in range(3)]


_FETCHES = 20


def _record_sets(data: bytes) -> None:
    """What a broker sends, whatever offset it is asked for: batches and damage in order, or one error."""
    place = FetchedRange("broker:9092", "t", 0, first_offset=0, readable_from=0, end_offset=1 << 40, bytes_per_offset=3)
    fetches = iter([(data, NO_ABORTS)] * _FETCHES)
    source = FetchedSegment(place, lambda offset, size: next(fetches, (b"", NO_ABORTS)))
    at = 0
    try:
        for piece in stream_batches(source, ByteRange(0, place.size, place.size), expected_offset=0):
            assert at <= piece.read_to <= place.size
            at = piece.read_to
            positions = piece.batches["position"]
            assert ((positions >= 0) & (positions < place.size)).all()
            assert all(0 <= damage.position < damage.end for damage in piece.damages)
    except OSError:
        return
    assert at == place.size


_ZNODE = "/latest_producer_id_block"


def _manifest(data: bytes) -> None:
    """A manifest is refused, or its chunks are the segment's bytes in order, whatever lies in the object that it describes."""
    try:
        manifest = parse_segment_manifest(data)
    except WireError as error:
        outcomes.note(parse_segment_manifest, error.detail)
        return
    chunks = manifest.chunks
    if not 0 < chunks.file_size <= _LIMIT or chunks.count > _MOST_CHUNKS:
        return
    at = [chunks.at(position) for position in range(0, chunks.file_size, chunks.chunk_size)]
    assert [chunk.number for chunk in at] == list(range(chunks.count))
    assert sum(chunk.size for chunk in at) == chunks.file_size
    assert sum(chunk.object_size for chunk in at) == chunks.object_size
    read = bytearray(chunks.file_size + 1)
    assert ChunkedSegment(HeldBytes(memoryview(data)), manifest).read_into(0, memoryview(read)) == chunks.file_size


def _chunk(data: bytes) -> None:
    """A chunk is refused, or becomes as many bytes as the manifest says."""
    size = int.from_bytes(data[:2], "big")
    chunk = Chunk(0, 0, size, 0, len(data) - 2 if data else 1)
    for compressed in (False, True):
        try:
            assert len(decoded_chunk(data[2:], chunk, compressed=compressed)) == size
        except WireError as error:
            outcomes.note(decoded_chunk, error.detail)


_MOST_CHUNKS = 1000
TARGETS: dict[str, Target] = {
    "segment": Target(_segment, seeds.segments, _seal_batches),
    "framing": Target(_framing, seeds.segments, _seal_batches),
    "archives": Target(archives.read, archives.seeds, archives.seal, archives.made),
    "archive_files": Target(archives.scan, archives.seeds, archives.seal, archives.made),
    "records": Target(partial(_decode, read=partial(read_records, limit=_LIMIT)), seeds.batches),
    "control": Target(_control, seeds.control_batches),
    "legacy": Target(_legacy, seeds.legacy_messages),
    "codecs": Target(_codecs, seeds.compressed),
    "offset_checkpoint": Target(_parse(checkpoints.parse_offset_checkpoint), seeds.checkpoints),
    "leader_epochs": Target(_parse(checkpoints.parse_leader_epoch_checkpoint), seeds.checkpoints),
    "properties": Target(
        _parse(
            checkpoints.parse_meta_properties, checkpoints.parse_partition_metadata, checkpoints.parse_clean_shutdown
        ),
        seeds.properties,
    ),
    "indexes": Target(_parse(parse_offset_index, parse_time_index), seeds.indexes),
    "segment_manifest": Target(_manifest, seeds.manifests),
    "remote_chunk": Target(_chunk, seeds.chunks),
    "transaction_index": Target(_parse(parse_transaction_index), seeds.transaction_indexes),
    "producer_snapshot": Target(
        _parse(lambda data: list(parse_producer_snapshot(data).entries())), seeds.snapshots, _seal_snapshot
    ),
    "transaction_state": Target(_parse(parse_transaction_key, parse_transaction_value), seeds.transaction_records),
    "consumer_offsets": Target(
        _parse(
            *(partial(parse_keyed_record, GROUPS, key) for key in seeds.GROUP_KEYS),
            *(partial(parse_keyed_record, SHARE_STATE, key) for key in seeds.SHARE_KEYS),
            lambda key: parse_keyed_record(GROUPS, key, None),
            lambda key: parse_keyed_record(SHARE_STATE, key, None),
        ),
        seeds.group_records,
    ),
    "framed_records": Target(
        _parse(partial(parse_framed_record, REMOTE_LOG), partial(parse_framed_record, CLUSTER)), seeds.metadata_records
    ),
    "metadata_records": Target(_parse(parse_metadata_record), seeds.metadata_records),
    "dump_text": Target(_dump_text, seeds.dumps),
    "plain_text": Target(_plain_text, seeds.formed_texts),
    "application_log": Target(_application_log, seeds.application_logs),
    "printed_records": Target(_printed_records, seeds.printed_records),
    "zookeeper_log": Target(_parse(lambda data: scan_log(memoryview(data), _ZNODE)), seeds.zookeeper_logs),
    "zookeeper_snapshot": Target(
        _parse(lambda data: scan_snapshot(memoryview(data), _ZNODE)), seeds.zookeeper_snapshots
    ),
    "zookeeper_values": Target(_parse(parse_pid_block, parse_cluster_id), seeds.zookeeper_values),
    "pid_block_lines": Target(
        _text(lambda text: list(parse_pid_block_lines(text.splitlines())), refusing=()), seeds.pid_block_lines
    ),
    "attempts": Target(_attempts, seeds.attempts),
    "saved_scan": Target(_text(read_saved, refusing=(SavedScanError,)), seeds.saved_scans),
    "record_fingerprint": Target(
        _text(read_record_fingerprint, refusing=(RecordFingerprintError,)), seeds.record_fingerprints
    ),
    "fingerprint": Target(_text(read_fingerprint_document, refusing=(FingerprintError,)), seeds.fingerprints),
    "column_chunk": Target(_column_chunk, seeds.column_chunks, _formatted),
    "baseline": Target(_text(partial(parse_baseline, file="b.json"), refusing=(UsageError,)), seeds.saved_scans),
    "inspect": Target(_inspect, seeds.files, _seal_batches),
    "scan": Target(_scan, seeds.segments, _seal_batches),
    "record_sets": Target(_record_sets, seeds.segments, _seal_batches),
    "client_properties": Target(_text(parse_properties, refusing=(WireError,)), seeds.properties),
    "scan_text": Target(_scan_text, seeds.dumps),
    "directories": Target(commands.directories, partial(_some, made.directory), made=made.directory),
    "texts": Target(commands.texts, partial(_some, made.text), made=made.text),
    "attempt_files": Target(commands.attempts, partial(_some, made.attempts), made=made.attempts),
    "server_logs": Target(commands.server_logs, partial(_some, made.server_logs), made=made.server_logs),
    "fingerprint_files": Target(commands.fingerprint_files, partial(_some, made.directory), made=made.directory),
    "watch_states": Target(commands.watch_states, partial(_some, made.directory), made=made.directory),
    "scan_states": Target(commands.scan_states, partial(_some, made.directory), made=made.directory),
    "saved_files": Target(commands.saved, partial(_some, made.saved), made=made.saved),
}


@cache
def seeds_of(name: str) -> list[bytes]:
    """The good inputs of a target, made once."""
    return TARGETS[name].seeds()
