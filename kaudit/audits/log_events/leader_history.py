"""Leaders, followers and ends of logs that were cut off, partition by partition, as lines of brokers' logs say."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.audits.log_events.placement import by_broker
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.evidence_parts import EventEvidence
from kaudit.model.leader_epochs import NO_LEADER
from kaudit.model.record_loss import (
    CutBy,
    FollowerStart,
    LeaderHistory,
    LeaderStart,
    LogCut,
    RefusedSequence,
    SegmentDeletion,
)

_Kind = LogEventKind
_METADATA_LOG: Final = "__cluster_metadata"
"""What its replicas cut off was never committed: the quorum elects no other leaders (KIP-595)."""
_AT_LEAST: Final = (_Kind.SNAPSHOT_WRITTEN, _Kind.LOG_ROLLED)
"""Events that state the log's end when they happened, while it grows."""
_OF_COPIES: Final = frozenset(
    {_Kind.REMOTE_COPY_BEGUN, _Kind.REMOTE_COPIED, _Kind.REMOTE_COPY_FAILED, _Kind.BECAME_FOLLOWER}
)
_ELECTIONS: Final = frozenset({_Kind.LEADER_ELECTED, _Kind.UNCLEAN_LEADER_ELECTED})
_IN_SYNC: Final = re.compile(r"isr=List\(([\d, ]+)\)|,ISR:(\d[\d,]*),")
"""The replicas in sync that a controller with ZooKeeper writes down with a leader (LeaderAndIsr.toString)."""
_LOADED: Final = frozenset({"log-loaded", "log-load-old"})
_SHUT_DOWN: Final = "stopped-zk"
"""The last line of a clean shutdown, after snapshots were written at the ends of all logs."""
_BEGINS_ANEW: Final = frozenset({"truncated-fully", "fetch-offset-reset-start"})
"""Patterns of TRUNCATED after which no offset is missing that others have: a log that begins again at its leader's start."""
_BY_LEADER_EPOCH: Final = "truncated-leader-epoch"
_STATE_HIGH_WATERMARK: Final = frozenset(
    {"high-watermark-lowered", "high-watermark-of-leader", "truncated-below-high-watermark"}
)
_STATES_RECOVERY: Final = frozenset({"became-leader-topic-id"})
"""Lines of releases that have KIP-704."""


_CUTS: Final = frozenset(
    {
        *("truncated", "truncated-old", "truncated-leader-epoch", "truncated-high-watermark"),
        *("truncated-to-high-watermark", "truncated-unknown-epoch", *_STATE_HIGH_WATERMARK),
        *("fetch-offset-reset-end", "fetch-offset-reset-end-old"),
    }
)
_RECOVERS: Final = "segment-recovered"
_OPENS_WITH_MARK: Final = "initial-high-watermark"
_BEGINS_TO_FOLLOW_MS: Final = 10_000
"""A broker that starts follows its leaders within seconds."""
_MOVES_TO_ANOTHER_DISK: Final = "[ReplicaAlterLogDirsThread-"
"""A line of this thread is about a log in a -future directory, which follows the broker's own."""
_CLEANER: Final = re.compile(r"(?:Cleaner |kafka-log-cleaner-thread-)(\d{1,4})\b")
_ASIDE: Final = re.compile(r"-(?:future|delete|stray), ")
"""The end of a directory's name: it is not the partition's own (UnifiedLog.FutureDirSuffix and others)."""
_PROVES_CUT: Final = "truncated"
"""The line of a log that was longer: else it says that truncating has no effect (UnifiedLog.truncateTo). A fetcher's says what it asks for."""


class Shown(NamedTuple):
    """How an event is shown as evidence, and its time by the batches' clock, ms, None where that is not known."""

    evidence: Callable[[LogEvent], EventEvidence]
    time: Callable[[LogEvent], int | None]


