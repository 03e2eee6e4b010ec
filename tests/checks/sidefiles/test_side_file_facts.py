"""Checks of side files from facts: what each says, how severe it is, and where it lies."""

from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.sidefiles.checkpoints import checkpoint_disagrees, leader_epoch_checkpoint_disagrees
from kaudit.checks.sidefiles.indexes import index_broken, timeindex_broken
from kaudit.checks.sidefiles.snapshots import snapshot_corrupt, snapshot_disagrees
from kaudit.model.side_files import (
    CheckpointBeyondLogEnd,
    CorruptSnapshot,
    IndexFault,
    IndexKind,
    LogBeforeSnapshot,
    MissingIndexes,
    SnapshotComparison,
    SnapshotEntry,
    UnparsableCheckpoint,
    UnparsableSideFile,
    WrongLeaderEpochs,
)
from tests.checks.facts import CONTEXT, reported, summary

SECOND = CONTEXT.segments[1]
KINDS = {IndexKind.OFFSET: (index_broken, timeindex_broken), IndexKind.TIME: (timeindex_broken, index_broken)}
HERE = "kaudit inspect /logs/orders-0"


@pytest.mark.parametrize("kind", IndexKind)
@pytest.mark.parametrize("row", [0, 3, None])
def test_an_index_that_is_wrong(kind, row):
    file, (check, other) = f"00000000000000000090.{kind.value}", KINDS[kind]
    fault = IndexFault(kind, file, 1, 24, "offset 7 twice", row)
    assert reported(other, fault) == []
    (found,) = reported(check, fault, context=replace(CONTEXT, side_files=(file,)))
    what = "the index ends inside a row" if row is None else f"row {row} of the index is wrong"
    assert found.message == f"{what}: offset 7 twice"
    assert (*summary(found), found.anchor) == ("warning", "certain", None, None, file)
    assert (found.segment, found.position, found.file) == (SECOND, 24, f"orders-0/{file}")
    evidence: Any = found.evidence
    assert (evidence.get("row"), "row" in evidence, evidence["detail"]) == (row, row is not None, "offset 7 twice")
    assert ("whole rows" in evidence["rule"]) is (row is None)
    consequence = "fetch may start" if kind is IndexKind.OFFSET else "lookups by time"
    assert consequence in evidence["broker"]
    assert list(found.next) == [f"{HERE}/{file}"]


@pytest.mark.parametrize("kind", IndexKind)
@pytest.mark.parametrize(("count", "more"), [(1, ""), (2, " and 1 more"), (25, " and 24 more")])
def test_indexes_that_are_missing(kind, count, more):
    names = [f"{90 + number:020d}.{kind.value}" for number in range(count)]
    missing = MissingIndexes(kind, [(name, 1 - number % 2) for number, name in enumerate(names)])
    check, other = KINDS[kind]
    assert reported(other, missing) == []
    (found,) = reported(check, missing)
    assert found.message == f"there is no {names[0]}{more}"
    assert (found.severity.value, found.segment, found.anchor) == ("note", SECOND, names[0])
    evidence: Any = found.evidence
    assert (evidence["class"], evidence["count"], evidence["files"]) == ("missing", count, names[:20])
    assert [each.innocent for each in found.explanations] == [True, True]
    assert list(found.next) == [HERE]


@pytest.mark.parametrize(
    ("segment", "broker"), [(None, "drops the entries that contradict"), (1, "believes it: a follower")]
)
def test_leader_epochs_that_are_wrong(segment, broker):
    wrong = WrongLeaderEpochs("leader-epoch-checkpoint", 95, segment, "epoch 3 begins twice")
    (found,) = reported(leader_epoch_checkpoint_disagrees, wrong)
    assert found.message == "leader-epoch-checkpoint disagrees with the log: epoch 3 begins twice"
    assert summary(found) == ("warning", "certain", 95, 95)
    assert found.segment == (None if segment is None else SECOND)
    assert str(found.evidence["broker"]).startswith(broker)
    unparsable = UnparsableSideFile("leader_epoch", "leader-epoch-checkpoint", 4, 17, "truncated", "no version")
    (found,) = reported(leader_epoch_checkpoint_disagrees, unparsable)
    assert found.message == "leader-epoch-checkpoint cannot be parsed: no version"
    assert (*summary(found), found.position) == ("error", "certain", None, None, 4)
    assert (found.evidence["reason"], found.evidence["size"]) == ("truncated", 17)


