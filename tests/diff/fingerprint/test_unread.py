"""What a fingerprint says of segments that were listed and are not there when they are read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.engines import fingerprints
from kaudit.engines.replicas import layout_of as listed
from kaudit.errors import NothingToAuditError
from kaudit.model.replicas import Replica
from kaudit.model.result import NotAudited
from tests.diff.fingerprint.sites import compared, fingerprint_of
from tests.logs import Log, data

STARTS = (0, 10, 20)


@pytest.fixture
def log_without(tmp_path, monkeypatch):
    """Write 30 batches in three segments, of which one goes away between the listing and the reading."""

    def write(number: int) -> tuple[Path, Path]:
        log = Log()
        for sequence in range(30):
            log.append(data(7, 0, sequence))
        segment = log.write(tmp_path / "orders-0", segment_starts=STARTS[1:]) / f"{STARTS[number]:020d}.log"

        def layout_of(*arguments):
            layout = listed(*arguments)
            segment.unlink(missing_ok=True)
            return layout

        monkeypatch.setattr(fingerprints, "layout_of", layout_of)
        return tmp_path, segment

    return write


def test_what_retention_removed_is_named_and_leaves_the_fingerprint_complete(log_without):
    path, segment = log_without(0)
    made = fingerprint_of(path)
    reason = f"retention removed it: the log begins with segment {10:020d}.log now"
    assert made.not_audited == [NotAudited(str(segment), reason, unreadable=False)]
    assert not made.incomplete
    (partition,) = made.partitions
    assert (partition.start_offset, partition.end_offset, partition.batches) == (10, 30, 20)


def test_what_retention_removed_is_not_held_against_a_site_that_has_it(log_without, tmp_path_factory):
    whole = Log()
    for sequence in range(30):
        whole.append(data(7, 0, sequence))
    other = tmp_path_factory.mktemp("other")
    whole.write(other / "orders-0")
    sent = fingerprint_of(other)
    (found,) = compared(log_without(0)[0], sent).partitions
    assert found.start_offsets == {"here": 10, "there": 0}
    assert found.differing == []


def test_what_cannot_be_read_leaves_the_fingerprint_and_what_is_held_against_it_incomplete(log_without):
    path, segment = log_without(2)
    missing = [NotAudited(str(segment), "No such file or directory", unreadable=True)]
    made = fingerprint_of(path)
    assert (made.not_audited, made.incomplete) == (missing, True)
    found = compared(path, made)
    assert (found.not_audited, found.incomplete) == (missing, True)


@pytest.mark.parametrize(("segments", "unreadable", "raises"), [
    ([[], []], [], True),
    ([], [], True),
    ([[], ["a segment"]], [], False),
    ([[]], ["why"], False),  # there may be some where nobody can look
])  # fmt: skip
def test_where_there_is_no_segment_there_is_nothing_to_read(monkeypatch, segments, unreadable, raises):
    layout: Any = SimpleNamespace(partitions=[SimpleNamespace(segments=own) for own in segments], unreadable=unreadable)
    monkeypatch.setattr(fingerprints, "layout_of", lambda *_: layout)
    options: Any = None
    if not raises:
        assert fingerprints._layout(Replica("here", "/logs"), options) is layout
        return
    with pytest.raises(NothingToAuditError, match=r"^nothing to read under /logs: no segment was found$"):
        fingerprints._layout(Replica("here", "/logs"), options)
