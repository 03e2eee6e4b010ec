"""Leaders, followers and ends of logs that were cut off, partition by partition, as lines of brokers' logs say."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.log_events.placement import by_broker
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.evidence_parts import EventEvidence
from kaudit.model.record_loss import FollowerStart, LeaderHistory, LeaderStart, LogCut

_Kind = LogEventKind
_METADATA_LOG: Final = "__cluster_metadata"
"""What its replicas cut off was never committed: the quorum elects no other leaders (KIP-595)."""
_STATES_END: Final = (_Kind.SNAPSHOT_WRITTEN, _Kind.LOG_ROLLED)
_NO_EFFECT: Final = "truncated-nothing"
_CUT_NOTHING: Final = frozenset({_NO_EFFECT, "truncated-fully", "fetch-offset-reset-start", "fetch-partition-failed"})
"""Patterns of TRUNCATED after which no offset is missing that others have: a log that begins again at its leader's start."""
_BY_LEADER_EPOCH: Final = "truncated-leader-epoch"
_STATE_HIGH_WATERMARK: Final = frozenset({"high-watermark-lowered", "truncated-below-high-watermark"})
_STATES_RECOVERY: Final = frozenset({"became-leader-topic-id"})
"""Lines of releases that have KIP-704."""


_RECOVERS: Final = "segment-recovered"
_STATES_MARK: Final = "initial-high-watermark"
_NOT_OF_END: Final = frozenset({_RECOVERS, _STATES_MARK})
"""The end of a log may lie beyond its high watermark."""
_BEGINS_TO_FOLLOW_MS: Final = 10_000
"""A broker that starts follows its leaders within seconds."""
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

    def take(self, event: LogEvent) -> None:
        """Take the next line of the broker about the partition."""
        offset, kind = event.offset, event.event
        if kind is _Kind.UNCLEAN_LEADER_ELECTED:
            self.history.unclean.append(event.leader_epoch)
        elif offset is None or event.pattern in _NOT_OF_END or _ASIDE.search(event.text):
            return
        elif kind is _Kind.TRUNCATED:
            self._truncated(event, offset)
        elif kind in _STATES_END:
            # a log that is truncated gets a snapshot at its new end
            if self.cut is None or offset > (self.end or 0):
                self._ends_at(max(offset, self.end or 0), event, is_exact=False)
        elif kind is _Kind.LOG_LOADED:
            self._loaded(event, offset)
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
            self.history.followers.append(FollowerStart(self.broker, event.leader_epoch, offset))

    def note_stop(self, event: LogEvent) -> None:
        """Note from a line about the partition how its broker had stopped, and with which high watermark it starts."""
        if event.pattern == _RECOVERS:
            self.stopped = False
        elif event.pattern == _STATES_MARK:
            self.stopped, self.mark = False, event if self.stopped else None

    def _loaded(self, event: LogEvent, offset: int) -> None:
        before, stated_by = self.end, self.stated_by
        self._ends_at(offset, event, is_exact=True)
        if before is not None and stated_by is not None and offset < before:
            lines = [stated_by, self.shown.evidence(event)]
            cut = LogCut(self.broker, offset, before, None, False, self.shown.time(event), lines, at_start=True)
            self.history.cuts.append(cut)

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
        if event.pattern in _CUT_NOTHING:
            if event.pattern != _NO_EFFECT:
                self._ends_at(offset, event, is_exact=True)
            return
        cuts, states_mark = self.history.cuts, event.pattern in _STATE_HIGH_WATERMARK
        by_epoch = event.pattern == _BY_LEADER_EPOCH
        if self.cut is not None and cuts[self.cut].offset == offset:
            # a truncation has several lines: the fetcher's, the log's, that of the high watermark
            cut = cuts[self.cut]
            cuts[self.cut] = replace(
                cut,
                high_watermark=event.former_end if states_mark else cut.high_watermark,
                by_leader_epoch=cut.by_leader_epoch or by_epoch,
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
        at = self.shown.time(event)
        cuts.append(
            LogCut(self.broker, offset, end, mark, by_epoch, at, lines, nothing_committed=self._beyond_mark(event))
        )


def leader_histories(events: Iterable[LogEvent], shown: Shown) -> Mapping[tuple[str, int], LeaderHistory]:
    """Return the history of each partition that lines of brokers' logs name, by topic and partition."""
    histories: dict[tuple[str, int], LeaderHistory] = {}
    for (home, broker_id), own in by_broker(event for event in events if event.origin == "server").items():
        broker = home if broker_id is None else f"broker {broker_id}"
        replicas: dict[tuple[str, int], _Replica] = {}
        for event in own:
            if event.event is _Kind.STOPPED:
                for replica in replicas.values():
                    replica.stopped = True
            if event.topic is None or event.partition is None or event.topic == _METADATA_LOG:
                continue
            key = event.topic, event.partition
            if key not in replicas:
                history = histories.setdefault(key, LeaderHistory(*key, [], [], [], []))
                replicas[key] = _Replica(broker, history, shown)
            replicas[key].note_stop(event)
            replicas[key].take(event)
    return histories
