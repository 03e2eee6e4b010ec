"""Which events are evidence for a finding, and what they say of its cause."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kaudit.audits.log_events.clock import ClockOffset
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.finding import Explanation, Finding

MAX_EVENTS = 5
"""Events listed of one finding."""
_BEFORE_MS, _AFTER_MS = 600_000, 600_000
"""An election, a recovery or a timeout is evidence if it happened so shortly before or after what it explains."""
_Kind = LogEventKind


class _Cause(Struct, frozen=True):
    """What events of these classes say of a finding. `of_producer`: they name its producer id; else its partition or broker."""

    kinds: frozenset[LogEventKind]
    text: str
    of_producer: bool = True


def _cause(text: str, *kinds: LogEventKind, of_producer: bool = True) -> _Cause:
    return _Cause(frozenset(kinds), text, of_producer)


_ELECTED = _cause(
    "a leader was elected that lacked records: what only the old leader had was cut off",
    *(_Kind.UNCLEAN_LEADER_ELECTED, _Kind.TRUNCATED),
    of_producer=False,
)
_FORGOTTEN = _cause("the broker had forgotten the producer", _Kind.UNKNOWN_PRODUCER_ID, _Kind.PRODUCER_EXPIRED)
_HEAD_REMOVED = _cause(
    "the log's start moved, and brokers before 2.4 forgot the producer with its records",
    _Kind.LOG_START_OFFSET_MOVED,
    of_producer=False,
)
_REFUSED = _cause(
    "refused: the broker turned batches of this producer away as out of order, records before them had not reached it",
    _Kind.OUT_OF_ORDER_SEQUENCE,
)
_OVERTAKEN = _cause(
    "a later batch reached the partition first, and the broker turned the earlier ones away as out of order",
    _Kind.OUT_OF_ORDER_SEQUENCE,
)
_FENCED = _cause(
    "fenced: another instance had taken over, and the broker turned this one's batches away",
    *(_Kind.INVALID_PRODUCER_EPOCH, _Kind.FENCED_PRODUCER),
)
_BUMPED = _cause(
    "the client raised its epoch or began its sequences anew after an error",
    *(_Kind.EPOCH_BUMPED, _Kind.SEQUENCE_RESET, _Kind.FATAL_ERROR),
)
_RETRIED = _cause(
    "the client sent batches again, or gave them up",
    *(_Kind.RETRY, _Kind.DELIVERY_TIMEOUT, _Kind.DELIVERY_FAILED),
    of_producer=False,
)
_UNCLEAN_STOP = _cause(
    "the broker recovered the log after it had not been shut down cleanly, or found it damaged",
    *(_Kind.RECOVERY, _Kind.CORRUPTION, _Kind.LOG_DIR_FAILED),
    of_producer=False,
)
_TIMED_OUT = _cause("the coordinator aborted the transaction: it had timed out", _Kind.TRANSACTION_TIMEOUT)
_COORDINATED = _cause(
    "the transaction's coordinator changed, or did not finish it",
    *(_Kind.TRANSACTION_STATE_CHANGE, _Kind.TRANSACTION_COORDINATOR_FENCED, _Kind.TRANSACTION_MARKER),
)
_VERIFIED = _cause("the broker turned batches away that were not in a transaction", _Kind.INVALID_TXN_STATE)
_SNAPSHOT = _cause(
    "the broker could not read a producer snapshot, and rebuilt its state",
    *(_Kind.SNAPSHOT_UNREADABLE, _Kind.RECOVERY),
    of_producer=False,
)
_CAUSES: Mapping[str, Sequence[_Cause]] = {
    **dict.fromkeys(
        (
            "crc-mismatch",
            "truncated-tail",
            "unparsable-bytes",
            "zero-filled",
            "malformed-batch",
            "offset-regression",
            "missing-segment",
            "unreadable-segment",
        ),
        (_UNCLEAN_STOP,),
    ),
    "offset-gap": (_ELECTED, _UNCLEAN_STOP),
    "leader-epoch-regression": (_ELECTED,),
    **dict.fromkeys(
        ("duplicate-batch", "old-duplicate", "overlapping-batch"),
        (_FORGOTTEN, _HEAD_REMOVED, _SNAPSHOT, _REFUSED, _RETRIED),
    ),
    "sequence-gap": (_ELECTED, _REFUSED, _FORGOTTEN, _UNCLEAN_STOP),
    **dict.fromkeys(("sequence-restart", "state-expired", "state-evicted"), (_FORGOTTEN, _HEAD_REMOVED, _BUMPED)),
    "unknown-start": (_FORGOTTEN, _HEAD_REMOVED, _BUMPED, _OVERTAKEN),
    "sequence-step-mismatch": (_REFUSED,),
    "stale-epoch": (_FENCED, _FORGOTTEN),
    "epoch-bump-nonzero": (_FENCED, _BUMPED),
    "fencing": (_TIMED_OUT, _FENCED, _REFUSED),
    "coordinator-epoch-regression": (_COORDINATED,),
    "bump-at-leader-change": (_ELECTED, _REFUSED, _BUMPED),
    **dict.fromkeys(("hanging-transaction", "open-transaction"), (_TIMED_OUT, _COORDINATED, _VERIFIED)),
    **dict.fromkeys(
        (
            "nontransactional-in-transaction",
            "late-transactional-write",
            "coordinator-disagrees",
            "illegal-state-transition",
            "torn-transaction",
        ),
        (_COORDINATED, _TIMED_OUT, _FENCED),
    ),
    **dict.fromkeys(("snapshot-corrupt", "snapshot-disagrees"), (_SNAPSHOT,)),
    **dict.fromkeys(
        (
            "checkpoint-disagrees",
            "leader-epoch-checkpoint-disagrees",
            "replicas-diverged",
            "replica-behind",
            "only-copy",
        ),
        (_ELECTED, _UNCLEAN_STOP),
    ),
    **dict.fromkeys(("repeated-across-sessions", "retry-duplicate", "reordered-retry"), (_RETRIED, _BUMPED)),
    "repeated-across-epochs": (_BUMPED, _REFUSED, _RETRIED),
}
"""By name of the check, what its findings' causes leave in the logs, the most specific first."""