BEYOND = {
    "recovery-point-offset-checkpoint": "takes the log's end instead",
    "replication-offset-checkpoint": "takes the log's end instead: records that were acknowledged are not there",
    "log-start-offset-checkpoint": "removes all segments and starts the log anew at that offset",
    "cleaner-offset-checkpoint": "resets the cleaner to the log's start",
}


@pytest.mark.parametrize("file", BEYOND)
def test_offset_checkpoints(file):
    (found,) = reported(checkpoint_disagrees, CheckpointBeyondLogEnd(file, 120, 100))
    assert found.message == f"{file} says 120, but the log ends at 100"
    assert summary(found) == ("error" if file.startswith("log-start") else "warning", "certain", 100, 119)
    assert (found.evidence["checkpoint_offset"], found.evidence["log_end_offset"]) == (120, 100)
    assert (found.evidence["broker"], found.file) == (BEYOND[file], file)
    assert [each.innocent for each in found.explanations] == [False, True]
    inspect, other_replicas = found.next
    assert inspect == f"kaudit inspect /logs/{file}"
    assert "other replicas" in other_replicas
    # a broker that starts the log beyond its end removes what it has: the first segment begins at 0
    assert found.impact.records_lost_at_most == (100 if file.startswith("log-start") else 20)
    (found,) = reported(checkpoint_disagrees, UnparsableCheckpoint("/other", file, 3, "line 2 has no offset"))
    assert (found.message, found.log_dir) == (f"{file} cannot be parsed: line 2 has no offset", "/other")
    assert (*summary(found), found.position, found.file) == ("warning", "certain", None, None, 3, file)


@pytest.mark.parametrize(
    ("older", "then"), [(None, "and reads the log from its start"), ("0.snapshot", "from 0.snapshot")]
)
@pytest.mark.parametrize("size", [0, 1])
def test_a_snapshot_that_cannot_be_read(older, then, size):
    (found,) = reported(snapshot_corrupt, CorruptSnapshot("90.snapshot", 1, 4, size, "truncated", "no count", older))
    assert found.message == "the producer snapshot is corrupt: no count"
    assert (*summary(found), found.position, found.segment) == ("warning", "certain", None, None, 4, SECOND)
    assert then in str(found.evidence["broker"])
    assert (found.evidence["older_snapshot"], found.evidence["size"]) == (older, size)
    assert found.explanations[0].speaks_for == (("the file is empty",) if size == 0 else ())


# Producer snapshots: what of a snapshot can be explained by what the log does not hold any more

LOG = SnapshotEntry(7, 3, 20, 50, 4, 9000, 5, -1)
"""What the log says of producer 7: its last batch at offsets 46..50."""
WHOLE = LogBeforeSnapshot(0, True, 0)
CUT = LogBeforeSnapshot(40, True, 40)
"""The log begins at offset 40."""
CLEANED = LogBeforeSnapshot(0, False, 0)


