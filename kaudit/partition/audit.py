"""The audit of one partition: what the findings need, without rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.audits.repeats.restarts import MAX_PRODUCERS, MAX_RESTARTS, Restart
from kaudit.audits.sequences.expired_producers import idle_longest
from kaudit.audits.sequences.leader_changes import leader_changes
from kaudit.audits.sequences.raised_epochs import often_raised
from kaudit.audits.sidefiles.log_facts import LogFacts, SideFileReader
from kaudit.audits.sidefiles.partition_files import compare_side_files
from kaudit.audits.sidefiles.snapshot_states import Suspects
from kaudit.audits.transactions.marker_outcomes import Markers
from kaudit.deferred import Deferred
from kaudit.model.audit_clock import AppendTime
from kaudit.model.coverage import NO_LINES, Coverage, TextLines
from kaudit.model.damage import DamageKind, LeaderEpochRegression, MalformedBatch, MissingOffsets, PlacedDamage
from kaudit.model.digests import PartitionDigest
from kaudit.model.leader_epochs import LeaderChange
from kaudit.model.observation import Observation
from kaudit.model.producer_patterns import IdleProducer, RepeatedEpoch, RepeatedSession, Repeats, SharedProducerId
from kaudit.model.producer_state import TV2
from kaudit.model.result import CoverageGap, StateUse
from kaudit.model.side_files import SideFileFault
from kaudit.model.transactions import EmptyMarker, OpenTransaction
from kaudit.partition.coverage import Cleaning, cleaning_of, coverage_of
from kaudit.partition.digests import AuditedLog, partition_digest
from kaudit.partition.open_at_end import append_times, open_transactions
from kaudit.partition.replay import PartitionReplay
from kaudit.reading.batch_starts import BATCH_START
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.chunk_rows import Counts
from kaudit.reading.rows import LEADER_EPOCH_START, NO_TAILS, Rows
from kaudit.reading.unread_segments import UnreadSegments
from kaudit.source.layout import PartitionDirectory, Unreadable, count_older_snapshots

if TYPE_CHECKING:
    from kaudit.partition import cleaned_keys
else:
    cleaned_keys = Deferred("kaudit.partition.cleaned_keys")


class PartitionAudit(Struct):
    """Results of one partition: no rows, only what may be reported."""

    directory: PartitionDirectory
    counts: Counts
    observations: Sequence[Observation]
    dropped_observations: int
    missing: Sequence[MissingOffsets]
    damages: Sequence[PlacedDamage]
    unlisted: int
    regressions: Sequence[LeaderEpochRegression]
    opened: Sequence[OpenTransaction]
    compacted: bool
    log_end_offset: int | None
    producers: int
    runs: int
    has_tv2: bool
    still_growing: bool
    suspects: Sequence[Suspects] = ()
    snapshots_not_compared: int = 0
    idle: Sequence[IdleProducer] = ()
    append_times: Sequence[AppendTime] = ()
    """Of observed batches before which their producer may have been forgotten."""
    empty_marker: EmptyMarker | None = None
    unreadable: Sequence[Unreadable] = ()
    removed: Sequence[Unreadable] = ()
    """Segments that retention removed while the log was read."""
    malformed: Sequence[MalformedBatch] = ()
    producer_ids: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    coverage: Coverage | None = None
    """The account of its offsets; None of a partition that was compared and not audited."""
    side_facts: Sequence[SideFileFault] = ()
    """Faults of the files beside the segments."""
    coverage_gaps: frozenset[CoverageGap] = frozenset()
    text_lines: TextLines = NO_LINES
    failed_reads: Sequence[Unreadable] = ()
    """Files beside the segments that could not be read, and segments that could not be read a second time."""
    repeats: Repeats = field(default_factory=Repeats)
    decoded: bool = False
    """Every record was decoded."""
    restarts: Sequence[Restart] = ()
    """Where a producer begins after the end of others."""
    tails: Rows = NO_TAILS
    """Of producers that raised their epoch the last batches before it, of some; none when repeats have been looked for."""
    restarts_compared: int = 0
    """Those that were compared with the last records of others alone."""
    restarts_not_compared: int = 0
    restarts_not_exhausted: int = 0
    """Those before which there is more of the log than was searched for their first record."""
    repeated_sessions: Sequence[RepeatedSession] = ()
    leader_epochs: Rows = field(default_factory=lambda: np.empty(0, dtype=LEADER_EPOCH_START))
    """The first batch of every range with one leader epoch, in offset order."""
    repeated_epochs: Sequence[RepeatedEpoch] = ()
    bumps_not_compared: int = 0
    """Epoch bumps after which no repeated records were looked for, as there are too many."""
    leader_changes: Sequence[LeaderChange] = ()
    shared: Sequence[SharedProducerId] = ()
    """Producer ids with which two writers wrote."""
    last_states: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """The last epoch and sequence of the producer ids that logs name, or that raised their epochs often; the sequence -1 where none is of that epoch."""
    markers: Markers | None = None
    """For comparison with the coordinator's decisions, where those are among the inputs."""
    digest: PartitionDigest | None = None
    """Which batches were audited, where that is asked for; none of a text, nor where something could not be read."""
    continued_from: str | None = None
    """As in PartitionReplay."""
    state: StateUse | None = None
    """Use of a saved state, where there is one."""

    def relink_observations(self) -> None:
        """Make the observations of `shared` the same objects as those of `observations`, as checks expect; after decoding."""
        for number, found in enumerate(self.shared):
            left = iter(self.observations)
            own = [next(each for each in left if each == wanted) for wanted in found.observations]
            self.shared = [*self.shared[:number], replace(found, observations=own), *self.shared[number + 1 :]]

    def outline(self) -> "PartitionAudit":
        """Return what judging all partitions together needs of this one: no list that grows with what is wrong in it."""
        last = len(self.directory.segments) - 1
        at_end = [placed for placed in self.damages if placed.segment == last][:1]
        left_out = [placed for placed in self.damages if placed.damage.kind is DamageKind.LEFT_OUT]
        return replace(
            self,
            # whoever planned the reading has the list of segments
            directory=replace(self.directory, segments=(), side_files=()),
            **dict.fromkeys(_DETAILS, ()),
            damages=list({id(placed): placed for placed in (*left_out, *at_end)}.values()),
            regressions=self.regressions[:1],
            repeats=Repeats(),
            leader_epochs=self.leader_epochs[-1:],
            shared=[replace(found, observations=()) for found in self.shared],
        )


