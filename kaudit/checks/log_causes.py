"""Causes of findings that leave events in the logs of brokers and clients; each check declares those of its own findings."""

from msgspec import Struct

from kaudit.model.application_logs import LogEvent, LogEventKind

_Kind = LogEventKind


class LogCause(Struct, frozen=True):
    """A cause of a finding, and the classes of events that show it. `of_producer`: the events name the finding's producer id.

    Otherwise they name its partition or broker. With `errors` they have one of these, and are not later than the finding. `at_any_time`:
    what they are about, if they state an offset, ends above the finding's first.
    """

    kinds: frozenset[LogEventKind]
    text: str
    of_producer: bool = True
    errors: frozenset[str] = frozenset()
    at_any_time: bool = False

    def is_shown_by(self, event: LogEvent) -> bool:
        """Whether an event is of these classes, and has one of the errors."""
        return event.event in self.kinds and (not self.errors or event.error in self.errors)


NOT_LEADER = LogCause(
    frozenset({_Kind.REQUEST_ERROR, _Kind.DELIVERY_FAILED, _Kind.RETRY}),
    "a batch before had come to a broker that was not yet, or no longer, the leader (NOT_LEADER_OR_FOLLOWER): later batches in flight "
    "reached the leader first, and what is tried again no longer fits (KAFKA-15591)",
    of_producer=False,
    errors=frozenset({"NOT_LEADER_OR_FOLLOWER"}),
)


def _cause(text: str, *kinds: LogEventKind, of_producer: bool = True) -> LogCause:
    return LogCause(frozenset(kinds), text, of_producer)


ELECTED = _cause(
    "a leader was elected that lacked records: what only the old leader had was cut off",
    *(_Kind.UNCLEAN_LEADER_ELECTED, _Kind.TRUNCATED),
    of_producer=False,
)
FORGOTTEN = _cause("the broker had forgotten the producer", _Kind.UNKNOWN_PRODUCER_ID, _Kind.PRODUCER_EXPIRED)
HEAD_REMOVED = _cause(
    "the log's start moved, and brokers before 2.4 forgot the producer with its records",
    _Kind.LOG_START_OFFSET_MOVED,
    of_producer=False,
)
REFUSED = _cause(
    "refused: the broker turned batches of this producer away as out of order, records before them had not reached it",
    _Kind.OUT_OF_ORDER_SEQUENCE,
)
OVERTAKEN = _cause(
    "a later batch reached the partition first, and the broker turned the earlier ones away as out of order",
    _Kind.OUT_OF_ORDER_SEQUENCE,
)
FENCED = _cause(
    "fenced: another instance had taken over, and the broker refused this one's batches",
    *(_Kind.INVALID_PRODUCER_EPOCH, _Kind.FENCED_PRODUCER),
)
BUMPED = _cause(
    "the client raised its epoch or began its sequences anew after an error",
    *(_Kind.EPOCH_BUMPED, _Kind.SEQUENCE_RESET, _Kind.FATAL_ERROR),
)
RETRIED = _cause(
    "the client sent batches again, or gave them up",
    *(_Kind.RETRY, _Kind.DELIVERY_TIMEOUT, _Kind.DELIVERY_FAILED),
    of_producer=False,
)
MOVED = _cause("the partition's leader had just changed", _Kind.LEADER_ELECTED, _Kind.BECAME_LEADER, of_producer=False)
OUT_OF_SYNC = _cause(
    "replicas had fallen out of sync, or their broker was lost",
    _Kind.ISR_SHRUNK,
    _Kind.BROKER_FENCED,
    of_producer=False,
)
COPY_FAILED = LogCause(
    frozenset({_Kind.REMOTE_COPY_FAILED}),
    "the broker could not copy segments to remote storage",
    of_producer=False,
    at_any_time=True,
)
DELETED_HERE = LogCause(
    frozenset({_Kind.LOCAL_LOG_START_MOVED}),
    "local retention deleted the segments from the broker's disk",
    of_producer=False,
    at_any_time=True,
)
CUT_OFF = _cause("the client lost its connections to brokers", _Kind.DISCONNECTED, of_producer=False)
SUCCEEDED = _cause("the transactional id was initialised again", _Kind.PRODUCER_ID_ASSIGNED)
UNCLEAN_STOP = _cause(
    "the broker recovered the log after it had not been shut down cleanly, or found it damaged",
    *(_Kind.RECOVERY, _Kind.CORRUPTION, _Kind.LOG_DIR_FAILED),
    of_producer=False,
)
TIMED_OUT = _cause("the coordinator aborted the transaction: it had timed out", _Kind.TRANSACTION_TIMEOUT)
COORDINATED = _cause(
    "the transaction's coordinator changed, or did not finish it",
    *(_Kind.TRANSACTION_STATE_CHANGE, _Kind.TRANSACTION_COORDINATOR_FENCED, _Kind.TRANSACTION_MARKER),
)
VERIFIED = _cause("the broker turned batches away that were not in a transaction", _Kind.INVALID_TXN_STATE)
SNAPSHOT = _cause(
    "the broker could not read a producer snapshot, and rebuilt its state",
    *(_Kind.SNAPSHOT_UNREADABLE, _Kind.RECOVERY),
    of_producer=False,
)
