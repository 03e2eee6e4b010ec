"""An audit of what kafka-dump-log printed of a log finds what an audit of the log's own bytes finds."""

import re
import shutil
import struct
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.formats.dump_text.rows import DumpBatch, DumpFile, DumpRecord
from kaudit.formats.dump_text.text import read_dump
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.formats.archives import CAPTURES, ORACLES
from tests.formats.segment_rows import batch_rows

# sequences, epochs, transactions, and what is wrong with the order of offsets and leader epochs
COMPARED = ("KA006", "KA007", "KA008", "KA009", "KA1", "KA2", "KA301", "KA302", "KA303", "KA304", "KA404", "KA405")
# found only with the commit or abort in a marker
BY_MARKER_TYPE = ("KA203", "KA205", "KA304")
# found by records that come again, which texts do not show
BY_RECORDS = ("KA208",)


def audit(*paths: Path, version="3.9.1"):
    # the newest batch must be the clock's: sets of segments differ
    options = ScanOptions([str(path) for path in paths], jobs=1, broker_version=version, now_ms=1_800_000_000_000)
    return local.scan(options, SilentProgress())


def found(result, without=(), *, crcs=True):
    return Counter(
        (
            finding.code,
            # without CRCs a duplicate is likely, not certain
            finding.severity.value if crcs else None,
            finding.topic,
            finding.partition,
            finding.segment,
            finding.position,
            finding.offset,
            finding.last_offset,
            finding.producer_id,
            finding.producer_epoch,
        )
        for finding in result.findings
        if finding.code.startswith(COMPARED) and not finding.code.startswith(without)
    )


class Said(NamedTuple):
    """What a text names and prints: segments, which markers commit, batches, and their counts of records.

    Before 2.0 no text has counts: then a hole in a log may be compaction's, and none is reported.
    """

    files: list[str]
    marker_types: bool
    batches: bool
    record_counts: bool


@cache
def said(text: Path) -> Said:
    """Read a text once for all of it."""
    files: list[str] = []
    marker_types = batches = record_counts = False
    with text.open("rb") as lines:
        for row in read_dump(lines):
            if isinstance(row, DumpRecord):
                marker_types = marker_types or row.end_marker is not None
            elif isinstance(row, DumpBatch):
                batches, record_counts = True, record_counts or row.record_count is not None
            elif isinstance(row, DumpFile) and row.path.endswith(".log"):
                files.append(row.path)
    return Said(files, marker_types, batches, record_counts)


def uncheckable(texts) -> tuple[str, ...]:
    without = BY_RECORDS if any(said(text).marker_types for text in texts) else (*BY_RECORDS, *BY_MARKER_TYPE)
    return without if any(said(text).record_counts for text in texts) else (*without, "KA007")


OPEN = ("KA301", "KA302")


def open_transactions(result) -> set[tuple[object, ...]]:
    """What is open, and since where, on whichever replica."""
    return {
        (found.topic, found.partition, found.producer_id, found.severity, found.offset)
        for found in result.findings
        if found.code in OPEN
    }


def alone(root: Path, names: list[str], target: Path) -> list[Path]:
    """Copies of segments without anything beside them: a text has no checkpoints either."""
    copies = []
    for name in names:
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, copy)
        copies.append(copy)
    return copies


def is_compared(path: Path) -> bool:
    """Not what the tool printed of moved directories, nor of topics whose records are witnesses of others."""
    put_aside = path.parent.name.endswith(("-delete", "-future", "-stray"))
    return path.exists() and not put_aside and not path.parent.name.startswith("__")


@pytest.mark.parametrize("capture", [name for name in CAPTURES if name != "torn-writes"])
@pytest.mark.parametrize("kind", ["batches", "deep"])
def test_texts_of_captures(evidence, capture, kind, tmp_path):
    root = evidence.capture(capture)
    texts = {text: said(text).files for text in sorted((root / "dumps").glob(f"*.log.{kind}.txt"))}
    texts = {text: names for text, names in texts.items() if all(is_compared(root / name) for name in names)}
    if not texts:
        assert (capture, kind) == ("failover-acks1", "deep")
        return
    without = uncheckable(texts)
    crcs = all(said(text).batches for text in texts)
    printed = audit(*texts)
    own = audit(*alone(root, [name for names in texts.values() for name in names], tmp_path))
    directories = {Path(name).parent for names in texts.values() for name in names}
    if len({directory.name for directory in directories}) < len(directories):
        # texts of replicas are not compared: each reports what is open, also where the newest leader's copy shows its end
        assert open_transactions(printed) >= open_transactions(own)
        without = (*without, *OPEN)
    assert found(printed, without, crcs=crcs) == found(own, without, crcs=crcs)
    assert printed.summary.producers == own.summary.producers
    assert printed.summary.batches == own.summary.batches or not crcs
    assert any("text of kafka-dump-log" in item.reason for item in printed.not_audited)


