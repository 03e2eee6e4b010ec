"""Whether a topic has remote storage, by the ConfigRecords of __cluster_metadata: what a log lacks is in remote storage then, or it is not."""

import shutil
from pathlib import Path

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import Batch, record, sealed_records
from tests.remote_log import TOPIC_ID, TieredLog

ENABLE = "remote.storage.enable"


def text(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value) + 1]) + value.encode()


def topic(name: str = "orders", topic_id: bytes = TOPIC_ID) -> bytes:
    """A TopicRecord."""
    return b"\1\2\0" + text(name) + topic_id + b"\0"


def config(value: str | None, name: str = ENABLE, resource: str = "orders", kind: int = 2) -> bytes:
    """A ConfigRecord."""
    return b"\1\4\0" + bytes([kind]) + text(resource) + text(name) + text(value) + b"\0"


def write_metadata(directory: Path, *records: bytes, first: int = 0, file: str | None = None) -> None:
    place = directory / "__cluster_metadata-0"
    place.mkdir(exist_ok=True)
    batches = [sealed_records(Batch(base_offset=first + n), [record(0, None, own)]) for n, own in enumerate(records)]
    (place / (file or f"{first:020d}.log")).write_bytes(b"".join(batches))


@pytest.fixture
def log(tmp_path):
    """A log from 20 on whose log start is 0, of a broker whose other directories were not copied."""
    TieredLog(20, 30).write(tmp_path)
    for own in ("__remote_log_metadata-0", "remote-log-index-cache"):
        shutil.rmtree(tmp_path / own)
    return tmp_path


def before(directory: Path) -> tuple[str, str]:
    """What became of offsets 0 to 19, and why that is said."""
    result = scan(ScanOptions([str(directory)], topics=["orders"], jobs=1), SilentProgress())
    (account,) = result.coverage
    (gone,) = account.ranges
    assert (gone.first_offset, gone.last_offset) == (0, 19)
    return gone.kind.value, gone.reason


ENABLED = {
    "when it was created": [topic(), config("true")],
    "later": [topic(), config("false"), config("true")],
    "and another topic, a broker and another setting say other things": [
        *(topic(), config("true"), topic("bills", bytes(16)), config("false", resource="bills")),
        *(config("false", kind=4), config("false", name="remote.log.copy.disable")),
    ],
}
DISABLED = {
    "by default": [topic()],
    "before it was made anew": [topic(topic_id=bytes(16)), config("true"), topic()],
    "until the setting was deleted": [topic(), config("true"), config(None)],
    "until it was disabled": [topic(), config("true"), config("false")],
}


@pytest.mark.parametrize("records", ENABLED.values(), ids=ENABLED)
def test_a_topic_with_remote_storage(log, records):
    assert before(log)[0] == "unknown"
    write_metadata(log, *records)
    assert before(log)[0] == "unconfirmed"


@pytest.mark.parametrize("records", DISABLED.values(), ids=DISABLED)
def test_a_topic_without_remote_storage_of_a_broker_that_has_it(log, records):
    (log / "remote-log-index-cache").mkdir()
    assert before(log)[0] == "unconfirmed"
    write_metadata(log, *records)
    kind, reason = before(log)
    assert kind == "unknown"
    assert "the topic has no remote storage (remote.storage.enable)" in reason
    assert "in remote storage" not in reason


def test_the_snapshot_where_the_log_begins_later(log):
    write_metadata(log, topic(), config("true"), file=f"{40:020d}-{1:010d}.checkpoint")
    write_metadata(log, config("7", name="local.retention.ms"), first=40)
    assert before(log)[0] == "unconfirmed"
    write_metadata(log, config("false"), first=40)
    assert before(log)[0] == "unknown"


def test_the_furthest_of_several_replicas_counts(log):
    for name, records in (("b1", [topic(), config("true"), config("false")]), ("b2", [topic(), config("true")])):
        own = log / name
        own.mkdir()
        write_metadata(own, *records)
    assert "no remote storage" in before(log)[1]


@pytest.mark.parametrize(
    "records",
    {
        "another cluster's": [topic(topic_id=bytes(range(2, 18))), config("true")],
        "a setting of a topic that no record names": [config("true")],
        "damaged": [topic()[:-4], b"\1\4\0\2", b"\1\4\7", b""],
    }.items(),
    ids=lambda own: own[0],
)
def test_what_says_nothing_of_the_topic_changes_nothing(log, records):
    write_metadata(log, *records[1])
    kind, reason = before(log)
    assert kind == "unknown"
    assert "so they are in remote storage, or" in reason
