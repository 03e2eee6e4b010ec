"""No finding says of a log that a recorded broker loaded that brokers of its release cannot load it."""

import json
import re
from pathlib import Path

import pytest

from kaudit.broker.broker import Broker
from kaudit.broker.partition.partition import Partition
from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.replay.session import Session
from kaudit.scanning.options import ScanOptions
from tests.conformance.agreement import Recorded, recordings
from tests.conformance.server_logs import DATA, recording
from tests.conformance.test_snapshots import CAPTURES, ORACLE
from tests.logs import data, marker, record, sealed_records

_UNLOADABLE = re.compile(
    r"cannot load|does not start|stops them|(fails|takes) the (whole )?log directory|takes .* offline"
)
"""What findings say of a broker that cannot go on with a log."""


def logs_read_again(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> list[list[DataBatch | MarkerBatch]]:
    """The log of each partition whenever the broker came back from a kill, and had read it from its first byte to its last."""
    logs, restart = [], Partition.restart

    def restarted(partition: Partition, *arguments: object, clean: bool) -> None:
        restart(partition, *arguments, clean=clean)  # type: ignore[arg-type]
        if not clean:
            logs.append([*partition._history.between(0, partition.log_end)])

    monkeypatch.setattr(Partition, "restart", restarted)
    lines = (json.dumps(attempt).encode() for attempt in recorded.attempts())
    for _ in Session(lines, Broker()).answered():
        pass
    return [log for log in logs if log]


def written(batches: list[DataBatch | MarkerBatch]) -> bytes:
    """A segment with these batches one after the other, one record in each: their own offsets follow from sequences on old releases."""
    encoded, offset = [], 0
    for batch in batches:
        if isinstance(batch, MarkerBatch):
            end = marker(
                batch.producer_id,
                batch.producer_epoch,
                commit=batch.commit,
                coordinator_epoch=batch.coordinator_epoch,
                base_offset=offset,
                timestamp=batch.timestamp,
            )
            encoded.append(end.encode())
            offset += 1
        else:
            length = batch.last_offset - batch.base_offset + 1
            run = data(
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                length,
                transactional=batch.is_transactional,
                base_offset=offset,
                timestamp=batch.max_timestamp,
            )
            encoded.append(sealed_records(run, [record(0, None, b"x")]))
            offset += length
    return b"".join(encoded)


def unloadable(path: Path, version: str) -> list[str]:
    """What a scan says that a broker of this version cannot load."""
    found = scan(ScanOptions([str(path)], broker_version=version), SilentProgress()).findings
    texts = [
        (each.code, each.topic, text) for each in found for text in (each.message, str(each.evidence.get("broker")))
    ]
    return [f"{code} {topic}: {text}" for code, topic, text in texts if _UNLOADABLE.search(text)]


@pytest.mark.parametrize("recorded", recordings(), ids=lambda recorded: f"{recorded.version}-{recorded.name}")
def test_logs_that_a_killed_broker_read_again(recorded, monkeypatch, tmp_path):
    logs = logs_read_again(recorded, monkeypatch)
    for number, batches in enumerate(logs):
        directory = tmp_path / f"log{number}-0"
        directory.mkdir()
        (directory / f"{0:020d}.log").write_bytes(written(batches))
    assert not logs or unloadable(tmp_path, recorded.version) == []


def log_directories(root: Path) -> list[Path]:
    """The directories below `root` that hold partitions."""
    segments = (path for path in root.rglob("*.log") if re.fullmatch(r"\d{20}", path.stem))
    return sorted({segment.parents[1] for segment in segments if re.search(r"-\d+$", segment.parent.name)})


@pytest.mark.parametrize(("version", "archive"), ORACLE)
def test_directories_of_the_oracle(evidence, version, archive):
    directories = log_directories(evidence.oracle(version, archive))
    assert directories
    assert [text for each in directories for text in unloadable(each, version)] == []


@pytest.mark.parametrize(("capture", "version"), CAPTURES.items())
def test_captures(evidence, capture, version):
    directories = log_directories(evidence.capture(capture))
    assert directories
    assert [text for each in directories for text in unloadable(each, version)] == []


@pytest.mark.parametrize(
    "archive", sorted(DATA.glob("*/*.logdir.tar.xz")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_directories_of_the_recorder(archive):
    version = archive.parent.name
    recorded = recording(version, archive.name.removesuffix(".logdir.tar.xz"))
    directories = log_directories(recorded.home)
    assert directories
    assert [text for each in directories for text in unloadable(each, version)] == []
