"""Records that brokers cut off the ends of logs: what lines of their logs say, and what of it is nowhere any more."""

import enum
from collections.abc import Sequence

from msgspec import Struct, field

from kaudit.model.application_logs import LogEvent
from kaudit.model.evidence_parts import EventEvidence, ShownEvents


class LeaderStart(Struct, frozen=True):
    """A broker began to lead: under `leader_epoch`, from `offset` on, its log's end; `at_ms` by the batches' clock, None if it is not known.

    `states_recovery`: brokers of its release say so when they were elected without having been in sync (KIP-704). `event` is the line.
    """

    broker: str
    leader_epoch: int
    offset: int
    at_ms: int | None
    states_recovery: bool
    event: EventEvidence


class FollowerStart(Struct, frozen=True):
    """A broker began to follow the leader of `leader_epoch`, with its log's end at `end_offset` (exclusive); `at_ms` as a leader's.

    `leader` is that broker's id: NO_LEADER where nobody led, None where the line does not say. `anew`: the broker had a log before, and
    began to follow with another one that it had just made.
    """

    broker: str
    leader_epoch: int
    end_offset: int
    at_ms: int | None
    leader: int | None = None
    anew: bool = False


class CutBy(enum.Enum):
    """How a log lost its end."""

    LEADER_EPOCH = "its leader had no record of its last leader epoch from there on (KIP-101)"
    FOLLOWING = "it followed a leader"
    LOADED = "the broker found less when it started: files were lost, or put back from an older copy"


class LogCut(Struct, frozen=True):
    """A broker cut its log off at `offset` (the first that went).

    `end_offset` is the log's end before that (exclusive), as the latest line before says it, None if none does; `at_least` an end or
    a high watermark that it had before, if a line says one. `nothing_committed`: all of it lay beyond the high watermark, which the
    broker wrote down when it was stopped. `followed` is the leader epoch of the leader that it followed, None where no line says it.
    `events` are the lines: that of its end, and those of the cut.
    """

    broker: str
    offset: int
    end_offset: int | None
    at_least: int | None
    by: CutBy
    at_ms: int | None
    events: Sequence[EventEvidence]
    nothing_committed: bool = False
    followed: int | None = None


class RefusedSequence(Struct, frozen=True):
    """A leader refused a producer's batch, at `at_ms`, because its log lacked `missing` sequences in front of it."""

    broker: str
    producer_id: int
    missing: int
    at_ms: int | None
    event: EventEvidence


class SegmentDeletion(Struct, frozen=True):
    """A broker deleted the segment that begins at `base_offset` because its newest record was older than `retention_ms`.

    `newest_record_ms` is that record's timestamp, `modified_ms` when the segment's file was written last; both ms since the epoch.
    """

    broker: str
    base_offset: int
    modified_ms: int
    newest_record_ms: int
    retention_ms: int
    event: EventEvidence


class LeaderHistory(Struct):
    """What lines of brokers' logs say of the leaders and followers of one partition, broker by broker in the order of their lines."""

    topic: str
    partition: int
    leaders: list[LeaderStart] = field(default_factory=list)
    followers: list[FollowerStart] = field(default_factory=list)
    cuts: list[LogCut] = field(default_factory=list)
    unclean: list[int | None] = field(default_factory=list)
    """The leader epochs of elections of replicas that were not in sync, None where a line does not name it."""
    elected: dict[int, int] = field(default_factory=dict)
    """By leader epoch the id of the broker that controllers say they elected, NO_LEADER of none."""
    created_by: set[str] = field(default_factory=set)
    """The brokers whose lines say that they made the log for the first time."""
    seen_by: set[str] = field(default_factory=set)
    """The brokers with lines about a log of the partition."""
    refused: list[RefusedSequence] = field(default_factory=list)
    removed: bool = False
    """A broker removed its whole log: its topic was deleted, or the replica moved."""
    deletions: list[SegmentDeletion] = field(default_factory=list)
    keyless: list[tuple[str, int, EventEvidence]] = field(default_factory=list)
    """Records without keys that log cleaners left out: the broker, how many, and the line."""
    log_starts: list[int] = field(default_factory=list)
    """Offsets that became the log start."""
    copies: list[tuple[str, LogEvent, EventEvidence]] = field(default_factory=list)
    """Copies to remote storage, and that a broker follows: then they are another's. Each with its broker and how it is shown."""
    until: dict[str, EventEvidence] = field(default_factory=dict)
    """The last line of each broker with copies."""


