"""Small segments are read together; nothing that is reported shows it."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kaudit.engines.local import scan, timeline
from kaudit.engines.progress import SilentProgress
from kaudit.reading import chunk_summary, small_segments
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.small_segments import apart, join_small
from kaudit.scanning import plan
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.layout import FetchedRange, SegmentFile, TextRange
from tests.crafted_sample import snapshot
from tests.logs import Log, data, marker, record, sealed_records
from tests.timelines import timelines_of

SMALL = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def audited(path, **more):
    options = ScanOptions([str(path)], jobs=1, **more)
    result, histories = scan(options, SilentProgress()), timeline(options, SilentProgress())
    return (
        [finding.to_dict() for finding in result.findings],
        result.summary,
        result.partitions,
        [entry.to_dict() for entry in result.not_audited],
        timelines_of(histories.histories),
    )


def _append(log, sequences, payload, draw):
    who, count = draw(st.integers(-1, 2)), draw(st.integers(1, 3))
    what = draw(st.sampled_from(("data",) * 6 + ("skip", "again", "lost", "marker")))
    if what == "skip":
        log.skip(draw(st.integers(1, 4)))
    if what == "marker":
        log.append(marker(max(who, 0), 0))
    elif what == "again" and log.batches:
        log.append(log.batches[-1], keep_time=True)
    elif who < 0:
        log.append(data(-1, -1, -1, count, payload=payload))
    else:
        sequences[who] += 5 if what == "lost" else 0
        log.append(data(who, 0, sequences[who], count, payload=payload))
        sequences[who] += count


@st.composite
def segmented_logs(draw):
    """Batches of three producers, some with faults, and where segments begin: mostly with the name they should have.

    Snapshots lie at some batches: what was written before, or a batch less.
    """
    log = Log()
    sequences = [0, 0, 0]
    for number in range(draw(st.integers(2, 25))):
        _append(log, sequences, b"%d" % number, draw)
    bounds = sorted({0, *draw(st.lists(st.integers(0, len(log.batches)), max_size=12)), len(log.batches)})
    segments = []
    for first, stop in pairwise(bounds):
        base = log.batches[first].base_offset - draw(st.sampled_from((0,) * 9 + (1,)))
        content = bytearray(b"".join(batch.encode() for batch in log.batches[first:stop]))
        damage = draw(st.sampled_from(("none",) * 12 + ("flip", "cut", "zeros", "empty")))
        at = draw(st.integers(0, len(content) - 1))
        if damage == "flip":
            content[at] ^= 4
        elif damage == "cut":
            del content[at:]
        elif damage == "zeros":
            content += bytes(draw(st.integers(1, 70)))
        elif damage == "empty":
            content.clear()
        segments.append((max(base, 0), bytes(content)))
    files = {f"{base:020d}.log": content for base, content in segments}
    for number in draw(st.lists(st.integers(0, len(log.batches) - 1), max_size=6)):
        known = log.batches[: max(number - draw(st.integers(0, 1)), 0)]
        files[f"{log.batches[number].base_offset:020d}.snapshot"] = snapshot(entries(known))
    return files


def entries(batches):
    """What a snapshot says of data that no marker followed."""
    newest = {batch.producer_id: batch for batch in batches if batch.producer_id >= 0 and batch.control is None}
    return [
        (who, 0, batch.sequence + batch.count - 1, batch.last_offset, batch.count - 1, batch.timestamp, -1, -1)
        for who, batch in newest.items()
    ]


@SMALL
@given(segmented_logs(), st.sampled_from((None, 300)), st.sampled_from((Depth.CRC, Depth.RECORDS)))
def test_segments_read_together_give_what_each_gives_by_itself(tmp_path_factory, files, chunk_bytes, depth):
    directory = tmp_path_factory.mktemp("small") / "t-0"
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    together = audited(directory, chunk_bytes=chunk_bytes, depth=depth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_segments, "SMALL_BYTES", -1)
        assert audited(directory, chunk_bytes=chunk_bytes, depth=depth) == together


ENCODED = [data(7, 0, number, base_offset=number, payload=b"payload").encode() for number in range(6)]


@pytest.mark.parametrize(
    ("segments", "codes"),
    [
        ({0: ENCODED[:2], 2: ENCODED[2:4], 4: ENCODED[4:]}, set()),
        # a batch of which one file has the first half and the next one the rest, in front of its own first batch
        ({0: [*ENCODED[:1], ENCODED[1][:40]], 2: [ENCODED[1][40:], *ENCODED[2:4]], 4: ENCODED[4:]}, {"KA002", "KA003"}),
        ({0: ENCODED[:2], 2: [*ENCODED[2:4], ENCODED[4][:-1]], 4: [ENCODED[4][-1:], *ENCODED[5:]]}, {"KA002", "KA003"}),
        # a segment that is named after another offset
        ({0: ENCODED[:2], 1: ENCODED[2:4], 4: ENCODED[4:]}, {"KA006"}),
        ({0: ENCODED[:2], 3: ENCODED[2:4], 4: ENCODED[4:]}, {"KA006"}),
        # an offset is missing between two
        ({0: ENCODED[:2], 3: ENCODED[3:4], 4: ENCODED[4:]}, {"KA008"}),
        ({0: ENCODED[:1], 2: ENCODED[2:4], 4: ENCODED[4:]}, {"KA008"}),
    ],
)
def test_where_segments_meet_each_gives_what_it_gives_by_itself(tmp_path, monkeypatch, segments, codes):
    directory = tmp_path / "t-0"
    directory.mkdir()
    for base, content in segments.items():
        (directory / f"{base:020d}.log").write_bytes(b"".join(content))
    together = audited(directory)
    monkeypatch.setattr(small_segments, "SMALL_BYTES", -1)
    assert audited(directory) == together
    assert {finding["code"] for finding in together[0] if str(finding["code"]) < "KA100"} == codes


def many_segments(directory, count, **more):
    log = Log()
    for number in range(count):
        log.append(data(7, 0, number, payload=b"x", **more))
    return log.write(directory, segment_starts=tuple(range(count)))


@pytest.fixture
def chunks(monkeypatch):
    """The chunks made, by how many segments each has."""
    made = []
    compress = chunk_summary.compress

    def counting(*arguments, **more):
        rows = compress(*arguments, **more)
        made.append(len({*more["segments"].tolist()}))
        return rows

    monkeypatch.setattr(small_segments, "compress", counting)
    return made


def test_thousands_of_segments_with_a_batch_each_make_few_chunks(tmp_path, chunks):
    many_segments(tmp_path / "t-0", 3000)
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    assert (result.findings, result.summary.segments, result.summary.batches) == ([], 3000, 3000)
    assert chunks == [2999]


def test_one_damaged_segment_is_found_where_it_is(tmp_path):
    directory = many_segments(tmp_path / "t-0", 30)
    path = directory / f"{17:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    (found,) = result.findings
    assert (found.code, found.segment, found.position, found.offset) == ("KA001", path.name, 0, 17)


@pytest.mark.parametrize(
    ("depth", "found_there", "together"),
    [(Depth.CRC, [], [29]), (Depth.RECORDS, [("KA005", f"{17:020d}.log", 0, 17)], [])],
)
def test_records_are_decoded_where_that_is_asked_for(tmp_path, chunks, depth, found_there, together):
    """One record counts a header more than it has, under a CRC that holds: each segment is read by itself then."""
    directory = many_segments(tmp_path / "t-0", 30)
    whole = record(0, None, b"x")
    raw = sealed_records(data(7, 0, 17, base_offset=17), [whole[:-1] + b"\x02"])
    (directory / f"{17:020d}.log").write_bytes(raw)
    result = scan(ScanOptions([str(tmp_path)], jobs=1, depth=depth), SilentProgress())
    assert [(one.code, one.segment, one.position, one.offset) for one in result.findings] == found_there
    assert chunks == together


def test_a_segment_that_vanishes_is_named(tmp_path, monkeypatch):
    directory = many_segments(tmp_path / "t-0", 30)
    from kaudit.engines import local

    planned = plan.plan_jobs

    def then_gone(*arguments):
        jobs = planned(*arguments)
        (directory / f"{17:020d}.log").unlink()
        return jobs

    monkeypatch.setattr(local, "plan_jobs", then_gone)
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    assert [entry.path.rpartition("/")[2] for entry in result.not_audited if entry.unreadable] == [f"{17:020d}.log"]
    assert result.incomplete


def test_a_snapshot_inside_of_a_segment_ends_a_chunk(tmp_path, chunks):
    log = Log()
    for number in range(60):
        log.append(data(7, 0, number))
    directory = log.write(tmp_path / "t-0", segment_starts=tuple(range(0, 60, 2)))
    for offset in (10, 20, 41):
        (directory / f"{offset:020d}.snapshot").write_bytes(snapshot(entries(log.batches[:offset])))
    result = scan(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    assert (chunks, result.findings, result.summary.runs) == ([20, 8], [], 1)


def test_what_contradicts_old_snapshots_is_read_together(tmp_path, monkeypatch):
    """Each snapshot is of two batches before: the log is read again for it, and that not a segment at a time."""
    directory = many_segments(tmp_path / "t-0", 300)
    for offset in range(10, 300):
        stored = (7, 0, offset - 3, offset - 3, 0, 1_700_000_000_000, -1, -1)
        (directory / f"{offset:020d}.snapshot").write_bytes(snapshot([stored]))
    read = []
    original = stream_batches

    def counting(source, where, **more):
        read.append(where.end)
        return original(source, where, **more)

    monkeypatch.setattr(small_segments, "stream_batches", counting)
    together = audited(directory)
    assert sum(finding["code"] == "KA502" for finding in together[0]) == 290
    assert len(read) < 20
    monkeypatch.setattr(small_segments, "SMALL_BYTES", -1)
    assert audited(directory) == together


SMALL_BYTES, TOGETHER_BYTES = 64 << 10, 1 << 20
TEXT, FETCHED = TextRange(0, 10), FetchedRange("localhost:9092", "t", 0, 0, 0, 10)


def files(*sizes):
    """Segments of so many bytes, named after ascending tens; of a pair the second is what replaces some fields."""
    found = []
    for number, each in enumerate(sizes):
        size, more = each if isinstance(each, tuple) else (each, {})
        name = f"{10 * number:020d}.log"
        found.append(SegmentFile(f"/d/{name}", name, 10 * number, size, 0, **more))
    return found


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([], []),
        ([100], [1]),
        ([100, 100, 100], [3]),
        ([SMALL_BYTES, SMALL_BYTES, SMALL_BYTES + 1, SMALL_BYTES], [2, 1, 1]),
        ([SMALL_BYTES] * 17, [16, 1]),  # a mebibyte
        ([*[SMALL_BYTES] * 15, SMALL_BYTES - 1, 1, 1], [17, 1]),
        ([100, 0, 100, 100], [1, 1, 2]),  # an empty one
        ([100, (100, {"text": TEXT}), 100, 100], [1, 1, 2]),
        ([100, (100, {"fetched": FETCHED}), (100, {"fetched": FETCHED})], [1, 1, 1]),
    ],
)
def test_files_that_are_read_together(sizes, groups):
    segments = files(*sizes)
    found = list(small_segments._groups(segments))
    assert [len(group) for group in found] == groups
    assert [file for group in found for file in group] == segments


def specs(*sizes, **more):
    found = []
    for number, file in enumerate(files(*sizes)):
        fields = {"start": 0, "stop": file.size, "log_start_offset": None, **more}
        found.append(ChunkSpec(number, file, end=file.size, verify=True, latest_timestamp=5, **fields))
    return found


def joined(plan, most_bytes=TOGETHER_BYTES, snapshots=()):
    """How many segments each range is of, after joining; what is joined is checked."""
    found = list(join_small(plan, most_bytes, snapshots))
    assert [one for spec in found for one in apart(spec)] == plan
    for spec in found:
        if spec.joined:
            size = spec.file.size + sum(file.size for file in spec.joined)
            assert (spec.start, spec.stop, spec.end) == (0, size, size)
    return [1 + len(spec.joined) for spec in found]


@pytest.mark.parametrize(
    ("plan", "most_bytes", "snapshots", "groups"),
    [
        (specs(100), TOGETHER_BYTES, [], [1]),
        (specs(100, 100, 100, 100), TOGETHER_BYTES, [], [3, 1]),  # the last one may grow
        (specs(SMALL_BYTES, SMALL_BYTES, SMALL_BYTES + 1, SMALL_BYTES, 1), TOGETHER_BYTES, [], [2, 1, 1, 1]),
        (specs(*[SMALL_BYTES] * 18), TOGETHER_BYTES, [], [16, 1, 1]),
        (specs(*[SMALL_BYTES] * 18), 2 * TOGETHER_BYTES, [], [16, 1, 1]),
        (specs(*[100] * 6), 300, [], [3, 2, 1]),
        (specs(*[100] * 6), 299, [], [2, 2, 1, 1]),
        # a state is compared where a segment begins, or within one
        (specs(*[100] * 5), TOGETHER_BYTES, [10, 20], [4, 1]),
        (specs(*[100] * 5), TOGETHER_BYTES, [11], [1, 1, 2, 1]),
        (specs(*[100] * 5), TOGETHER_BYTES, [19], [1, 1, 2, 1]),
        (specs(*[100] * 5), TOGETHER_BYTES, [0, 10, 29], [2, 1, 1, 1]),
        (specs(*[100] * 5), TOGETHER_BYTES, [45], [4, 1]),
        # retention may have left only a part of what lies below the log start offset
        (specs(*[100] * 5, log_start_offset=0), TOGETHER_BYTES, [], [4, 1]),
        (specs(*[100] * 5, log_start_offset=10), TOGETHER_BYTES, [], [1, 3, 1]),
        (specs(*[100] * 5, log_start_offset=11), TOGETHER_BYTES, [], [1, 1, 2, 1]),
        (specs(100, (100, {"text": TEXT}), 100, 100, 100), TOGETHER_BYTES, [], [1, 1, 2, 1]),
        (specs(100, (100, {"fetched": FETCHED}), 100, 100, 100), TOGETHER_BYTES, [], [1, 1, 2, 1]),
        # one in front of the others has been read in part, one among them is not to be read
        ([replace(specs(100, 100)[0], start=50), *specs(*[100] * 4)[1:]], TOGETHER_BYTES, [], [1, 2, 1]),
        ([*specs(*[100] * 6)[:2], *specs(*[100] * 6)[3:]], TOGETHER_BYTES, [], [2, 2, 1]),
    ],
)
def test_ranges_of_small_segments_that_follow_one_another_become_one(plan, most_bytes, snapshots, groups):
    if plan[0].start:
        found = list(join_small(plan, most_bytes, snapshots))
        assert [1 + len(spec.joined) for spec in found] == groups
    else:
        assert joined(plan, most_bytes, snapshots) == groups
