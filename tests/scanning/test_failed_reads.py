"""Every read of an audit that fails is named as not audited, wherever it happens: no verdict changes in silence."""

import itertools
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.engines.replicas import diff, name_replicas
from kaudit.errors import UnreadableInputError
from kaudit.listings.query import Query
from kaudit.model.result import ScanResult
from kaudit.scanning.options import ScanOptions
from tests.failing_reads import Reads, counted_reads
from tests.logs import Log, data

ROOT = Path(__file__).parents[2]
BLOCKS = "samples/producer-ids/blocks.jsonl"


def scan(path: str, options: Mapping[str, Any]) -> ScanResult:
    return local.scan(ScanOptions(paths=[path], jobs=1, **options), SilentProgress())


def timeline(path: str, options: Mapping[str, Any]) -> ScanResult:
    found = local.timeline(ScanOptions(paths=[path], jobs=1, **options), SilentProgress())
    for each in found.histories:
        assert len(each.rows)
    return found.scan


def producers(path: str, options: Mapping[str, Any]) -> ScanResult:
    return local.producers(ScanOptions(paths=[path], jobs=1, **options), SilentProgress(), Query()).scan


def batches(path: str, options: Mapping[str, Any]) -> ScanResult:
    """What the tables of --batches read."""
    with local.record(ScanOptions(paths=[path], jobs=1, **options), SilentProgress()) as recorded:
        list(recorded.write_batches(lambda task, rows: ("batches", b"")))
        return recorded.result


def compared(path: str, options: Mapping[str, Any]) -> ScanResult:
    """What `kaudit diff` reads of two replicas."""
    paths = [f"{path}/{name}" for name in ("b1", "b2")]
    replicas = name_replicas(paths, {})
    return diff(ScanOptions(paths=paths, jobs=1, **options), replicas, SilentProgress()).scan


def result_of(command: Any, path: str, options: Mapping[str, Any]) -> ScanResult | None:
    """The result, None where an error says in one line what cannot be read."""
    try:
        found: ScanResult = command(path, options)
    except UnreadableInputError:
        return None
    return found


@pytest.fixture
def reads(monkeypatch):
    return counted_reads(monkeypatch)


def anomalies(directory: Path) -> None:
    """A log in which much has to be read again: a repeat, a bump of the epoch, two writers."""
    log = Log()
    for sequence in range(3):
        log.append(data(1, 0, sequence, payload=b"%d" % sequence))
    log.append(data(1, 1, 0, payload=b"2"))
    for step in range(6):
        log.append(data(2, 0, step, payload=b"a"))
        log.append(data(2, 0, 500 + step, payload=b"b"))
    for _ in range(2):
        log.append(data(-1, -1, -1, payload=b"without a producer"))
    log.write(directory / "t-0")


def copied(sample: Path, target: Path, partitions: Iterable[str]) -> Path:
    """Copy a sample with these of its partitions: each read is tried, so that twice as many reads take four times as long."""
    unwanted = {path.name for path in sample.rglob("*-[0-9]") if path.is_dir()} - set(partitions)
    return Path(shutil.copytree(sample, target, ignore=lambda _, names: unwanted & set(names)))


PARTS = {
    "side-files": [
        ["aborted-0"],
        ["ahead-0"],
        ["leader-epochs-0"],
        ["offset-index-0"],
        ["snapshot-0"],
        ["time-index-0"],
    ],
    "duplicates": [
        ["s02-dup-last-0"],
        ["s08-unknown-pid-nonzero-empty-0"],
        ["s49-inject-epoch-gap-0"],
        ["s50-inject-seq-gap-0"],
        ["s59-snapshots-deleted-0"],
    ],
    "clean": [["mix-compact-0"], ["mix-ct-0"]],
    "hanging-transaction": [["__transaction_state-0", "s29d-late-write-after-abort-0"]],
    "producer-ids": [["flood-0"], ["orders-0", "shared-0"]],
    "replicas": [["orders-0"], ["payments-0"]],
}
"""Partitions of samples that have nothing to do with one another."""


@pytest.mark.parametrize("scheme", ["", "s3://bucket"])
@pytest.mark.parametrize(
    ("command", "path", "options"),
    [
        (scan, "samples/coordinator", {}),
        (scan, "samples/side-files", {}),
        (scan, "samples/duplicates", {}),
        (scan, "samples/producer-ids", {"blocks": BLOCKS}),
        (scan, "anomalies", {"depth": "records"}),
        (scan, "samples/replicas", {}),
        (timeline, "samples/hanging-transaction", {}),
        (producers, "samples/coordinator", {}),
        (batches, "samples/clean", {}),
        (compared, "samples/replicas", {}),
    ],
)
def test_whichever_read_fails_the_result_says_so(reads, monkeypatch, tmp_path, scheme, command, path, options):
    monkeypatch.chdir(ROOT)
    sample = ROOT / path
    parts = [] if command is compared else PARTS.get(sample.name, [])  # compared are all partitions of two brokers
    places = [copied(sample, tmp_path / str(number), part) for number, part in enumerate(parts)] or [sample]
    if path == "anomalies":
        anomalies(tmp_path)
        places = [tmp_path]
    for place in places:
        require_failures_named(reads, command, f"{scheme}{place}", options)


def require_failures_named(reads: Reads, command: Any, path: str, options: Mapping[str, Any]) -> None:
    """Let each read fail in turn."""
    reads.count, reads.failing = 0, 0
    whole = result_of(command, path, options)
    assert whole is not None
    assert not whole.incomplete
    # KA012 says that a segment cannot be read; two writers that are not recognised are many anomalies again
    codes = {"KA012", *(each.code for each in whole.findings)}
    codes |= {
        code for each in whole.findings if each.code == "KA404" for code in cast("Any", each.evidence["replaces"])
    }
    # of a hanging transaction whose coordinator cannot be asked only that it is open is known
    codes |= {"KA302"} if "KA301" in codes else set()
    total = reads.count
    assert total > 10
    for number in itertools.count(1):
        reads.count, reads.failing, reads.failed = 0, number, None
        result = result_of(command, path, options)
        if reads.failed is None:
            break
        if result is not None:
            unread = [note for note in result.not_audited if note.unreadable]
            assert result.incomplete, (number, reads.failed)
            assert any(reads.failed in note.path for note in unread), (number, reads.failed, unread)
            assert {each.code for each in result.findings} <= codes, (number, reads.failed)
    assert number > total
