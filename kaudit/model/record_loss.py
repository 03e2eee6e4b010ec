"""Records that brokers cut off the ends of logs: what lines of their logs say, and what of it is nowhere any more."""

from collections.abc import Sequence

from msgspec import Struct

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
    """A broker began to follow the leader of `leader_epoch`, with its log's end at `end_offset` (exclusive)."""

    broker: str
    leader_epoch: int
    end_offset: int


class LogCut(Struct, frozen=True):
    """A broker cut its log off at `offset` (the first that went).

    `end_offset` is the log's end before that (exclusive), as the latest line before says it, None if none does; `high_watermark`
    what a line says it was, if it went back. `by_leader_epoch`: the leader had no record of the follower's leader epoch from
    `offset` on (KIP-101). `at_start`: the broker cut nothing off, its log was shorter when it started than it had been before.
    `nothing_committed`: all of it lay beyond the high watermark, which the broker wrote down when it was stopped.
    `events` are the lines, in order: that of its end, and those of the truncation.
    """

    broker: str
    offset: int
    end_offset: int | None
    high_watermark: int | None
    by_leader_epoch: bool
    at_ms: int | None
    events: Sequence[EventEvidence]
    at_start: bool = False
    nothing_committed: bool = False


class LeaderHistory(Struct):
    """What lines of brokers' logs say of the leaders and followers of one partition, broker by broker in the order of their lines."""

    topic: str
    partition: int
    leaders: list[LeaderStart]
    followers: list[FollowerStart]
    cuts: list[LogCut]
    unclean: list[int | None]
    """The leader epochs of elections of replicas that were not in sync, None where a line does not name it."""


class CutRecords(Struct, frozen=True, kw_only=True):
    """Offsets from `first_offset` to `end_offset` (exclusive, None: not known) that replicas of a partition cut off.

    `leader_epoch` is the one that began there, None where no batch and no line shows it. Of the records some may have been sent
    again: `idempotent_sent_again`, of one batch of each producer id that wrote on, and `others_sent_again`, of producers without
    id. `records_lost_at_least` and `records_lost_at_most` (None: not known) follow from that. `raised_epochs` counts the
    producers that raised their epochs there. `unknown` names the evidence that is not there. `partition_read`: the partition's
    log is among the inputs. `at_start`: a broker started without them, and cut nothing off. `began_ms` is when the leader epoch began, `cut_ms` the first time of a cut.
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
    began_ms: int | None
    cut_ms: int | None
    shown: ShownEvents
    unknown: Sequence[str] = ()
    at_start: bool = False


class ReportedChange(Struct, frozen=True):
    """A leader epoch of which logs of brokers show what was cut off at its beginning: nothing, or what a finding of its own says."""

    leader_epoch: int
    nothing_cut: bool
