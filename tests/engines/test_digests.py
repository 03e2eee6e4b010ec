"""The digests of a report are those of a fingerprint and of their definition, on both engines, wherever a log is cut."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaudit.diff.fingerprint.reading import FingerprintTask, Rows, read_fingerprint
from kaudit.engines import local as local_engine
from kaudit.engines.fingerprints import fingerprint
from kaudit.engines.progress import SilentProgress
from kaudit.model.digests import ALGORITHM, LEAF_OFFSETS, MOST_RANGES, ranges_each
from kaudit.model.replicas import Replica
from kaudit.scanning.options import ScanOptions
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.engines.conftest import Engine
from tests.engines.recorded import CAPTURES, ORACLES, SAMPLES
from tests.logs import Batch, Log
from tests.partition.test_digests import Held, expected

ROOT = Path(__file__).parents[2]


ON_ARROW = pytest.param("arrow", marks=pytest.mark.spark)


@pytest.fixture
def arrow(arrow_session):
    from kaudit.spark import engine as spark_engine

    return Engine(spark_engine)


@pytest.fixture(params=["local", ON_ARROW, pytest.param("spark", marks=pytest.mark.jvm)])
def each_engine(request):
    return request.getfixturevalue(request.param)


def held(digest):
    """What both name, in the same form."""
    ranges = digest.ranges[0] if isinstance(digest.ranges, list) and digest.ranges else digest.ranges or None
    return digest.start_offset, digest.end_offset, digest.batches, digest.digest, ranges, digest.damaged


def fingerprints(path):
    """The fingerprint of each partition replica under a path, of what the log cleaner has processed too."""
    directories = discover([str(path)]).partitions
    rows = Rows(most_ranges=ranges_each(len(directories)), cleaned=True)
    return {
        (directory.topic, directory.partition, directory.replica): held(
            read_fingerprint(FingerprintTask(directory, rows), ScanOptions([str(path)]), open_segment).fingerprint
        )
        for directory in directories
    }


def named(result):
    return {(entry.topic, entry.partition, entry.replica): held(entry) for entry in result.digests.partitions}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("engine_name", ["local", ON_ARROW])
def test_samples(request, engine_name, name):
    path = ROOT / "samples" / name
    if not list(path.glob("**/*.log")):
        return
    found = request.getfixturevalue(engine_name).scan(path, digests=True, chunk_bytes=20_000)
    assert named(found) == fingerprints(path)


@pytest.mark.parametrize("name", CAPTURES)
def test_captures(local, evidence, name):
    path = evidence.capture(name)
    assert named(local.scan(path, digests=True)) == fingerprints(path)


@pytest.mark.parametrize("version", ORACLES)
def test_oracles(local, evidence, version):
    path = evidence.oracle(version, "logdir")
    assert named(local.scan(path, digests=True, chunk_bytes=100_000)) == fingerprints(path)


def test_the_command_writes_the_same_digest(each_engine, evidence):
    path = evidence.oracle("2.8.2", "logdir") / "main"
    digests = each_engine.scan(path, digests=True).digests
    written = fingerprint(ScanOptions([str(path)], jobs=1), Replica("here", str(path)), SilentProgress())
    assert digests.algorithm == ALGORITHM
    by_key = {entry.key: entry for entry in digests.partitions}
    plain = [entry for entry in written.partitions if entry.start_offset == by_key[entry.key].start_offset]
    left = {entry.topic for entry in written.partitions} - {entry.topic for entry in plain}
    assert left == {"s39-compacted", "s39c-compacted-txn"}  # a fingerprint begins behind what the cleaner has processed
    assert [held(by_key[entry.key]) for entry in plain] == [held(entry) for entry in plain]


def log_of(counts: list[tuple[int, int]], first: int) -> Log:
    """A log of batches of so many records, each after a gap of so many offsets; epochs ascend."""
    log = Log(next_offset=first)
    for number, (count, gap) in enumerate(counts):
        log.skip(gap)
        log.append(Batch(count=count, payload=b"", leader_epoch=number // 7))
    return log


def definition(log: Log) -> Held:
    """What a digest is of, from the bytes of the batches."""
    return [
        (batch.base_offset, batch.last_offset, batch.leader_epoch, int.from_bytes(batch.encode()[17:21], "big"))
        for batch in log.batches
    ]


BATCHES = st.lists(
    st.tuples(st.integers(1, 700), st.sampled_from((0, 0, 0, 0, 1, 1500, 70_000, 1 << 33))), min_size=1, max_size=50
)


@pytest.mark.spark
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BATCHES, st.integers(0, 5000), st.integers(150, 9000), st.sets(st.integers(0, 49)))
def test_a_log_cut_anywhere(arrow, counts, first, chunk_bytes, rolls):
    log = log_of(counts, first)
    starts = tuple(batch.base_offset for number, batch in enumerate(log.batches) if number in rolls)
    with tempfile.TemporaryDirectory() as folder:
        log.write(Path(folder, "orders-0"), segment_starts=starts)
        options = ScanOptions([folder], jobs=1, digests=True, chunk_bytes=chunk_bytes)
        for engine in (local_engine, arrow.module):
            (found,) = engine.scan(options, SilentProgress()).digests.partitions
            batches = definition(log)
            whole = expected(batches, 0, max(1 << log.next_offset.bit_length(), LEAF_OFFSETS))
            assert found.digest == (whole or b"").hex()
            assert (found.start_offset, found.end_offset) == (log.batches[0].base_offset, log.next_offset)
            assert found.batches == len(log.batches)
            ranges = found.ranges
            assert len(ranges.digests) in range(1, MOST_RANGES + 1)
            for at, digest in enumerate(ranges.digests):
                of_range = expected(batches, ranges.first_offset + at * ranges.width, ranges.width)
                assert digest == (None if of_range is None else of_range.hex())


def test_nothing_is_named_unless_it_is_asked_for(local):
    path = ROOT / "samples" / "duplicates"
    result = local.scan(path)
    assert result.digests is None
    assert "digest" not in str(local.documents(path))


def test_batches_below_the_log_start_offset_were_not_judged(local, tmp_path):
    log = log_of([(10, 0)] * 9, 0)
    log.write(tmp_path / "orders-0")
    (found,) = local.scan(tmp_path, digests=True, log_start_offset=35).digests.partitions
    judged = [batch for batch in definition(log) if batch[1] >= 35]
    assert (found.start_offset, found.end_offset, found.batches) == (35, 90, len(judged))
    assert found.digest == (expected(judged, 0, LEAF_OFFSETS) or b"").hex()


@pytest.mark.parametrize("engine_name", ["local", ON_ARROW])
def test_what_could_not_be_read_has_no_digest(request, engine_name, tmp_path, monkeypatch):
    log_of([(10, 0)] * 9, 0).write(tmp_path / "orders-0", segment_starts=(40,))
    log_of([(10, 0)] * 2, 0).write(tmp_path / "orders-1")
    refused, real = str(tmp_path / "orders-0" / f"{40:020d}.log"), os.open

    def guarded(path, *rest, **more):
        if str(path) == refused:
            raise PermissionError(13, "Permission denied", refused)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", guarded)
    result = request.getfixturevalue(engine_name).scan(tmp_path, digests=True)
    assert [(entry.topic, entry.partition) for entry in result.digests.partitions] == [("orders", 1)]
    assert any(entry.reason == "no digest: not all of it could be read" for entry in result.not_audited)
    assert result.incomplete


def test_a_text_of_a_log_has_no_digest(local, evidence):
    text = evidence.oracle("2.8.2", "dumps") / "segments-deep.txt"
    result = local.scan(text, digests=True)
    assert result.digests.partitions == []
    assert any(entry.reason.startswith("no digest: a text") for entry in result.not_audited)


@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False)])
def test_a_state_without_digests_is_read_again_and_one_with_them_keeps_them(each_engine, tmp_path, first, second):
    log_of([(300, 0)] * 30, 0).write(tmp_path / "logs" / "orders-0", segment_starts=(3000, 6000))
    state = str(tmp_path / "state")
    paths = [tmp_path / "logs"]
    full = each_engine.scan(*paths, digests=True).digests
    each_engine.scan(*paths, state=state, digests=first)
    again = each_engine.scan(*paths, state=state, digests=second)
    assert again.digests == (full if second else None)
    assert again.state.unchanged == (0 if second else 3)
    assert (again.state.notice is not None) is second
    third = each_engine.scan(*paths, state=state, digests=True)
    assert (third.digests, third.state.unchanged) == (full, 3)
