"""Producer snapshots that a broker cannot read, or that contradict the log before their offset."""

from collections.abc import Iterator

from kaudit.checks.check import Evidence, none_because
from kaudit.checks.context import Context
from kaudit.checks.log_causes import SNAPSHOT
from kaudit.checks.sidefiles.about_file import file_finding, side_file_check
from kaudit.model.batch_fields import NO_COORDINATOR_EPOCH, NO_OFFSET
from kaudit.model.evidence import BrokerEvidence, FindingEvidence
from kaudit.model.evidence_parts import SnapshotState
from kaudit.model.finding import Explanation, Finding
from kaudit.model.severity import Confidence, Severity
from kaudit.model.side_files import CorruptSnapshot, LogBeforeSnapshot, SnapshotComparison, SnapshotEntry


class _CorruptEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    reason: str
    detail: str
    size: int
    older_snapshot: str | None


@side_file_check(
    "KA501",
    severity=Severity.WARNING,
    summary="a producer snapshot cannot be read",
    needs=(CorruptSnapshot,),
    incident=none_because("a corrupt snapshot is one file"),
    caused_by=(SNAPSHOT,),
)
def snapshot_corrupt(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each, with the older snapshot the broker starts from instead."""
    for found in evidence.of(CorruptSnapshot):
        then = "and reads the log from its start"
        if found.older_snapshot:
            then = f"and starts from {found.older_snapshot}, reading the log from there on"
        yield file_finding(
            snapshot_corrupt,
            context,
            found.file,
            f"the producer snapshot is corrupt: {found.detail}",
            segment=found.segment,
            position=found.position,
            evidence=_CorruptEvidence(
                rule="a snapshot has version 1, a CRC-32C over count and entries, and 46 bytes an entry "
                "(ProducerStateManager.readSnapshot)",
                broker=f"warns, deletes the file {then}: more of the past is remembered than without damage, nothing is "
                "lost",
                reason=found.reason,
                detail=found.detail,
                size=found.size,
                older_snapshot=found.older_snapshot,
            ),
            explanations=(
                Explanation(
                    "the broker or its host stopped before the file reached the disk (before 2.8 it was never synced; from "
                    "3.7 on only above the recovery point)",
                    speaks_for=("the file is empty",) if found.size == 0 else (),
                ),
                Explanation("bits flipped on disk, or the file was cut by a copy"),
            ),
        )


_FIELDS = (
    ("last_sequence", "last sequence"),
    ("producer_epoch", "epoch"),
    ("offset_delta", "offset delta"),
    ("current_txn_first_offset", "transaction open since offset"),
    ("coordinator_epoch", "coordinator epoch"),
    ("timestamp", "timestamp"),
)
_CAUSES = (
    Explanation("the file comes from another replica, another time, or was edited: copies and restores do that"),
    Explanation("the log was truncated, or changed by another program, after the snapshot was written"),
    Explanation("a defect of the broker that wrote it (KAFKA-6683 before 1.0.2)"),
)

_NOT_FETCHED = Explanation(
    "a follower that rebuilt its log from remote storage dropped the snapshot that it had fetched from there (apache/kafka#14652): as leader "
    "it takes repeats for new records"
)
_Contradiction = tuple[str, Confidence]
"""A contradiction in words, and how certain it is."""
_RUNS_AHEAD: _Contradiction = ("holds a batch from beyond the snapshot's own offset", Confidence.CERTAIN)


@side_file_check(
    "KA502",
    severity=Severity.ERROR,
    severity_note="note for state beyond the snapshot's offset (brokers before 1.0.2)",
    summary="a producer snapshot disagrees with the log before it",
    needs=(SnapshotComparison,),
    incident=none_because("a snapshot that differs is one file, and what made it differ is not known"),
    caused_by=(SNAPSHOT,),
)
def snapshot_disagrees(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report entries that expiry, the broker's version and removed data do not explain."""
    for comparison in evidence.of(SnapshotComparison):
        contradiction = _contradiction(context, comparison)
        if contradiction is not None:
            yield _finding(context, comparison, contradiction)


def _contradiction(context: Context, comparison: SnapshotComparison) -> _Contradiction | None:
    stored, expected = comparison.stored, comparison.expected
    if stored is None:
        return _missing(comparison)
    if max(stored.last_offset, stored.current_txn_first_offset) >= comparison.offset:
        return _RUNS_AHEAD
    if stored in comparison.forgotten:
        return None  # known again by what came after it was forgotten: by expiry, or by a restart above its batches
    if not expected:
        return _unheard_of(stored, comparison.log)
    cleaned = comparison.names_marker and not comparison.log.whole
    if cleaned and context.versions.any(lambda profile: profile.marker_replaces_last_batch):
        # 0.11 cleans the last batch away: the marker's offset stays, the sequence is that of a batch that is gone
        expected = [entry._replace(last_sequence=stored.last_sequence) for entry in expected]
    contradictions = [_different(stored, entry, comparison) for entry in expected]
    return None if None in contradictions else contradictions[-1]


def _missing(comparison: SnapshotComparison) -> _Contradiction | None:
    newest = comparison.expected[-1]
    below = newest.last_offset < comparison.log.log_start
    if below or (comparison.may_expire and newest.current_txn_first_offset == NO_OFFSET):
        return None  # its data is deleted, it may have expired, or it is known by a marker alone
    if newest.current_txn_first_offset != NO_OFFSET:
        return "lacks a producer whose transaction is open, which never expires", Confidence.CERTAIN
    return "lacks a producer while one that was idle for longer is kept", Confidence.LIKELY


def _unheard_of(stored: SnapshotEntry, log: LogBeforeSnapshot) -> _Contradiction | None:
    if log.whole and (log.first_offset == 0 or stored.last_offset >= log.known_from):
        return "names a producer that wrote nothing there", Confidence.CERTAIN
    return None


def _different(stored: SnapshotEntry, ours: SnapshotEntry, comparison: SnapshotComparison) -> _Contradiction | None:
    """Return the contradiction to `ours`, the entry that one kind of version writes; None where there is none."""
    log = comparison.log
    if NO_OFFSET < stored.last_offset < ours.last_offset:
        words = f"ends at offset {stored.last_offset}, the producer's last batch at {ours.last_offset}"
        return words, Confidence.CERTAIN
    if stored.last_offset > ours.last_offset and not comparison.present:
        if log.whole and stored.last_offset >= log.known_from:
            words = f"names a batch that ends at offset {stored.last_offset}, where the producer has none"
            return words, Confidence.CERTAIN
        return None  # its last batch was compacted or deleted since
    for name, words in _FIELDS:
        value, own = getattr(stored, name), getattr(ours, name)
        if value != own and not _derived_from_what_is_gone(name, stored, ours, log):
            return f"says {words} {value}, the log {own}", Confidence.CERTAIN
    return None


def _derived_from_what_is_gone(name: str, stored: SnapshotEntry, newest: SnapshotEntry, log: LogBeforeSnapshot) -> bool:
    """Whether a marker or data that the log no longer holds may have set this field."""
    if name == "coordinator_epoch" and stored.coordinator_epoch == NO_COORDINATOR_EPOCH:
        return True  # forgotten, by expiry or with its snapshot, and started anew
    if log.whole and log.first_offset == 0:
        return False
    if not log.whole:
        return stored.last_offset == NO_OFFSET or name in ("current_txn_first_offset", "coordinator_epoch", "timestamp")
    if name == "current_txn_first_offset":
        return NO_OFFSET < stored.current_txn_first_offset < log.known_from
    return name == "coordinator_epoch" and newest.coordinator_epoch == NO_COORDINATOR_EPOCH


class _Evidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    rule: str
    stored: SnapshotState | None
    replayed: SnapshotState | None


def _finding(context: Context, comparison: SnapshotComparison, contradiction: _Contradiction) -> Finding:
    words, confidence = contradiction
    stored = comparison.stored
    expected = comparison.expected[-1] if comparison.expected else None
    entry = stored or expected
    assert entry is not None
    own_defect = contradiction == _RUNS_AHEAD and context.versions.any(lambda profile: profile.snapshot_may_run_ahead)
    return snapshot_disagrees.finding(
        context,
        f"{comparison.file}, the producers' state at offset {comparison.offset}, {words} (producer {entry.producer_id})",
        severity=Severity.NOTE if own_defect else snapshot_disagrees.severity,
        confidence=confidence,
        segment=context.segment_before(comparison.offset),
        file=context.side_file(comparison.file),
        offset=comparison.offset,
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        anchor=comparison.file,
        evidence=_Evidence(
            rule="a snapshot has the state of every producer by the log before its offset, with the newest batch only "
            "(ProducerStateManager.takeSnapshot); the broker loads it in place of reading the log",
            stored=None if stored is None else SnapshotState(*stored),
            replayed=None if expected is None else SnapshotState(*expected),
        ),
        explanations=(
            *([_NOT_FETCHED] if stored is None and context.elsewhere else ()),
            *(_CAUSES[-1:] if own_defect else _CAUSES),
        ),
        following=(context.timeline_command(entry.producer_id),),
        absent={"position": "an entry, not a byte, is wrong", "last_offset": "a snapshot stands for one offset"},
    )
