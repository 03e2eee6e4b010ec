"""Recorded brokers with remote storage: local and remote segments together are what a consumer reads, and a scan's account says so.

The files are read here by their headers alone, apart from kaudit.
"""

import base64
import json
import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import kaudit
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.live_brokers.accidents.judged import copied, recorded
from tests.live_brokers.accidents.truth import truths

NAMES = [name for name in truths() if name.startswith("tiered")]
CONTROL = 0x20


def offsets_of(segment: Path) -> Iterator[tuple[int, bool]]:
    """Each offset of a segment, and whether a marker has it."""
    data, position = segment.read_bytes(), 0
    while position < len(data):
        base, size = struct.unpack_from(">qi", data, position)
        (attributes,) = struct.unpack_from(">h", data, position + 21)
        (last_delta,) = struct.unpack_from(">i", data, position + 23)
        yield from ((base + delta, bool(attributes & CONTROL)) for delta in range(last_delta + 1))
        position += 12 + size


UPDATE = re.compile(rb"\x01\x01\x00\x07orders.{20}\x00(?P<id>.{16})\x00.{12}(?P<custom>.)", re.DOTALL)


def readable(metadata: Path) -> set[str]:
    """The ids whose newest update in __remote_log_metadata is COPY_SEGMENT_FINISHED: its records are not compressed."""
    data = metadata.read_bytes()
    states = {
        base64.urlsafe_b64encode(found["id"]).decode().rstrip("="): data[found.end() + max(found["custom"][0] - 1, 0)]
        for found in UPDATE.finditer(data)
    }
    return {segment_id for segment_id, state in states.items() if state == 1}


@pytest.mark.parametrize("name", NAMES)
def test_local_and_remote_segments_are_what_a_consumer_reads_and_the_account_names_the_rest(name):
    place = recorded(name)
    read = 0
    for moment in truths()[name].moments:
        there = place / moment.name
        # the brokers went on copying while their directories were copied one after another
        ids = [readable(there / broker / "__remote_log_metadata-0" / f"{0:020d}.log") for broker in ("b1", "b4")]
        remote = dict(
            pair
            for segment in (place / f"remote-{moment.name}").rglob("*.log")
            if segment.stem[21:] in max(ids, key=len)
            for pair in offsets_of(segment)
        )
        account = {each.replica: each for each in kaudit.scan(there).coverage if each.topic == "orders"}
        assert set(account) == {"b1", "b4"}
        consumed = place / f"consumed-{moment.name}-orders.json"
        for replica, own in account.items():
            local = dict(pair for segment in there.glob(f"{replica}/orders-0/*.log") for pair in offsets_of(segment))
            end = own.log_end_offset
            assert end is not None
            assert own.remote is not None
            everywhere = remote | local
            markers = {offset for offset, is_marker in everywhere.items() if is_marker}
            begin = own.log_start_offset
            absent = set(range(begin, end)) - set(everywhere)
            said = {offset for hole in own.ranges for offset in range(hole.first_offset, (hole.last_offset or 0) + 1)}
            assert said == absent
            assert own.offsets.get("remote", 0) == len(
                {offset for offset in remote if begin <= offset < min(local, default=end)}
            )
            assert own.remote.also_local == len(set(remote) & set(local))
            if consumed.exists():  # of a stopped cluster nothing is read
                offsets = {offset for offset, _ in json.loads(consumed.read_bytes())["read_uncommitted"]}
                # the checkpoint of the log start is written once a minute: consumers may begin later
                assert begin <= min(offsets)
                assert offsets == {offset for offset in set(everywhere) - markers if offset >= min(offsets)}
                read += len(offsets)
    assert read


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_log_read_from_both_places_has_the_records_that_a_consumer_reads(name):
    place = recorded(name)
    for moment in truths()[name].moments:
        consumed = place / f"consumed-{moment.name}-orders.json"
        if not consumed.exists():
            continue
        offsets = {offset for offset, _ in json.loads(consumed.read_bytes())["read_uncommitted"]}
        location = str(place / f"remote-{moment.name}" / "kafka-tiered-storage")
        result = scan(ScanOptions([str(place / moment.name / "b1")], remote=location, jobs=1), SilentProgress())
        (account,) = [each for each in result.coverage if each.topic == "orders"]
        assert account.log_end_offset is not None
        missing = {
            offset for hole in account.ranges for offset in range(hole.first_offset, (hole.last_offset or 0) + 1)
        }
        older = min(offsets) - account.log_start_offset  # see above; there are no markers
        assert older >= 0
        assert account.offsets["data"] == len(offsets) + older
        assert missing.isdisjoint(offsets)
        from_start = account.log_end_offset - account.log_start_offset
        assert older + len(offsets) + account.offsets.get("marker", 0) + len(missing) == from_start
        found = {
            (each.code, each.offset, each.last_offset) for each in result.findings if each.severity is Severity.ERROR
        }
        lost = {("KA008", hole.first_offset, hole.last_offset) for hole in account.ranges}
        # what is missing there is an error if it cannot have expired: written within five seconds of a producer's newest record
        without_producers = {("KA502", offset, None) for offset in forgotten(place / moment.name)}
        assert found - without_producers == lost
        assert without_producers or not name.startswith("tiered-fail-over")