_DETAILS = (
    "observations",
    "missing",
    "suspects",
    "idle",
    "append_times",
    "malformed",
    "side_facts",
    "restarts",
    "repeated_sessions",
    "repeated_epochs",
    "leader_changes",
)
"""Fields that only the checks of the partition itself read."""


class Needs(Struct, frozen=True):
    """What the audit of all partitions needs of each beyond its observations: columns that grow with its ids and markers."""

    producer_ids: bool = True
    markers: bool = True
    states_of: Sequence[int] = ()
    """Producer ids whose last epoch and sequence are asked for."""
    digest_ranges: int = 0
    """Most ranges of offsets that digests of the batches are asked for, 0: none are."""


def close_partition(
    replay: PartitionReplay,
    open_source: OpenSource,
    *,
    compacted: bool,
    needs: Needs,
    unread: UnreadSegments,
) -> PartitionAudit:
    """Take from a finished replay what the findings need, its side files included. `compacted`: the user says so."""
    replay.continue_producers()
    rows = replay.transitions.table.rows
    files = SideFileReader(open_source)
    missing = replay.continuity.missing
    cleaning = None
    if compacted or replay.compacted:
        unseen = CoverageGap.COUNTS in replay.coverage_gaps
        cleaning = cleaning_of(replay.directory, replay.continuity, stated=compacted, unseen=unseen)
        if missing and not compacted and not unseen:
            cleaning = _as_keys_say(cleaning, replay.directory, files)
        missing = cleaning.explained(missing)
    compacted = cleaning is not None
    log = replace(_log_facts(replay, compacted=compacted, unread=bool(unread)), missing=missing)
    beside = compare_side_files(files, log)
    observations = replay.transitions.observations
    markers = None
    known = replay.spans.has_all_commits and CoverageGap.MARKERS not in replay.coverage_gaps
    if needs.markers and log.ended is not None and len(log.ended) and known and not log.damages:
        markers = Markers(replay.directory, log.ended)
    restarts, more_restarts = replay.starts.restarts(rows, MAX_PRODUCERS if replay.decoded else MAX_RESTARTS)
    return PartitionAudit(
        directory=replay.directory,
        counts=replay.counts,
        observations=observations,
        dropped_observations=replay.transitions.dropped_observations,
        missing=missing,
        damages=replay.continuity.damages,
        unlisted=replay.continuity.unlisted + replay.more_malformed + replay.repeats.unlisted,
        regressions=replay.continuity.epoch_regressions(),
        opened=open_transactions(replay, whole=not unread),
        compacted=compacted,
        log_end_offset=replay.log_end_offset,
        producers=len(rows),
        runs=replay.transitions.runs,
        # without the markers' types, an epoch raised by an abort looks the same
        has_tv2=bool((rows["flags"] & TV2 != 0).any()) and CoverageGap.MARKERS not in replay.coverage_gaps,
        still_growing=replay.still_growing,
        suspects=replay.snapshots.suspects,
        snapshots_not_compared=count_older_snapshots(replay.directory),
        idle=idle_longest(rows),
        append_times=append_times(replay, log.ended),
        empty_marker=replay.empty_marker,
        unreadable=unread.unreadable,
        removed=unread.removed,
        malformed=replay.malformed,
        coverage_gaps=replay.coverage_gaps,
        text_lines=replay.text_lines,
        producer_ids=rows["producer_id"].copy() if needs.producer_ids else np.empty(0, dtype=np.int64),
        side_facts=beside.faults,
        coverage=coverage_of(replay, log, cleaning, unread, beside.witnesses),
        failed_reads=[*files.unreadable, *replay.snapshots.unreadable],
        leader_epochs=log.epoch_steps,
        last_states=_last_states(rows, [*needs.states_of, *often_raised(observations)]),
        markers=markers,
        digest=_digest(replay, needs.digest_ranges, unread, compacted=compacted),
        continued_from=replay.continued_from,
        repeats=replay.repeats.result(),
        decoded=replay.decoded,
        restarts=restarts,
        tails=np.concatenate(replay.tails),
        restarts_not_compared=more_restarts,
        leader_changes=leader_changes(
            observations, log.epoch_steps, replay.transitions.leader_changes, compacted=compacted
        ),
    )


