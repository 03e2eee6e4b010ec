"""Leaders, followers and ends of logs that were cut off, partition by partition, as lines of brokers' logs say."""

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

    def take(self, event: LogEvent) -> None:
        """Take the next line of the broker about the partition."""
        offset, kind = event.offset, event.event
        if kind is _Kind.UNCLEAN_LEADER_ELECTED:
            self.history.unclean.append(event.leader_epoch)
        elif offset is None:
            return
        elif kind is _Kind.TRUNCATED:
            self._truncated(event, offset)
        elif kind in _STATES_END:
            # a log that is truncated gets a snapshot at its new end
            if self.cut is None or offset > (self.end or 0):
                self._ends_at(max(offset, self.end or 0), event, is_exact=False)
        elif kind is _Kind.LOG_LOADED:
            self._ends_at(offset, event, is_exact=True)
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

    def _ends_at(self, offset: int, event: LogEvent, *, is_exact: bool) -> None:
        self.end, self.is_exact, self.cut = offset, is_exact, None
        self.stated_by = self.shown.evidence(event)

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
        cuts.append(LogCut(self.broker, offset, end, mark, by_epoch, self.shown.time(event), lines))


def leader_histories(events: Iterable[LogEvent], shown: Shown) -> Mapping[tuple[str, int], LeaderHistory]:
    """Return the history of each partition that lines of brokers' logs name, by topic and partition."""
    histories: dict[tuple[str, int], LeaderHistory] = {}
    for (home, broker_id), own in by_broker(event for event in events if event.origin == "server").items():
        broker = home if broker_id is None else f"broker {broker_id}"
        replicas: dict[tuple[str, int], _Replica] = {}
        for event in own:
            if event.topic is None or event.partition is None or event.topic == _METADATA_LOG:
                continue
            key = event.topic, event.partition
            if key not in replicas:
                history = histories.setdefault(key, LeaderHistory(*key, [], [], [], []))
                replicas[key] = _Replica(broker, history, shown)
            replicas[key].take(event)
    return histories