class EventsOfLogs:
    """Events of logs, found again by what they concern. `clocks` by directory of the logs."""

    def __init__(self, events: Iterable[LogEvent], clocks: Mapping[str, ClockOffset]) -> None:
        self._clocks = clocks
        self._of_producer: dict[int, list[LogEvent]] = defaultdict(list)
        self._of_transaction: dict[str, list[LogEvent]] = defaultdict(list)
        self._of_partition: dict[tuple[str, int], list[LogEvent]] = defaultdict(list)
        self._of_nobody: list[LogEvent] = []
        for event in events:
            if event.producer_id is not None:
                self._of_producer[event.producer_id].append(event)
            if event.transactional_id is not None:
                self._of_transaction[event.transactional_id].append(event)
            if event.topic is not None and event.partition is not None:
                self._of_partition[event.topic, event.partition].append(event)
            elif event.producer_id is None and event.transactional_id is None:
                self._of_nobody.append(event)

    def all_explained(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings in their order, each as `explained` returns it."""
        return [self.explained(finding) for finding in findings]

    def explained(self, finding: Finding) -> Finding:
        """Return the finding with the events that speak for a cause, and these causes first."""
        causes: list[Explanation] = []
        shown: list[LogEvent] = []
        count = 0
        for cause in _CAUSES.get(finding.name, ()):
            events = self._of(cause, finding)
            if not events:
                continue
            count += len(events)
            shown += events[: max(MAX_EVENTS - len(shown), 1)]
            first = events[0]
            several = (
                f", and {len(events) - 1} more lines" if len(events) > 2 else ", and 1 more line" if events[1:] else ""
            )
            causes.append(Explanation(cause.text, speaks_for=(f"{file_name(first.path)}:{first.line}{several}",)))
        if not causes:
            return finding
        evidence = {
            **finding.evidence,
            "log_events": [self.as_evidence(event) for event in shown],
            "log_events_count": count,
        }
        return replace(finding, evidence=evidence, explanations=[*causes, *finding.explanations])

    def as_evidence(self, event: LogEvent) -> dict[str, object]:
        """Return an event as evidence has it; `timestamp` is by the batches' clock where the log's is known, ms."""
        return {
            "path": event.path,
            "line": event.line,
            "timestamp": self.batch_time(event),
            "event": event.event.value,
            "text": event.text.partition("\n")[0],
        }

    def batch_time(self, event: LogEvent) -> int | None:
        """Return when it happened by the clock of the batches, as far as that is known."""
        if event.timestamp_ms is None:
            return None
        clock = self._clocks.get(event.path.rpartition("/")[0])
        return event.timestamp_ms if clock is None else clock.batch_time(event.timestamp_ms)

    def _of(self, cause: _Cause, finding: Finding) -> list[LogEvent]:
        if cause.of_producer:
            return [
                event
                for event in self._of_its_producer(finding)
                if event.event in cause.kinds and _fits(event, finding)
            ]
        place = (finding.topic or "", -1 if finding.partition is None else finding.partition)
        near = [*self._of_partition.get(place, ()), *(self._of_nobody if finding.topic is not None else ())]
        return [event for event in near if event.event in cause.kinds and self._at_the_time(event, finding)]

    def _of_its_producer(self, finding: Finding) -> list[LogEvent]:
        named = finding.evidence.get("transactional_id")
        own = self._of_producer.get(finding.producer_id, []) if finding.producer_id is not None else []
        if not isinstance(named, str):
            return own
        known = {id(event) for event in own}
        return own + [event for event in self._of_transaction.get(named, ()) if id(event) not in known]

    def _at_the_time(self, event: LogEvent, finding: Finding) -> bool:
        first, last = _times(finding)
        at = self.batch_time(event)
        if at is None or first is None or last is None:
            return False
        known = event.zone_known or event.path.rpartition("/")[0] in self._clocks
        return known and first - _BEFORE_MS <= at <= last + _AFTER_MS


def _fits(event: LogEvent, finding: Finding) -> bool:
    """Whether an event of the producer is of the finding's partition and epoch, as far as it names them."""
    if event.topic is not None and (event.topic, event.partition) != (finding.topic, finding.partition):
        return False
    epochs = [epoch for epoch in (event.producer_epoch, event.expected_epoch) if epoch is not None]
    return not epochs or finding.producer_epoch is None or min(epochs) - 1 <= finding.producer_epoch <= max(epochs) + 1


def _times(finding: Finding) -> tuple[int | None, int | None]:
    """The times of the batches around a finding, ms."""
    batches = [finding.evidence.get(name) for name in ("previous", "offending", "next")]
    times = [batch.get("timestamp") for batch in batches if isinstance(batch, Mapping)]
    times += [finding.evidence.get(name) for name in ("first_timestamp", "last_timestamp")]
    known = [time for time in times if isinstance(time, int) and time >= 0]
    return (min(known), max(known)) if known else (None, None)


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]
