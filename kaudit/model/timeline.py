"""One producer's timeline in a partition: entries in offset order, and the state that a broker would have after them."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict

from kaudit.model.application_logs import LogEventKind
from kaudit.model.damage import MissingCause
from kaudit.model.json_record import JsonRecord

OUTCOMES = ("open", "committed", "aborted", "unknown")
"""How a transaction ended."""
_REFUSALS = frozenset(
    {
        LogEventKind.OUT_OF_ORDER_SEQUENCE,
        LogEventKind.INVALID_PRODUCER_EPOCH,
        LogEventKind.FENCED_PRODUCER,
        LogEventKind.UNKNOWN_PRODUCER_ID,
        LogEventKind.INVALID_TXN_STATE,
        LogEventKind.TRANSACTION_COORDINATOR_FENCED,
        LogEventKind.RECORD_REJECTED,
    }
)


class TimelineEntry(Struct, frozen=True, tag_field="kind"):
    """An entry of a timeline. Offsets are inclusive; timestamps are ms since the epoch, -1 for none."""

    @property
    def kind(self) -> str:
        """The kind of entry, as JSON names it."""
        return str(self.__struct_config__.tag)

    @property
    def first_timestamp(self) -> int | None:
        """The earliest timestamp, None for an entry that has none."""
        return None

    @property
    def last_timestamp(self) -> int | None:
        """The latest timestamp: that of an entry with one only."""
        return self.first_timestamp

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"kind": self.kind, **asdict(self)}


class EntryTransaction(JsonRecord, frozen=True):
    """The transaction that a run is part of: its first offset, and how it ended (of OUTCOMES)."""

    first_offset: int
    outcome: str


class RunEntry(TimelineEntry, frozen=True, tag="run"):
    """Consecutive data batches, without an end marker or an hour of silence between them."""

    first_offset: int
    last_offset: int
    first_sequence: int
    last_sequence: int
    producer_epoch: int
    batches: int
    records: int
    bytes: int
    min_timestamp: int
    max_timestamp: int
    is_transactional: bool
    first_leader_epoch: int
    last_leader_epoch: int
    transaction: EntryTransaction | None

    @property
    def first_timestamp(self) -> int:
        """The earliest timestamp."""
        return self.min_timestamp

    @property
    def last_timestamp(self) -> int:
        """The latest timestamp."""
        return self.max_timestamp

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        transaction = None if self.transaction is None else asdict(self.transaction)
        return {**super().to_dict(), "transaction": transaction}


class _AtOneOffset(TimelineEntry, frozen=True):
    offset: int | None

    @property
    def first_offset(self) -> int | None:
        """The offset."""
        return self.offset

    @property
    def last_offset(self) -> int | None:
        """The offset."""
        return self.offset


class MarkerEntry(_AtOneOffset, frozen=True, tag="marker"):
    """An end transaction marker. `type` is ABORT, COMMIT, or CLEANED (the log cleaner emptied it), None where a text does not say."""

    producer_epoch: int
    coordinator_epoch: int | None
    type: str | None
    timestamp: int

    @property
    def first_timestamp(self) -> int:
        """Its timestamp."""
        return self.timestamp


class MissingEntry(TimelineEntry, frozen=True, tag="missing"):
    """The number of missing offsets in a range, and their cause."""

    first_offset: int
    last_offset: int
    offsets: int
    cause: MissingCause

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {**super().to_dict(), "cause": self.cause.value}


class FindingEntry(_AtOneOffset, frozen=True, tag="finding"):
    """A finding about the producer; one without an offset comes before all other entries."""

    fingerprint: str
    code: str
    severity: str
    message: str


class EventEntry(_AtOneOffset, frozen=True, tag="event"):
    """An event of a broker's or a client's log; at no offset it stands after all others.

    `placed_by` says what decided its offset; `timestamp` is by the batches' clock. The JSON form leaves out fields with a
    default that are None.
    """

    placed_by: str
    timestamp: int | None
    event: str
    origin: str
    producer_epoch: int | None
    path: str
    line: int
    text: str
    base_sequence: int | None = None
    expected_sequence: int | None = None
    expected_epoch: int | None = None
    transactional_id: str | None = None
    leader_epoch: int | None = None
    error: str | None = None
    client: str | None = None

    @property
    def first_timestamp(self) -> int | None:
        """Its timestamp."""
        return self.timestamp

    @property
    def is_refusal(self) -> bool:
        """Whether a broker's log says that it turned a batch away."""
        return self.origin == "server" and self.event in _REFUSALS

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        document = super().to_dict()
        return {
            name: value for name, value in document.items() if value is not None or name not in OPTIONAL_EVENT_FIELDS
        }


OPTIONAL_EVENT_FIELDS = EventEntry.__struct_fields__[-len(EventEntry.__struct_defaults__) :]
Entry = RunEntry | MarkerEntry | MissingEntry | FindingEntry | EventEntry


class EndState(JsonRecord, frozen=True):
    """A producer's state after its last entry, as a broker would have it; None where it would remember nothing."""

    producer_epoch: int | None
    last_sequence: int | None
    last_offset: int | None
    last_timestamp: int | None
    coordinator_epoch: int | None
    current_txn_start_offset: int | None


class Timeline(JsonRecord, frozen=True):
    """One producer id's history in one partition replica."""

    topic: str
    partition: int
    replica: str
    producer_id: int
    transactional_id: str | None
    entries: Sequence[Entry]
    state: EndState

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {**asdict(self), "entries": [entry.to_dict() for entry in self.entries], "state": self.state.to_dict()}
