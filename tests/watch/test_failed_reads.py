"""Whichever question a watch asks of a disk fails once: it asks again, or says that something was not audited."""

import itertools
import os
import shutil
from pathlib import Path

import pytest

from kaudit.errors import UsageError
from kaudit.watch import log_directories
from tests.failing_reads import Reads, counted_reads
from tests.logs import data
from tests.watch.growing import GrowingLog, Watching, findings

ROOT = Path(__file__).parents[2]


class FailingOs:
    """What a look asks the operating system itself."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def stat(self, path):
        self._reads(path)
        return os.stat(path)  # noqa: PTH116 - as kaudit asks

    def listdir(self, path):
        self._reads(path)
        return os.listdir(path)  # noqa: PTH208 - as kaudit asks


@pytest.fixture
def reads(monkeypatch):
    counted = counted_reads(monkeypatch)
    monkeypatch.setattr(log_directories, "os", FailingOs(counted))
    return counted


def begun(directory: Path, sample: str | None) -> GrowingLog:
    """A log directory at its first look: a log that grows, beside those of a sample."""
    shutil.rmtree(directory, ignore_errors=True)
    if sample is None:
        directory.mkdir()
        (directory / "replication-offset-checkpoint").write_text("0\n1\ngrowing 0 900\n")
    else:
        shutil.copytree(ROOT / "samples" / sample, directory, ignore=shutil.ignore_patterns("README.md"))
    log = GrowingLog(directory / "growing-0")
    log.roll(0)
    for sequence in range(4):
        log.append(data(1, 0, sequence, base_offset=sequence, payload=b"%d" % sequence))
    return log


def watched(directory: Path, sample: str | None, reads: Reads) -> Watching:
    """Four rounds: batches are appended, a segment is rolled, retention deletes the first; then the last round."""
    log = begun(directory, sample)
    watching = Watching(directory)
    watching.look()
    log.append(data(1, 0, 3, base_offset=4, payload=b"3"))
    watching.look()
    log.roll(5)
    log.append(data(1, 0, 9, base_offset=5, payload=b"9"))
    watching.look()
    log.roll(6)
    log.append(data(1, 0, 10, base_offset=6, payload=b"10"))
    log.delete_head()
    watching.look()
    watching.look(last=True)
    return watching


@pytest.mark.parametrize("sample", [None, "coordinator"])
def test_whichever_look_or_read_fails_the_result_says_so_or_is_that_of_a_scan(reads, tmp_path, sample):
    place = tmp_path / "logs"
    whole = watched(place, sample, reads)
    total = reads.count
    assert total > 50
    assert whole.watcher.result is not None
    expected = findings(whole.watcher.result)
    assert expected
    for number in itertools.count(1):
        reads.count, reads.failing, reads.failed = 0, number, None
        try:
            watching = watched(place, sample, reads)
        except UsageError:
            assert reads.failed is not None
            continue
        if reads.failed is None:
            break
        result = watching.watcher.result
        assert result is not None, (number, reads.failed)
        if not any(note.unreadable for note in result.not_audited):
            # what was read late does not have the segment that retention deleted meanwhile
            assert findings(result) == expected or findings(result) == watching.scanned(), (number, reads.failed)
            assert set(watching.reported) >= set(findings(result)), (number, reads.failed)
    assert number > total