def contradiction(stored, *expected, log=WHOLE, versions=("3.0.0", "3.9.0"), **fields):
    """Confidence, severity and words of a finding at offset 90; None if the entry is explained."""
    known = {"present": False, "names_marker": False, "may_expire": False} | fields
    comparison = SnapshotComparison("00000000000000000090.snapshot", 90, 7, stored, expected, log=log, **known)
    here = replace(CONTEXT, versions=VersionRange(*map(Version.parse, versions)))
    findings = reported(snapshot_disagrees, comparison, context=here)
    if not findings:
        return None
    (found,) = findings
    head, tail = "00000000000000000090.snapshot, the producers' state at offset 90, ", " (producer 7)"
    assert found.message.startswith(head)
    assert found.message.endswith(tail)
    assert (found.offset, found.producer_id, found.segment) == (90, 7, CONTEXT.segments[0])
    assert found.evidence["stored"] == (None if stored is None else stored._asdict())
    assert found.evidence["replayed"] == (expected[-1]._asdict() if expected else None)
    assert len(found.explanations) == (1 if found.severity.value == "note" else 3)
    return found.confidence.value, found.severity.value, found.message.removeprefix(head).removesuffix(tail)


def error(words, confidence="certain"):
    return confidence, "error", words


AHEAD = "holds a batch from beyond the snapshot's own offset"
STRANGER = "names a producer that wrote nothing there"


@pytest.mark.parametrize(
    ("entry", "fields", "expected"),
    [
        # it is not in the snapshot
        (None, {"may_expire": True}, None),
        (None, {}, error("lacks a producer while one that was idle for longer is kept", "likely")),
        (None, {"log": LogBeforeSnapshot(0, True, 51)}, None),
        (None, {"log": LogBeforeSnapshot(0, True, 50)}, error("lacks a producer while one that was idle for longer is kept",
                                                             "likely")),
        # offsets at or beyond the snapshot's own
        (LOG._replace(last_offset=89), {}, error("names a batch that ends at offset 89, where the producer has none")),
        (LOG._replace(last_offset=90), {}, error(AHEAD)),
        (LOG._replace(current_txn_first_offset=90), {}, error(AHEAD)),
        (LOG._replace(current_txn_first_offset=90), {"versions": ("1.0.1", "3.9.0")}, ("certain", "note", AHEAD)),
        (LOG._replace(last_sequence=21), {"versions": ("1.0.1", "3.9.0")}, error("says last sequence 21, the log 20")),
        (LOG, {}, None),
        # its last batch
        (LOG._replace(last_offset=49), {}, error("ends at offset 49, the producer's last batch at 50")),
        (LOG._replace(last_offset=0), {}, error("ends at offset 0, the producer's last batch at 50")),
        (LOG._replace(last_offset=51), {"log": CLEANED}, None),
        (LOG._replace(last_offset=51), {"log": LogBeforeSnapshot(0, True, 52)}, None),
        (LOG._replace(last_offset=51), {"log": LogBeforeSnapshot(0, True, 51)},
         error("names a batch that ends at offset 51, where the producer has none")),
        (LOG._replace(last_offset=51, last_sequence=30), {"present": True}, error("says last sequence 30, the log 20")),
        # fields, in a log that holds everything and in others
        (LOG._replace(producer_epoch=4), {"log": CLEANED}, error("says epoch 4, the log 3")),
        (LOG._replace(offset_delta=5), {"log": CUT}, error("says offset delta 5, the log 4")),
        (LOG._replace(timestamp=1), {}, error("says timestamp 1, the log 9000")),
        (LOG._replace(timestamp=1), {"log": CUT}, error("says timestamp 1, the log 9000")),
        (LOG._replace(timestamp=1), {"log": CLEANED}, None),
        (LOG._replace(coordinator_epoch=6), {}, error("says coordinator epoch 6, the log 5")),
        (LOG._replace(coordinator_epoch=6), {"log": CUT}, error("says coordinator epoch 6, the log 5")),
        (LOG._replace(coordinator_epoch=6), {"log": CLEANED}, None),
        (LOG._replace(coordinator_epoch=-1), {}, None),
        (LOG._replace(current_txn_first_offset=45), {}, error("says transaction open since offset 45, the log -1")),
        (LOG._replace(current_txn_first_offset=45), {"log": CLEANED}, None),
        (LOG._replace(current_txn_first_offset=39), {"log": CUT}, None),
        (LOG._replace(current_txn_first_offset=0), {"log": CUT}, None),
        (LOG._replace(current_txn_first_offset=40), {"log": CUT}, error("says transaction open since offset 40, the log -1")),
        # of a producer known by a marker alone, what the cleaner took is not known
        (SnapshotEntry(7, 2, -1, -1, 0, 1, 5, -1), {"log": CLEANED}, None),
        (SnapshotEntry(7, 2, -1, -1, 0, 1, 5, -1), {"log": CUT}, error("says last sequence -1, the log 20")),
    ],
)  # fmt: skip
def test_what_the_log_contradicts(entry, fields, expected):
    assert contradiction(entry, LOG, **fields) == expected