FORGOTTEN = re.compile(r"partition=orders-0\] Wrote producer snapshot at offset ([1-9]\d*) with 0 producer ids")


def forgotten(moment: Path) -> set[int]:
    """Offsets at which b1, a follower that rebuilt its log from remote storage, wrote empty snapshots (apache/kafka#14652)."""
    said = {int(found[1]) for found in FORGOTTEN.finditer((moment / "server-b1.log").read_text(encoding="utf-8"))}
    return {offset for offset in said if (moment / "b1" / "orders-0" / f"{offset:020d}.snapshot").exists()}


def lines_of(place: Path) -> list[LogEvent]:
    return [
        event
        for log in sorted(place.glob("server-b*.log"))
        for event in read_events([log.read_bytes()], "server", path=log.name)
        if event.topic == "orders"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_brokers_name_the_copies_and_where_the_logs_on_the_disks_begin(name):
    """Held against the raw metadata, the names of files, and the lines' own words."""
    place = recorded(name)
    failed = 0
    for moment in truths()[name].moments:
        here = place / moment.name
        events = lines_of(here)
        copied = {
            match[1]
            for event in events
            if event.pattern == "remote-segment-copied" and (match := re.search(r", id=([\w-]{22})", event.text))
        }
        ids = [readable(here / broker / "__remote_log_metadata-0" / f"{0:020d}.log") for broker in ("b1", "b4")]
        assert copied >= max(ids, key=len)
        for broker in ("b1", "b4"):
            first = min(int(log.stem) for log in (here / broker / "orders-0").glob("*.log"))
            moves = [
                event.offset or 0
                for event in events
                if event.event is LogEventKind.LOCAL_LOG_START_MOVED and event.path == f"server-{broker}.log"
            ]
            # deleted by hand; by a broker that was restarted meanwhile, or that rebuilt its log from remote storage
            unsaid = moment.name in {"deleted-here", "failed-over", "copied-by-another", "deleted"}
            assert first in {0, *moves} or unsaid
        text = "".join(log.read_text() for log in here.glob("server-b*.log"))
        own = [event for event in events if event.event is LogEventKind.REMOTE_COPY_FAILED]
        said = re.findall(r"Error occurred while copying log segments of partition: \S+:orders-0", text)
        assert len(own) == len(said)
        assert all("RemoteStorageException" in event.text or "Exception" in event.text for event in own)
        failed += len(own)
    assert failed or "holes" not in name


def test_without_metadata_lines_say_how_far_copies_had_come(tmp_path):
    place = copied("tiered-holes", tmp_path) / "copies-failed"
    for metadata in place.glob("*/__remote_log_metadata-0"):
        shutil.rmtree(metadata)
    last = max(
        int(name)
        for log in place.glob("server-b*.log")
        for name in re.findall(r"Copied (\d{20})\.log", log.read_text())
    )
    (said, *_) = [
        each.reason for each in kaudit.scan(place).not_audited if "no record of __remote_log_metadata" in each.reason
    ]
    assert re.search(rf"is not known \(copies had reached offset {last} by server-b\d\.log:\d+\)$", said)


@pytest.mark.parametrize("name", ["tiered", "tiered-4.3"])
def test_the_topics_configuration_says_that_what_the_disk_lacks_is_in_remote_storage(name, tmp_path):
    """Recorded: `remote.storage.enable` in __cluster_metadata, while neither the broker's cache nor __remote_log_metadata was copied."""
    broker = copied(name, tmp_path) / "failed-over" / "b1"
    for other in ("__remote_log_metadata-0", "remote-log-index-cache"):
        shutil.rmtree(broker / other)
    first = min(int(log.stem) for log in (broker / "orders-0").glob("*.log"))
    accounts = []
    for _ in range(2):
        (account,) = [each for each in kaudit.scan(broker).coverage if each.topic == "orders"]
        accounts.append(account.offsets)
        shutil.rmtree(broker / "__cluster_metadata-0", ignore_errors=True)
    assert [own.get("unconfirmed", 0) for own in accounts] == [first, 0]
    assert [own.get("unknown", 0) for own in accounts] == [0, first]


def test_findings_name_the_lines_of_copies_that_failed():
    place = recorded("tiered-holes")
    found = {finding.code: finding for finding in kaudit.scan(place / "deleted-here").findings}
    failed, others = found["KA510"].explanations[0], found["KA511"].explanations
    assert failed.cause == "the broker could not copy segments to remote storage"
    assert failed.speaks_for[0].startswith("server-b1.log:")
    assert failed.cause not in [each.cause for each in others]