def _as_keys_say(cleaning: Cleaning, directory: PartitionDirectory, files: SideFileReader) -> Cleaning:
    """Return how far the log cleaner has been, nowhere where the keys of the records contradict that."""
    try:
        if not cleaned_keys.is_uncleaned(directory, files.open_source, cleaning.proven):
            return cleaning
    except OSError as error:
        files.unreadable.append(Unreadable(str(error.filename or directory.directory), error.strerror or str(error)))
    is_stated = directory.first_dirty_offset is not None
    return replace(cleaning, proven=0, end=0 if is_stated else cleaning.end)


def _digest(
    replay: PartitionReplay, most_ranges: int, unread: UnreadSegments, *, compacted: bool
) -> PartitionDigest | None:
    directory, continuity = replay.directory, replay.continuity
    is_text = any(segment.text is not None for segment in directory.segments)
    if not most_ranges or is_text or unread.unreadable:
        return None
    begins_at = continuity.first_offset if unread else None
    damaged = bool(continuity.damages)
    log = AuditedLog(directory, replay.log_end_offset, begins_at, compacted=compacted, damaged=damaged)
    return partition_digest(log, replay.audited, most_ranges)


def _last_states(rows: Rows, wanted: Sequence[int]) -> Mapping[int, tuple[int, int]]:
    own = rows[np.isin(rows["producer_id"], np.array(wanted, dtype=np.int64))] if wanted else rows[:0]
    names = ("producer_id", "epoch", "last_sequence")
    return {int(row[names[0]]): (int(row[names[1]]), int(row[names[2]])) for row in own}


def _log_facts(replay: PartitionReplay, *, compacted: bool, unread: bool) -> LogFacts:
    continuity = replay.continuity
    return LogFacts(
        directory=replay.directory,
        damages=continuity.damages,
        missing=continuity.missing,
        compacted=compacted,
        first_offset=continuity.first_offset,
        log_end_offset=replay.log_end_offset,
        has_legacy=bool(replay.counts.legacy_batches),
        epoch_regressions=bool(continuity.epoch_regressions()),
        epoch_steps=continuity.epoch_steps(),
        ended=replay.spans.ended() if replay.spans.has_all_aborts else None,
        unread=unread,
        only_records=not (compacted or replay.counts.markers),
        listed_aborts=replay.listed_aborts,
        batch_starts=np.concatenate([np.empty(0, dtype=BATCH_START), *replay.batch_starts]),
        read_to=replay.read_to,
    )