def test_an_open_transaction_never_expires():
    opened = LOG._replace(current_txn_first_offset=46)
    assert contradiction(None, opened, may_expire=True) == error(
        "lacks a producer whose transaction is open, which never expires"
    )
    assert contradiction(None, opened._replace(current_txn_first_offset=0), may_expire=True) is not None
    closed = LOG._replace(current_txn_first_offset=46)
    assert contradiction(LOG, closed, log=CUT) == error("says transaction open since offset -1, the log 46")


def test_a_first_marker_that_is_gone_set_the_coordinator_epoch():
    unmarked = LOG._replace(coordinator_epoch=-1)
    assert contradiction(LOG, unmarked, log=CUT) is None
    assert contradiction(LOG, unmarked, log=LogBeforeSnapshot(1, True, 0)) is None
    assert contradiction(LOG, unmarked) == error("says coordinator epoch 5, the log -1")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (WHOLE, error(STRANGER)),
        (CLEANED, None),
        (LogBeforeSnapshot(0, True, 99), error(STRANGER)),
        (LogBeforeSnapshot(50, True, 0), error(STRANGER)),
        (LogBeforeSnapshot(51, True, 0), None),
        (LogBeforeSnapshot(1, True, 51), None),
    ],
)
def test_a_producer_of_which_the_log_holds_nothing(log, expected):
    assert contradiction(LOG, log=log) == expected


def test_the_state_of_one_kind_of_version_is_enough():
    older, newer = LOG._replace(timestamp=1), LOG
    for stored in (older, newer):
        assert contradiction(stored, older, newer) is None
    assert contradiction(LOG._replace(timestamp=2), older, newer) == error("says timestamp 2, the log 9000")
    assert contradiction(LOG._replace(coordinator_epoch=-1), LOG._replace(last_sequence=8), LOG) is None


@pytest.mark.parametrize(
    ("names_marker", "log", "versions", "explained"),
    [
        (True, CLEANED, ("0.11.0.3", "3.9.0"), True),
        (False, CLEANED, ("0.11.0.3", "3.9.0"), False),
        (True, WHOLE, ("0.11.0.3", "3.9.0"), False),
        (True, CLEANED, ("1.0.0", "3.9.0"), False),
    ],
)
def test_0_11_keeps_the_sequence_of_a_batch_that_was_cleaned(names_marker, log, versions, explained):
    found = contradiction(
        LOG._replace(last_sequence=23), LOG, log=log, versions=versions, names_marker=names_marker, present=True
    )
    assert (found is None) is explained


def test_a_snapshot_lies_in_the_last_segment_before_its_offset():
    comparison = SnapshotComparison("x", 91, 7, None, (LOG,), False, False, False, WHOLE)
    (found,) = reported(snapshot_disagrees, comparison)
    assert found.segment == SECOND
    (found,) = reported(snapshot_disagrees, replace(comparison, offset=0))
    assert (found.segment, found.file) == (None, "orders-0/x")
    (found,) = reported(snapshot_disagrees, comparison)
    assert list(found.next) == ["kaudit timeline /logs --topic orders --partition 0 --producer-id 7"]