class _Replica(Struct):
    """One broker's replica of a partition while its lines are read: its log's end as far as they say it, and its last cut."""

    broker: str
    history: LeaderHistory
    shown: Shown
    end: int | None = None
    is_exact: bool = False
    """Nothing was appended since the line that says `end`: a replica that begins to follow truncates before it fetches."""
    stated_by: EventEvidence | None = None
    cut: int | None = None
    """The number of its last cut, while nothing was appended since."""
    stopped: bool = False
    """The broker was asked to stop, and no line about its next start says that it recovered the log."""
    mark: LogEvent | None = None
    """The line of the high watermark with which the log was opened after a clean stop."""
    anew: bool = False
    """It made its log although it had had one before."""
    followed: int | None = None
    """The leader epoch of the leader that it follows."""
    future_at: int | None = None
    """Where the -future log is truncated by the line before: the line of that log names its disk, as its own log's does."""
    in_sync: set[int] = field(default_factory=set)
    """The replicas that its broker, as the controller, wrote down last."""
    failed: bool = False
    """A log directory of its broker failed before it stopped: what was being written then had not been answered."""

    def take(self, event: LogEvent) -> None:
        """Take the next line of the broker about the partition."""
        if event.event in _OF_COPIES:
            self.history.copies.append((self.broker, event, self.shown.evidence(event)))
        if event.pattern == _RECOVERS:
            self.stopped = False
        elif event.pattern == _OPENS_WITH_MARK:
            self.stopped, self.mark = False, event if self.stopped else None
        elif event.event in _ELECTIONS:
            self._elected(event)
        elif event.event is _Kind.LOG_CREATED:
            self.anew = self.broker in self.history.seen_by
            if self.end is None:
                self.history.created_by.add(self.broker)
            self.history.seen_by.add(self.broker)
            self._shorter(event, 0)
        elif event.event is _Kind.LOG_DELETED:
            self.history.removed = True
            self.end, self.is_exact, self.stated_by, self.cut = None, False, None, None
        elif event.event is _Kind.KEYLESS_REMOVED and event.records is not None:
            self.history.keyless.append((self.broker, event.records, self.shown.evidence(event)))
        elif event.offset is not None and not _ASIDE.search(event.text):
            self._at_offset(event, event.offset)

    def stops(self, event: LogEvent) -> None:
        """Take a line of its broker's shutdown: once that is complete, the snapshot that was written then is at the log's end."""
        self.stopped = True
        if event.pattern == _SHUT_DOWN:
            self.is_exact = self.is_exact or self.end is not None

    def _shorter(self, event: LogEvent, offset: int) -> None:
        """Take a log that a broker loads or makes anew; what it had before and lacks now is lost from this replica."""
        end, is_exact, stated_by = self.end, self.is_exact, self.stated_by
        self._ends_at(offset, event, is_exact=True)
        if end is not None and end > offset and stated_by is not None:
            lines = [stated_by, self.shown.evidence(event)]
            exact_end = end if is_exact else None
            self.history.cuts.append(
                LogCut(self.broker, offset, exact_end, end, CutBy.LOADED, self.shown.time(event), lines)
            )

    def _damaged(self, event: LogEvent, offset: int) -> None:
        """Take a log that is recovered up to damaged bytes: what followed them is gone, and no line says how much that was."""
        if not self.failed and (self.end is None or self.end <= offset):
            cut = LogCut(
                self.broker, offset, None, None, CutBy.LOADED, self.shown.time(event), [self.shown.evidence(event)]
            )
            self.history.cuts.append(cut)
        self.failed = False

    def _elected(self, event: LogEvent) -> None:
        """Take a controller's line about a leader; with ZooKeeper it does not say that one had not been in sync."""
        epoch, leader = event.leader_epoch, event.leader
        if epoch is not None and leader is not None:
            self.history.elected[epoch] = leader
        outside = leader is not None and leader != NO_LEADER and bool(self.in_sync) and leader not in self.in_sync
        if outside or event.event is _Kind.UNCLEAN_LEADER_ELECTED:
            self.history.unclean.append(epoch)
        if (written := _IN_SYNC.search(event.text)) is not None:
            self.in_sync = {int(node) for node in re.findall(r"\d+", written[0].replace("isr", ""))}

    def _refused(self, event: LogEvent, _: int) -> None:
        first, last, producer_id = event.base_sequence, event.last_sequence, event.producer_id
        if first is not None and last is not None and producer_id is not None and first > last + 1:
            at, shown = self.shown.time(event), self.shown.evidence(event)
            self.history.refused.append(RefusedSequence(self.broker, producer_id, first - last - 1, at, shown))

    def _at_offset(self, event: LogEvent, offset: int) -> None:
        self.history.seen_by.add(self.broker)
        kind = event.event
        take = {
            _Kind.TRUNCATED: self._truncated,
            _Kind.CORRUPTION: self._damaged,
            _Kind.OUT_OF_ORDER_SEQUENCE: self._refused,
            _Kind.SEGMENT_EXPIRED: self._expired,
        }.get(kind)
        if take is not None:
            take(event, offset)
        elif kind in _AT_LEAST:
            # a log that is truncated gets a snapshot at its new end
            if self.cut is None or offset > (self.end or 0):
                self._ends_at(max(offset, self.end or 0), event, is_exact=False)
        elif event.pattern in _LOADED:
            self._shorter(event, offset)
        elif kind is _Kind.LOG_START_OFFSET_MOVED:
            self.history.log_starts.append(offset)
        elif kind is _Kind.BECAME_LEADER and event.leader_epoch is not None:
            self._ends_at(offset, event, is_exact=False)
            self.history.leaders.append(
                LeaderStart(
                    self.broker,
                    event.leader_epoch,
                    offset,
                    self.shown.time(event),
                    event.pattern in _STATES_RECOVERY,
                    self.shown.evidence(event),
                )
            )
        elif kind is _Kind.BECAME_FOLLOWER and event.leader_epoch is not None:
            self._ends_at(offset, event, is_exact=True)
            self.followed = event.leader_epoch
            self.history.followers.append(
                FollowerStart(self.broker, event.leader_epoch, offset, self.shown.time(event), event.leader, self.anew)
            )

    def _expired(self, event: LogEvent, offset: int) -> None:
        modified, newest, retention = event.modified_ms, event.newest_record_ms, event.retention_ms
        if modified is not None and newest is not None and retention is not None:
            shown = self.shown.evidence(event)
            self.history.deletions.append(SegmentDeletion(self.broker, offset, modified, newest, retention, shown))

    def _ends_at(self, offset: int, event: LogEvent, *, is_exact: bool) -> None:
        self.end, self.is_exact, self.cut = offset, is_exact, None
        self.stated_by = self.shown.evidence(event)

    def _beyond_mark(self, cut: LogEvent) -> bool:
        """Whether all that is cut off lies beyond the high watermark that a clean stop wrote down, nothing having been appended since."""
        mark = self.mark
        if mark is None or mark.offset is None or cut.offset is None or None in (mark.timestamp_ms, cut.timestamp_ms):
            return False
        since = (cut.timestamp_ms or 0) - (mark.timestamp_ms or 0)
        return mark.offset <= cut.offset and 0 <= since <= _BEGINS_TO_FOLLOW_MS

    def _truncated(self, event: LogEvent, offset: int) -> None:
        future_at, self.future_at = self.future_at, None
        if _MOVES_TO_ANOTHER_DISK in event.text:
            self.future_at = offset
            return
        if event.pattern == _PROVES_CUT and future_at == offset:
            return
        if event.pattern in _BEGINS_ANEW:
            self._ends_at(offset, event, is_exact=True)
        if event.pattern not in _CUTS:
            return
        cuts, states_mark = self.history.cuts, event.pattern in _STATE_HIGH_WATERMARK
        by_epoch = event.pattern == _BY_LEADER_EPOCH
        if self.cut is not None and cuts[self.cut].offset == offset:
            # a truncation has several lines: the fetcher's, the log's, that of the high watermark
            cut = cuts[self.cut]
            cuts[self.cut] = replace(
                cut,
                at_least=event.former_end if states_mark else cut.at_least,
                by=CutBy.LEADER_EPOCH if by_epoch else cut.by,
                events=[*cut.events, self.shown.evidence(event)],
            )
            return
        end, is_exact = self.end, self.is_exact
        if event.former_end is not None and not states_mark:
            end, is_exact = event.former_end, True
        if end is None or not is_exact:
            if event.pattern != _PROVES_CUT and not states_mark:
                return
            end = None
        elif end <= offset:
            return
        lines = [] if end is None or end != self.end or self.stated_by is None else [self.stated_by]
        self._ends_at(offset, event, is_exact=True)
        self.cut = len(cuts)
        mark = event.former_end if states_mark else None
        lines.append(self.shown.evidence(event))
        by = CutBy.LEADER_EPOCH if by_epoch else CutBy.FOLLOWING
        at = self.shown.time(event)
        beyond = self._beyond_mark(event)
        cuts.append(
            LogCut(self.broker, offset, end, mark, by, at, lines, nothing_committed=beyond, followed=self.followed)
        )