class CutRecords(Struct, frozen=True, kw_only=True):
    """Offsets from `first_offset` to `end_offset` (exclusive, None: not known) that replicas of a partition cut off.

    `leader_epoch` is the one that began there, None where no batch and no line shows it. Of the records some may have been sent
    again: `idempotent_sent_again`, of one batch of each producer id that wrote on, and `others_sent_again`, of producers without
    id. `records_lost_at_least` and `records_lost_at_most` (None: not known) follow from that. `raised_epochs` counts the
    producers that raised their epochs there. `unknown` names the evidence that is not there. `partition_read`: the partition's
    log is among the inputs. `back_with_less` are those of `brokers` that started with less than they had had.
    `began_ms` is when the leader epoch began, `cut_ms` the first time of a cut. `has_followers`: lines name
    replicas that have not followed the new leader yet.
    """

    topic: str
    partition: int
    first_offset: int
    end_offset: int | None
    leader_epoch: int | None
    brokers: Sequence[str]
    high_watermark: int | None
    idempotent_sent_again: int
    others_sent_again: int
    records_lost_at_least: int
    records_lost_at_most: int | None
    raised_epochs: int
    unclean: bool
    partition_read: bool
    back_with_less: Sequence[str]
    began_ms: int | None
    cut_ms: int | None
    shown: ShownEvents
    unknown: Sequence[str] = ()
    has_followers: bool = False


class ReportedChange(Struct, frozen=True):
    """A leader epoch of which logs of brokers show what was cut off at its beginning: nothing, or the offsets `cut`, in a finding of its own.

    Of `cut` only the first is known where no line says the end. `leader_epoch` is None where nothing shows which began there.
    """

    leader_epoch: int | None
    cut: range = range(0)


class FreshRecordsDeleted(Struct, frozen=True):
    """Retention deleted offsets `first_offset` to `end_offset` (exclusive, None: not known) of a partition when they had just been written.

    Their timestamps were older than `retention_ms` already then: the newest is `newest_record_ms`, and the last of them was
    written at `modified_ms`. `by_clock`: they were not, the broker's clock was ahead. `segments` counts the segments.
    """

    topic: str
    partition: int
    first_offset: int
    end_offset: int | None
    segments: int
    retention_ms: int
    newest_record_ms: int
    modified_ms: int
    by_clock: bool
    shown: ShownEvents


class KeylessRecordsRemoved(Struct, frozen=True):
    """The log cleaner removed `records` of a partition that had no keys, as far as the lines of one of its `brokers` say."""

    topic: str
    partition: int
    records: int
    brokers: Sequence[str]
    shown: ShownEvents


class FutureRecords(Struct, frozen=True):
    """Records of producers whose timestamps lie beyond the time at which they can have been written at the latest, `written_by_ms`.

    `records` of them lie at `first_offset` to `last_offset`, in segment `segment` (an index) and others, `segments` in all; `newest_ms`
    is the greatest timestamp, ms since the epoch. `kept_bytes` is the size of these segments. `broker_ahead`: a broker
    set some of the times (LogAppendTime).
    """

    first_offset: int
    last_offset: int
    records: int
    segment: int
    segments: int
    kept_bytes: int
    newest_ms: int
    written_by_ms: int
    broker_ahead: bool = False