@pytest.mark.parametrize("version", ORACLES)
@pytest.mark.parametrize("kind", ["segments-plain", "segments-deep", "segments-print", "segments-print-deep"])
def test_texts_of_five_versions(evidence, version, kind, tmp_path):
    root = evidence.oracle(version, "logdir") / "main"
    text = evidence.oracle(version, "dumps") / f"{kind}.txt"
    without = uncheckable([text])
    crcs = said(text).batches
    printed = audit(text, version=version)
    own = audit(*alone(root, said(text).files, tmp_path), version=version)
    assert len(found(own, without)) >= 3
    assert found(printed, without, crcs=crcs) == found(own, without, crcs=crcs)


def test_damage_the_tool_saw(evidence, tmp_path):
    """If the tool did not crash before: a batch that it calls invalid, and the bytes that it reports after the last whole one."""
    root = evidence.capture("torn-writes")
    seen: Counter[str] = Counter()
    for text in sorted((root / "dumps").glob("artificial__*.log.batches.txt")):
        (name,) = said(text).files
        if not is_compared(root / name):
            continue
        own, printed = audit(*alone(root, [name], tmp_path)), audit(text)
        damages = {finding.code: finding for finding in own.findings if finding.code in ("KA001", "KA002")}
        for code, finding in damages.items():
            same = [other for other in printed.findings if other.code == code and other.position == finding.position]
            left_out = [item for item in printed.not_audited if "is not checked" in item.reason]
            assert same or left_out, (text.name, code)
            seen[code] += bool(same)
    assert seen["KA001"] >= 3, seen


CONTROL_TYPES = {0: "ABORT", 1: "COMMIT"}
LINE = (
    "baseOffset: {base_offset} lastOffset: {last_offset} count: {record_count} baseSequence: {base_sequence} lastSequence: "
    "{last_sequence} producerId: {producer_id} producerEpoch: {producer_epoch} partitionLeaderEpoch: {leader_epoch} "
    "isTransactional: {is_transactional} isControl: {is_control} deleteHorizonMs: {horizon} position: {position} "
    "{timestamp_type}: {max_timestamp} size: {size} magic: {magic} compresscodec: {codec} crc: {crc} isvalid: true\n"
)
MARKER = (
    "| offset: {base_offset} CreateTime: {max_timestamp} keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: "
    "{kind} coordinatorEpoch: {coordinator_epoch}\n"
)


def printed_as_by_3_9(path: Path) -> str:
    """What kafka-dump-log 3.9 --print-data-log prints of a segment's batches and markers, written independently."""
    text = f"Dumping {path}\nLog starting offset: {int(path.stem)}\n"
    for row, raw in batch_rows(path.read_bytes()):
        horizon = row["delete_horizon_ms"]
        shown = {name: str(value).lower() if isinstance(value, bool) else value for name, value in row.items()}
        text += LINE.format(horizon="OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]", **shown)
        if row["is_control"] and row["record_count"]:
            control_type = struct.unpack_from(">h", raw, 61 + 8 - 1)[0]
            coordinator_epoch = struct.unpack_from(">i", raw, len(raw) - 5)[0]
            if control_type in CONTROL_TYPES:
                text += MARKER.format(kind=CONTROL_TYPES[control_type], coordinator_epoch=coordinator_epoch, **row)
    return text


SAMPLES = Path(__file__).parents[2] / "samples"


