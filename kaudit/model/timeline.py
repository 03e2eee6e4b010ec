"""Producers' histories in partitions as columns: runs and markers are rows, what is rarer stands beside them as entries."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from kaudit.model.application_logs import LogEventKind
from kaudit.model.columns import Columns
from kaudit.model.damage import MissingCause
from kaudit.model.dtypes import dtype_of
from kaudit.model.schema import Bool, Int64

NONE = -(2**63)
"""The number that stands for None."""
RUN, MARKER, OTHER = range(3)
"""What a row is: `others` of Histories has those that are neither runs nor markers."""
TYPES = ("ABORT", "COMMIT", "CLEANED", None)
"""Of markers. CLEANED: the log cleaner emptied it; None: a text does not say."""
OUTCOMES = ("open", "committed", "aborted", "unknown")
"""How a transaction ended."""
AT_ONCE = 16_384
"""Rows after which the histories of further producer ids are others."""
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


class HistoryRow(NamedTuple):
    """A row of histories. Offsets are inclusive; timestamps are ms since the epoch, -1 for none; other numbers NONE.

    A run: consecutive data batches, without an end marker or an hour of silence between them. If it `is_transactional`, the
    transaction's first offset, and its outcome as an index into OUTCOMES. A marker has both offsets and timestamps; `type` is
    an index into TYPES.
    """

    row: Int64
    first_offset: Int64
    last_offset: Int64
    first_sequence: Int64
    last_sequence: Int64
    producer_epoch: Int64
    batches: Int64
    records: Int64
    bytes: Int64
    min_timestamp: Int64
    max_timestamp: Int64
    is_transactional: Bool
    first_leader_epoch: Int64
    last_leader_epoch: Int64
    transaction_first_offset: Int64
    transaction_outcome: Int64
    coordinator_epoch: Int64
    type: Int64

    @property
    def kind(self) -> str:
        """The kind of entry, as JSON names it."""
        return "run" if self.row == RUN else "marker"

    @property
    def transaction(self) -> dict[str, object] | None:
        """The JSON form of a run's transaction, None without one."""
        if not self.is_transactional:
            return None
        return {"first_offset": self.transaction_first_offset, "outcome": OUTCOMES[self.transaction_outcome]}

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        if self.row == RUN:
            numbers = zip(RUN_FIELDS, self[1:], strict=False)
            return {"kind": self.kind, **dict(numbers), "transaction": self.transaction}
        return {
            "kind": self.kind,
            "offset": self.first_offset,
            "producer_epoch": self.producer_epoch,
            "coordinator_epoch": None if self.coordinator_epoch == NONE else self.coordinator_epoch,
            "type": TYPES[self.type],
            "timestamp": self.min_timestamp,
        }


RUN_FIELDS = HistoryRow._fields[1:14]
"""The numbers of a run in JSON."""
HISTORY_ROW = dtype_of(HistoryRow)


class TimelineEntry(Struct, frozen=True, tag_field="kind"):
    """An entry beside runs and markers. Offsets are inclusive; timestamps are ms since the epoch, -1 for none."""

    @property
    def kind(self) -> str:
        """The kind of entry, as JSON names it."""
        return str(self.__struct_config__.tag)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"kind": self.kind, **asdict(self)}


class MissingEntry(TimelineEntry, frozen=True, tag="missing"):
    """The number of missing offsets in a range, and their cause."""

    first_offset: int
    last_offset: int
    offsets: int
    cause: MissingCause

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {**super().to_dict(), "cause": self.cause.value}


class FindingEntry(TimelineEntry, frozen=True, tag="finding"):
    """A finding about the producer; one without an offset comes before all other entries."""

    offset: int | None
    fingerprint: str
    code: str
    severity: str
    message: str


class EventEntry(TimelineEntry, frozen=True, tag="event"):
    """An event of a broker's or a client's log; at no offset it stands after all others.

    `placed_by` says what decided its offset; `timestamp` is by the batches' clock. The JSON form leaves out fields with a
    default that are None.
    """

    offset: int | None
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
Other = MissingEntry | FindingEntry | EventEntry
Entry = HistoryRow | Other
STATE = (
    *("producer_epoch", "last_sequence", "last_offset", "last_timestamp"),
    *("coordinator_epoch", "current_txn_start_offset"),
)
"""A producer's state after its last entry, as a broker would have it."""


class Histories(Struct, frozen=True):
    """Histories of producer ids in one partition replica: `rows` of HISTORY_ROW, each id's in the order of its timeline.

    `starts` (shape (ids + 1,)): the first row of each id, and the end; no id is without rows. `others`: entries that are
    neither runs nor markers, by row. `states` (shape (ids,) each): the fields of STATE, NONE where a broker would remember
    nothing. `transactional_ids`: those known, by producer id.
    """

    topic: str
    partition: int
    replica: str
    producer_ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    rows: Columns
    others: Mapping[int, Other]
    states: Mapping[str, NDArray[np.int64]]
    transactional_ids: Mapping[int, str]

    @property
    def place(self) -> tuple[str, int, str]:
        """Topic, partition and replica."""
        return self.topic, self.partition, self.replica

    @property
    def owners(self) -> NDArray[np.intp]:
        """The number of each row's producer id."""
        return np.repeat(np.arange(len(self.producer_ids)), np.diff(self.starts))

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, some thousand of which are made together."""
        for first in range(0, len(self.rows), AT_ONCE):
            for at, row in enumerate(self.rows[first : first + AT_ONCE].tolist(), first):
                yield self.others[at] if row[0] == OTHER else HistoryRow._make(row)

    def timelines(self) -> Iterator[tuple[int, Iterator[Entry]]]:
        """Yield each producer id and its entries, which are to be read before the next id."""
        entries = self.entries()
        for producer_id, count in zip(self.producer_ids.tolist(), np.diff(self.starts).tolist(), strict=True):
            yield producer_id, islice(entries, count)

    def with_findings(self, includes: Callable[[str], bool]) -> "Histories":
        """Return the histories without findings of other codes than these."""
        chosen = np.ones(len(self.rows), dtype=bool)
        for at, entry in self.others.items():
            chosen[at] = not isinstance(entry, FindingEntry) or includes(entry.code)
        return self.where(chosen)

    def where(self, chosen: NDArray[np.bool_]) -> "Histories":
        """Return the rows of a mask, and the producer ids that have any."""
        counts = np.add.reduceat(chosen, self.starts[:-1], dtype=np.int64)
        left, places = counts > 0, np.cumsum(chosen) - 1
        return replace(
            self,
            producer_ids=self.producer_ids[left],
            starts=np.append(0, np.cumsum(counts[left])),
            rows=self.rows[chosen],
            others={int(places[at]): entry for at, entry in self.others.items() if chosen[at]},
            states={name: column[left] for name, column in self.states.items()},
        )
