"""KA502: a producer snapshot that says something else than the log before its offset."""

from collections.abc import Sequence

from msgspec import Struct

from kaudit.checks.context import Context
from kaudit.formats.sidefiles.producer_snapshot import SnapshotEntry
from kaudit.model.batch_fields import NO_COORDINATOR_EPOCH, NO_OFFSET
from kaudit.model.finding import Confidence, Explanation, Finding


class Surroundings(Struct, frozen=True):
    """What the log before a snapshot's offset still holds.

    `first_offset`: of its first batch. `whole`: nothing is missing from there on, by compaction, damage or a lost
    segment. `log_start`: offsets below may be forgotten.
    """

    first_offset: int
    whole: bool
    log_start: int


class Comparison(Struct, frozen=True):
    """One producer in a snapshot: what is stored, and what a replica of each kind of version, oldest first, would write.

    `present`: the batch that ends at the stored last offset lies in the log. `may_expire`: what is not stored may have
    been dropped for being idle.
    """

    file: str
    offset: int
    producer_id: int
    stored: SnapshotEntry | None
    expected: Sequence[SnapshotEntry]
    present: bool
    may_expire: bool
    surroundings: Surroundings


def report_snapshots(context: Context, comparisons: Sequence[Comparison]) -> list[Finding]:
    """Report the entries that neither expiry, the broker's version nor data that is gone explains."""
    found = []
    for comparison in comparisons:
        contradiction = _contradiction(context, comparison)
        if contradiction is not None:
            found.append(_finding(context, comparison, *contradiction))
    return found


def _contradiction(context: Context, comparison: Comparison) -> tuple[str, Confidence] | None:
    """Return what cannot be, in words, and how sure that is."""
    stored, expected = comparison.stored, comparison.expected
    if stored is None:
        return _missing(comparison)
    runs_ahead = max(stored.last_offset, stored.current_txn_first_offset) >= comparison.offset
    if runs_ahead:
        if context.versions.any(lambda profile: profile.snapshot_may_run_ahead):
            return None
        return "holds a batch from beyond the snapshot's own offset", Confidence.CERTAIN
    if any(entry == stored for entry in expected):
        return None
    if not expected:
        return _unheard_of(comparison)
    contradictions = [_different(stored, entry, comparison) for entry in expected]
    return None if None in contradictions else contradictions[-1]


def _missing(comparison: Comparison) -> tuple[str, Confidence] | None:
    newest = comparison.expected[-1]
    below = newest.last_offset < comparison.surroundings.log_start
    if below or (comparison.may_expire and newest.current_txn_first_offset == NO_OFFSET):
        return None  # its data is deleted, it may have expired, or it is known by a marker alone
    if newest.current_txn_first_offset != NO_OFFSET:
        return "lacks a producer whose transaction is open, which never expires", Confidence.CERTAIN
    return "lacks a producer while one that was idle for longer is kept", Confidence.LIKELY


def _unheard_of(comparison: Comparison) -> tuple[str, Confidence] | None:
    stored, around = comparison.stored, comparison.surroundings
    assert stored is not None
    if around.whole and (around.first_offset == 0 or stored.last_offset >= max(around.first_offset, around.log_start)):
        return "names a producer that wrote nothing there", Confidence.CERTAIN
    return None


def _different(stored: SnapshotEntry, ours: SnapshotEntry, comparison: Comparison) -> tuple[str, Confidence] | None:
    """Return what cannot be in a snapshot of the one kind of version that writes `ours`."""
    around = comparison.surroundings
    if NO_OFFSET < stored.last_offset < ours.last_offset:
        return (
            f"ends at offset {stored.last_offset}, the producer's last batch at {ours.last_offset}",
            Confidence.CERTAIN,
        )
    if stored.last_offset > ours.last_offset and not comparison.present:
        if around.whole and stored.last_offset >= max(around.first_offset, around.log_start):
            told = f"names a batch that ends at offset {stored.last_offset}, where the producer has none"
            return told, Confidence.CERTAIN
        return None  # its last batch was compacted or deleted since
    for name, words in _FIELDS:
        value, own = getattr(stored, name), getattr(ours, name)
        if value != own and not _derived_from_what_is_gone(name, stored, ours, around):
            return f"says {words} {value}, the log {own}", Confidence.CERTAIN
    return None


_FIELDS = (
    ("last_sequence", "last sequence"),
    ("producer_epoch", "epoch"),
    ("offset_delta", "offset delta"),
    ("current_txn_first_offset", "transaction open since offset"),
    ("coordinator_epoch", "coordinator epoch"),
    ("timestamp", "timestamp"),
)


def _derived_from_what_is_gone(name: str, stored: SnapshotEntry, newest: SnapshotEntry, around: Surroundings) -> bool:
    """Tell whether a marker, or data, that the log does not hold any more may have set this field."""
    if name == "coordinator_epoch" and stored.coordinator_epoch == NO_COORDINATOR_EPOCH:
        return True  # forgotten, by expiry or with its snapshot, and started anew
    if around.whole and around.first_offset == 0:
        return False
    if not around.whole:
        return stored.last_offset == NO_OFFSET or name in ("current_txn_first_offset", "coordinator_epoch", "timestamp")
    if name == "current_txn_first_offset":
        return NO_OFFSET < stored.current_txn_first_offset < max(around.first_offset, around.log_start)
    return name == "coordinator_epoch" and newest.coordinator_epoch == NO_COORDINATOR_EPOCH


def _finding(context: Context, comparison: Comparison, contradiction: str, confidence: Confidence) -> Finding:
    stored = comparison.stored
    expected = comparison.expected[-1] if comparison.expected else None
    entry = stored or expected
    assert entry is not None
    segment = max((name for name in context.segments if int(name[:20]) < comparison.offset), default=None)
    return context.side_finding(
        "KA502",
        f"{comparison.file}, the producers' state at offset {comparison.offset}, {contradiction} (producer {entry.producer_id})",
        name=comparison.file,
        segment=segment,
        offset=comparison.offset,
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        confidence=confidence,
        anchor=comparison.file,
        evidence={
            "rule": "a snapshot holds of every producer what the log before its offset says, newest batch only "
            "(ProducerStateManager.takeSnapshot); the broker loads it in place of reading the log",
            "stored": None if stored is None else stored._asdict(),
            "replayed": None if expected is None else expected._asdict(),
        },
        explanations=(
            Explanation(
                "the file comes from another replica, another time, or was edited: copies and restores do that"
            ),
            Explanation("the log was cut back or changed behind the broker's back after the snapshot was written"),
            Explanation("a defect of the broker that wrote it (KAFKA-6683 before 1.0.2)"),
        ),
        following=(context.timeline_command(entry.producer_id),),
    )