def _compared(sample):
    """The brokers' segments of a sample that its texts are compared with; of samples of internal topics alone there are none."""
    segments = (path for path in (SAMPLES / sample).rglob("[0-9]*.log") if path.stem.isdigit())
    return sorted(path for path in segments if is_compared(path) and path.stat().st_size)


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir() and _compared(path)))
def test_dumps_made_of_samples(sample, tmp_path):
    root = SAMPLES / sample
    segments = _compared(sample)
    if sample == "damaged":
        segments = [path for path in segments if path.parent.parent.name in ("batch-removed", "empty-log")]
    texts = []
    for number, path in enumerate(segments):
        # a text of one tool run holds several segments
        text = tmp_path / f"{number // 3}.txt"
        with text.open("a") as file:
            file.write(printed_as_by_3_9(path))
        texts.append(text)
    copies = alone(root, [str(path.relative_to(root)) for path in segments], tmp_path / "copies")
    printed, own = audit(*dict.fromkeys(texts)), audit(*copies)
    # without records a text cannot show that they are repeated: the raised epoch is all there is
    repeated = {(finding.topic, finding.offset) for finding in own.findings if finding.code == "KA704"}
    raised = [finding for finding in printed.findings if finding.code == "KA203"]
    alike = [finding for finding in raised if (finding.topic, finding.offset) in repeated]
    assert len(alike) == len(repeated)
    assert found(printed) - found(replace(printed, findings=alike)) == found(own)
    assert printed.summary.batches == own.summary.batches > 0
    assert printed.summary.records == own.summary.records


def test_lines_taken_out_of_a_text_are_not_missing_offsets(tmp_path):
    path = SAMPLES / "clean" / "mix-ct-0" / "00000000000000000000.log"
    lines = printed_as_by_3_9(path).splitlines(keepends=True)
    (tmp_path / "cut.txt").write_text("".join([*lines[:40], *lines[45:]]))
    result = audit(tmp_path / "cut.txt")
    assert not [finding for finding in result.findings if finding.severity >= Severity.WARNING]
    assert any("goes from byte" in item.reason for item in result.not_audited)
    # where the bytes follow one another and the offsets do not, the log itself has a hole
    first, behind = (int(re.findall(r"position: (\d+)", lines[number])[0]) for number in (40, 45))
    closed = [
        re.sub(r"position: (\d+)", lambda at: f"position: {int(at[1]) - behind + first}", line) for line in lines[45:]
    ]
    (tmp_path / "hole.txt").write_text("".join([*lines[:40], *closed]))
    (finding,) = [found for found in audit(tmp_path / "hole.txt").findings if found.severity >= Severity.WARNING]
    assert (finding.code, finding.position) == ("KA007", first)


def test_a_text_cut_off_and_a_tool_that_died(tmp_path):
    path = SAMPLES / "clean" / "mix-ct-0" / "00000000000000000000.log"
    text = printed_as_by_3_9(path)
    (tmp_path / "died.txt").write_text(
        text + 'Exception in thread "main" java.lang.IllegalStateException\n\tat kafka.X\n'
    )
    result = audit(tmp_path / "died.txt")
    assert any("is no row: Exception in thread" in item.reason for item in result.not_audited)
    (tmp_path / "torn.txt").write_text(text + "Found 77 invalid bytes at the end of 00000000000000000000.log\n")
    (finding,) = [finding for finding in audit(tmp_path / "torn.txt").findings if finding.severity >= Severity.WARNING]
    assert (finding.code, finding.position) == ("KA002", path.stat().st_size)


def test_batches_nobody_names_take_the_names_given(tmp_path):
    path = SAMPLES / "clean" / "mix-ct-0" / "00000000000000000000.log"
    raw, text = tmp_path / "copied.bin", tmp_path / "shown.txt"
    raw.write_bytes(path.read_bytes())
    text.write_text("".join(printed_as_by_3_9(path).splitlines(keepends=True)[2:]))
    for given in (raw, text):
        options = ScanOptions([str(given)], jobs=1, topics=("orders",), partitions=(7,))
        result = local.scan(options, SilentProgress())
        assert [(part.topic, part.partition) for part in result.partitions] == [("orders", 7)]
        assert result.summary.batches == 131


def test_texts_of_several_brokers_stay_apart(tmp_path):
    path = SAMPLES / "clean" / "mix-ct-0" / "00000000000000000000.log"
    for broker in ("b1", "b2"):
        (tmp_path / f"{broker}.txt").write_text(printed_as_by_3_9(path))
    result = audit(tmp_path / "b1.txt", tmp_path / "b2.txt")
    assert [part.replica for part in result.partitions] == ["b1.txt", "b2.txt"]
    assert not [finding for finding in result.findings if finding.severity >= Severity.WARNING]