def leader_histories(events: Iterable[LogEvent], shown: Shown) -> Mapping[tuple[str, int], LeaderHistory]:
    """Return the history of each partition that lines of brokers' logs name, by topic and partition."""
    histories: dict[tuple[str, int], LeaderHistory] = {}
    for (home, broker_id), own in by_broker(event for event in events if event.origin == "server").items():
        broker = (home or "a broker") if broker_id is None else f"broker {broker_id}"
        replicas: dict[tuple[str, int], _Replica] = {}
        cleaned: dict[str | None, _Replica] = {}
        for event in own:
            _take_of_all(event, replicas.values(), cleaned)
            if event.topic is None or event.partition is None or event.topic == _METADATA_LOG:
                continue
            key = event.topic, event.partition
            if key not in replicas:
                history = histories.setdefault(key, LeaderHistory(*key))
                replicas[key] = _Replica(broker, history, shown)
            replicas[key].take(event)
            if event.event is _Kind.LOG_CLEANING:
                cleaned[_cleaner(event)] = replicas[key]
        for replica in replicas.values():
            if replica.history.copies:
                replica.history.until[broker] = shown.evidence(own[-1])
    return histories


def _take_of_all(event: LogEvent, replicas: Iterable[_Replica], cleaned: Mapping[str | None, _Replica]) -> None:
    """Take a line that names no partition: it is about all of a broker's replicas, or the one that a thread `cleaned` last."""
    if event.event is _Kind.STOPPED:
        for replica in replicas:
            replica.stops(event)
    elif event.event is _Kind.LOG_DIR_FAILED:
        for replica in replicas:
            replica.failed = True
    elif event.event is _Kind.KEYLESS_REMOVED and (thread := _cleaner(event)) in cleaned:
        cleaned[thread].take(event)


def _cleaner(event: LogEvent) -> str | None:
    """Return the number of the cleaner's thread that wrote a line, as the line says it."""
    found = _CLEANER.search(event.text)
    return None if found is None else found[1]
