"""KA401 to KA406 on small logs and histories written for the purpose, and on evidence that is damaged or missing."""

import gc
import json
import os
import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import UsageError
from kaudit.listings.query import Query
from kaudit.model.severity import Confidence, Severity
from kaudit.scanning.options import ScanOptions
from tests.logs import BASE_TIMESTAMP, Log, data

DAY_MS = 86_400_000


def scan(path, **options):
    return local.scan(ScanOptions(paths=[str(path)], jobs=1, **options), SilentProgress())


def of(result, prefix="KA4"):
    return [finding for finding in result.findings if finding.code.startswith(prefix)]


LATER_MS = BASE_TIMESTAMP + DAY_MS
"""The history ends long after the logs."""


def history(path, *starts, broker=1, version=1, at_ms=LATER_MS):
    """Save blocks as a client read them at this time, None: without times."""
    lines = [
        {"version": version, "broker": broker, "block_start": str(start), "block_end": str(start + 999)}
        | ({} if at_ms is None else {"at_ms": at_ms})
        for start in starts
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def log(tmp_path):
    """One batch of each of four producers."""
    written = Log()
    for producer_id in (5, 999, 1000, 7000):
        written.append(data(producer_id, 0, 0))
    return written.write(tmp_path / "data" / "t-0")


def date_files(log: Path, at_ms: int) -> None:
    """Give the segments the time at which a broker wrote them last."""
    for segment in log.glob("*.log"):
        os.utime(segment, (at_ms / 1000, at_ms / 1000))


@pytest.mark.parametrize("by_broker", [False, True])
def test_by_a_clients_timestamp_alone_an_id_was_only_possibly_in_use(tmp_path, by_broker):
    written = Log()
    written.append(replace(data(7000, 0, 0), attributes=8 if by_broker else 0))  # LogAppendTime
    written.write(tmp_path / "data" / "t-0")
    (found,) = of(scan(tmp_path / "data", blocks=history(tmp_path / "blocks", 0, 1000)))
    expected = (Severity.ERROR, Confidence.CERTAIN) if by_broker else (Severity.WARNING, Confidence.POSSIBLE)
    assert (found.severity, found.confidence) == expected
    assert found.evidence["older_by_client"] is not by_broker
    assert ("client's timestamp alone" in found.message) is not by_broker


def test_an_id_beyond_a_complete_history_is_an_error(log, tmp_path):
    date_files(log, BASE_TIMESTAMP + 1000)
    (found,) = of(scan(log, blocks=history(tmp_path / "blocks", 0, 1000)))
    assert (found.code, found.severity, found.confidence) == ("KA401", Severity.ERROR, Confidence.CERTAIN)
    assert (found.producer_id, found.producer_epoch, found.offset, found.topic) == (7000, 0, 3, "t")
    assert found.evidence["next_block"] == {"start": 2000, "end": 2999}
    assert found.evidence["block_below"]["start"] == 1000
    assert "the next block is 2000..2999" in found.message


def test_an_incomplete_history_only_warns_and_not_of_ids_before_it(log, tmp_path):
    (found,) = of(scan(log, blocks=history(tmp_path / "blocks", 1000, 2000)))
    assert (found.producer_id, found.severity) == (7000, Severity.WARNING)
    assert found.confidence is not Confidence.CERTAIN


def not_checked(result):
    return [note.reason for note in result.not_audited if note.reason.endswith("not checked (KA401)")]


@pytest.mark.parametrize("starts", [(0, 1000), (1000, 2000)])
def test_a_history_without_times_does_not_say_where_it_ends(log, tmp_path, starts):
    result = scan(log, blocks=history(tmp_path / "blocks", *starts, at_ms=None))
    assert of(result) == []
    assert not_checked(result) == [
        "the block history does not say when it ends: 1 producer id beyond its last block was not checked (KA401)"
    ]


def test_ids_first_seen_after_the_end_are_counted_with_its_time_and_place(log, tmp_path):
    result = scan(log, blocks=history(tmp_path / "blocks", 0, at_ms=BASE_TIMESTAMP))
    assert of(result) == []
    (reason,) = not_checked(result)
    assert reason == (
        "the block history ends at 2023-11-14T22:13:20.000Z (line 1): 2 producer ids first seen later "
        "were not checked (KA401)"
    )
    assert not result.incomplete


@pytest.mark.parametrize(("written_after_ms", "reported"), [(0, [1000, 7000]), (60_000, [])])
def test_the_time_of_a_file_shows_that_an_id_was_used_before_the_history_ended(
    log, tmp_path, written_after_ms, reported
):
    # the client's timestamps are too near the end: the ids may have been granted two minutes after them
    (segment,) = Path(log).glob("*.log")
    os.utime(segment, ns=(0, (BASE_TIMESTAMP + written_after_ms) * 1_000_000))
    result = scan(log, blocks=history(tmp_path / "blocks", 0, at_ms=BASE_TIMESTAMP + 15_000))
    assert [(found.producer_id, found.severity) for found in of(result)] == [(id_, Severity.ERROR) for id_ in reported]
    assert len(not_checked(result)) == (not reported)


def test_gaps_between_ids_and_blocks_held_by_others_are_normal(log, tmp_path):
    assert of(scan(log, blocks=history(tmp_path / "blocks", *range(0, 8000, 1000)))) == []


def test_a_foreign_history_does_not_bury_the_report(tmp_path):
    written = Log()
    for producer_id in range(5000, 6500):
        written.append(data(producer_id, 0, 0))
    log = written.write(tmp_path / "t-0")
    result = scan(log, blocks=history(tmp_path / "blocks", 0))
    assert len([finding for finding in of(result) if finding.code == "KA401"]) == 1000
    assert any("500 more producer ids outside every known block" in note.reason for note in result.not_audited)


def test_ids_granted_twice_are_named_with_those_in_the_log(log, tmp_path):
    first = json.dumps({"version": 1, "broker": 1, "block_start": "0", "block_end": "999"})
    second = json.dumps({"version": 1, "broker": 2, "block_start": "0", "block_end": "999"})
    lines = [{"data": first, "version": 1, "mzxid": 5}, {"data": second, "version": 2, "mzxid": 6}]
    file = tmp_path / "blocks"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (found,) = of(scan(log, blocks=str(file)), "KA402")
    assert (found.evidence["earlier"]["broker"], found.evidence["later"]["broker"]) == (1, 2)
    assert (found.evidence["seen"], found.evidence["seen_ids"]) == (2, [5, 999])
    assert found.file == f"{file}:2"
    ids = {
        producer.producer_id: [grant.broker for grant in producer.grants]
        for producer in local.producers(
            ScanOptions(paths=[str(log)], jobs=1, blocks=str(file)), SilentProgress(), Query()
        ).producers
    }
    assert ids == {5: [1, 2], 999: [1, 2], 1000: [], 7000: []}


def test_values_of_another_form_and_lines_of_none(log, tmp_path):
    file = tmp_path / "blocks"
    history(file, *range(0, 8000, 1000))
    with file.open("a") as lines:
        lines.write('{"data": "garbage", "version": 9, "mzxid": 77}\n')
        lines.write("what is this\n")
    result = scan(log, blocks=str(file))
    (found,) = of(result)
    assert (found.code, found.severity, found.file) == ("KA403", Severity.WARNING, f"{file}:9")
    assert "not JSON" in found.message
    assert (f"{file}:10", "neither JSON nor a line of zkCli's stat") in {
        (note.path, note.reason) for note in result.not_audited
    }


def woven(first, second, count=6):
    """Two writers, each with its own payload, taking turns."""
    written = Log()
    for step in range(count):
        written.append(data(1, 0, first + step, payload=b"a"))
        written.append(data(1, 0, second + step, payload=b"b"))
    return written


def test_two_writers_are_one_finding_in_place_of_many(tmp_path):
    log = woven(0, 500).write(tmp_path / "t-0")
    found = [finding for finding in scan(log).findings if finding.severity is Severity.ERROR]
    assert [finding.code for finding in found] == ["KA404"]
    (shared,) = found
    assert shared.confidence is Confidence.CERTAIN
    assert (shared.producer_id, shared.offset) == (1, 1)
    assert [chain["first_sequence"] for chain in shared.evidence["chains"]] == [0, 500]
    assert shared.evidence["changes"] == 11
    assert sum(shared.evidence["replaces"].values()) >= 3


def test_two_writers_from_the_same_sequence_on_are_likely(tmp_path):
    log = woven(0, 0).write(tmp_path / "t-0")
    (shared,) = of(scan(log))
    assert (shared.code, shared.confidence) == ("KA404", Confidence.LIKELY)


def test_one_producer_with_a_gap_and_repeats_is_not_two(tmp_path):
    written = Log()
    sent = [written.append(data(1, 0, sequence)) for sequence in (0, 1, 2, 10, 11, 12)]
    for batch in sent[1:5]:
        written.append(batch, keep_time=True)
    found = scan(written.write(tmp_path / "t-0")).findings
    codes = {finding.code for finding in found}
    assert "KA404" not in codes
    assert "KA104" in codes


def test_a_client_that_counts_requests_is_not_two(tmp_path):
    written = Log()
    for request in range(12):
        written.append(data(1, 0, request, 2))
    codes = [finding.code for finding in scan(written.write(tmp_path / "t-0")).findings]
    assert "KA404" not in codes
    assert "KA107" in codes


def test_few_or_busy_or_rare_producers_are_no_flood(tmp_path):
    few, busy, rare = Log(), Log(), Log()
    for producer_id in range(499):
        few.append(data(producer_id, 0, 0))
    for producer_id in range(500):
        for sequence in range(11):
            busy.append(data(producer_id, 0, sequence))
    for producer_id in range(500):
        rare.clock += DAY_MS // 10
        rare.append(data(producer_id, 0, 0))
    for number, written in enumerate((few, busy, rare)):
        written.write(tmp_path / f"t-{number}")
    assert of(scan(tmp_path)) == []


def test_a_partition_leaves_nothing_for_a_search_for_garbage_that_was_read_of_it(tmp_path):
    """Such a search is rare, and of each partition whose producers begin anew 16 MiB may be held."""
    for number in range(8):
        shutil.copytree(
            Path(__file__).parents[2] / "samples" / "producer-ids" / "flood-0", tmp_path / f"flood-{number}"
        )
    gc.disable()
    tracemalloc.start()
    try:
        scan(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak < 64 << 20


@pytest.fixture
def cluster(evidence, tmp_path):
    """A copy of the capture that a test may break: logs of both brokers and ZooKeeper's files."""
    return shutil.copytree(evidence.capture("zk-pid-blocks"), tmp_path / "cluster")


def test_a_torn_zookeeper_log_is_reported_and_the_rest_used(cluster):
    newest = cluster / "zk" / "version-2" / "log.ca"
    content = newest.read_bytes().rstrip(b"\0")
    newest.write_bytes(content[:-5])
    result = scan(cluster / "logdirs", zookeeper=str(cluster / "zk"))
    assert of(result, "KA401") == []
    assert [note.path for note in result.not_audited if "log.ca" in note.path] == [str(newest)]
    assert not result.incomplete


def test_snapshots_without_logs_are_reported_and_used(cluster):
    for path in (cluster / "zk" / "version-2").glob("log.*"):
        path.unlink()
    result = scan(cluster / "logdirs", zookeeper=str(cluster / "zk"))
    assert any("no transaction log" in note.reason for note in result.not_audited)
    # Blocks 5000 and 6000 were granted between two snapshots, and 5000..6079 were used: a warning, they may be missing.
    found = of(result, "KA401")
    assert {finding.severity for finding in found} == {Severity.WARNING}
    assert [finding.producer_id for finding in found if finding.producer_id not in range(5000, 6080)] == []
    assert len(found) == 1000
    assert any(note.reason.startswith("80 more producer ids outside every known block") for note in result.not_audited)


def test_a_zookeeper_file_without_permission_makes_the_audit_incomplete(cluster, monkeypatch):
    import mmap

    def refuse(*arguments, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(mmap, "mmap", refuse)
    result = scan(cluster / "logdirs", zookeeper=str(cluster / "zk"))
    assert result.incomplete
    assert {note.reason for note in result.not_audited if note.unreadable} == {"Permission denied"}


def test_an_ensemble_without_producer_ids_is_reported(evidence, log, tmp_path):
    place = tmp_path / "zk" / "version-2"
    place.mkdir(parents=True)
    shutil.copy(evidence.oracle("3.9.1", "logdir") / "main" / "meta.properties", place)
    with pytest.raises(UsageError, match="no ZooKeeper log or snapshot there"):
        scan(log, zookeeper=str(tmp_path / "zk"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"zookeeper": "nowhere"}, "--zookeeper nowhere: no such directory"),
        ({"blocks": "nowhere"}, "--blocks nowhere: No such file or directory"),
        ({"metadata": "nowhere"}, "--metadata nowhere: no such directory"),
    ],
)
def test_sources_that_do_not_exist_are_usage_errors(log, option, message):
    with pytest.raises(UsageError, match=message):
        scan(log, **option)


def test_sources_without_a_block_are_usage_errors(log, tmp_path):
    empty = tmp_path / "blocks"
    empty.write_text("nothing here\n")
    with pytest.raises(UsageError, match="no line names a block of producer ids"):
        scan(log, blocks=str(empty))
    with pytest.raises(UsageError, match="no segment of __cluster_metadata-0 there"):
        scan(log, metadata=str(log))
