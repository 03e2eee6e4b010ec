"""The remote log that is read from a broker's __remote_log_metadata is what kafka-dump-log printed of the same records."""

import base64
import re
from pathlib import Path

from kaudit.audits.coordinator.group_log import GroupLogReader, GroupRecord, MissingRecords
from kaudit.audits.tiered.remote_log import RemoteLogHistory
from kaudit.formats.internal_topics.record_schemas import parse_framed_record
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.remote_log import STARTED, begun, updated

RECORDED = Path(__file__).parents[2] / "data" / "internal-topics" / "4.4.0"
PRINTED = {
    "id": r"\bid=([\w-]{22})",
    "topic_id": r"topicIdPartition=([\w-]{22}):",
    "topic": r"topicIdPartition=[\w-]{22}:(\w+)-",
    "partition": r"topicIdPartition=[\w-]{22}:\w+-(\d+)",
    "start": r"startOffset=(\d+)",
    "end": r"endOffset=(\d+)",
    "size": r"segmentSizeInBytes=(\d+)",
    "max": r"maxTimestampMs=(\d+)",
    "epochs": r"segmentLeaderEpochs=\{([^}]*)\}",
    "event": r"eventTimestampMs=(\d+)",
    "state": r"state=(\w+)",
}


def printed_segments() -> dict[str, dict[str, str]]:
    """What the tool's lines say of each segment, the later ones over the earlier ones."""
    segments: dict[str, dict[str, str]] = {}
    for line in (RECORDED / f"{REMOTE_LOG}-0.txt").read_text(encoding="utf-8").splitlines():
        said = {name: found[1] for name, form in PRINTED.items() if (found := re.search(form, line)) is not None}
        if "id" in said:
            first = {} if said["id"] in segments else {"started": said["event"]}
            copied = {"copied": said["event"]} if said["state"] == "COPY_SEGMENT_FINISHED" else {}
            segments.setdefault(said["id"], {}).update(said | first | copied)
    return segments


def test_the_remote_log_is_what_kafka_dump_log_printed():
    (directory,) = discover([str(RECORDED / f"{REMOTE_LOG}-0")]).partitions
    reader, history = GroupLogReader(open_segment), RemoteLogHistory()
    reader.follow(directory, [history])
    (log,) = history.logs()
    assert not reader.unreadable
    printed = printed_segments()
    assert len(printed) > 4
    assert [segment.segment_id for segment in log.segments] == list(printed)
    for segment in log.segments:
        said = printed[segment.segment_id]
        assert (segment.topic, segment.topic_id, str(segment.partition)) == (
            said["topic"],
            said["topic_id"],
            said["partition"],
        )
        own = segment.start_offset, segment.end_offset, segment.size, segment.max_timestamp
        assert own == tuple(int(said[name]) for name in ("start", "end", "size", "max"))
        assert ", ".join(f"{epoch}={offset}" for epoch, offset in segment.leader_epochs) == said["epochs"]
        assert segment.state.value == said["state"]
        assert segment.started_timestamp == int(said["started"])
        assert segment.event_timestamp == int(said["event"])
        assert segment.copied_timestamp == (int(said["copied"]) if "copied" in said else None)
        assert segment.is_readable == (said["state"] == "COPY_SEGMENT_FINISHED")
    assert {segment.custom_metadata is None for segment in log.segments} == {False}


def test_records_of_kafkas_serde_about_unknown_segments_and_partitions_are_counted():
    history = RemoteLogHistory()
    lines = (RECORDED / "remote-log-serde.tsv").read_text(encoding="utf-8").splitlines()
    records = [
        parse_framed_record(REMOTE_LOG, bytes.fromhex(line.split("\t")[0]))
        for line in lines
        if not line.startswith("#")
    ]
    updates_first = sorted(records, key=lambda record: record.name != "RemoteLogSegmentMetadataUpdate")
    history.take(MissingRecords(0, 9))
    for offset, record in enumerate(updates_first, start=10):
        history.take(GroupRecord(offset, 0, 0, record))
    logs = list(history.logs())
    assert history.missing == 10
    assert sum(log.unknown_updates for log in logs) == sum(
        record.name == "RemoteLogSegmentMetadataUpdate" for record in records
    )


def test_the_tests_own_encoder_writes_what_kafkas_serde_writes():
    lines = (RECORDED / "remote-log-serde.tsv").read_text(encoding="utf-8").splitlines()
    written = {line.split("\t")[0] for line in lines}
    topic_id = base64.urlsafe_b64decode("NfEfPJw3R86P8q6EZ4L4OQ==")
    own_id = base64.urlsafe_b64decode("KCCw5n4SSMaom5p52k3Gbw==")
    topic = "orders", topic_id, 3
    first = begun(
        own_id,
        (100, 199),
        {0: 100, 2: 150, 7: 190},
        topic=topic,
        broker=4,
        times=(1700000000000, 1700000000123),
        size=2048,
        custom=b"\xff\0\1",
    )
    assert first.hex() in written
    update = updated(own_id, STARTED, topic=topic, broker=5, at=1700000000456, custom=b"bucket/7")
    assert update.hex() in written
