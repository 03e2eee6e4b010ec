"""The histories of producer ids as columns, of which objects are made when they are asked for.

Reports write a million histories from the columns; as objects they cost several times the audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.columns import Columns
from kaudit.model.dtypes import dtype_of
from kaudit.model.schema import Bool, Int64
from kaudit.model.timeline import (
    OUTCOMES,
    EndState,
    Entry,
    EntryTransaction,
    EventEntry,
    MarkerEntry,
    RunEntry,
    Timeline,
)

NONE = -(2**63)
"""The number that stands for None."""
RUN, MARKER, OTHER = range(3)
"""Kinds of entries: `others` of Histories has those that are neither runs nor markers."""
_KINDS: Mapping[type, int] = {RunEntry: RUN, MarkerEntry: MARKER}
TYPES = ("ABORT", "COMMIT", "CLEANED", None)
AT_ONCE = 8192
"""Entries after which the histories of further producer ids are others; of up to twice as many all objects are made together."""
_AT_A_TIME = 256
"""Entries of a longer history that are made together: each column is accessed once for all of them."""


class HistoryRow(NamedTuple):
    """An entry of a history. Without a number NONE, without a timestamp -1; a marker has both offsets and timestamps.

    `transaction_outcome` is an index into the outcomes of Histories, `type` of a marker one into its types.
    """

    kind: Int64
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


HISTORY_ROW = dtype_of(HistoryRow)
_OF_RUN = slice(1, 14)
_NOTHING = dict.fromkeys(HistoryRow._fields, NONE) | {
    "min_timestamp": NO_TIMESTAMP,
    "max_timestamp": NO_TIMESTAMP,
    "is_transactional": False,
    "type": 0,
}


class Histories(Struct, frozen=True):
    """Histories of producer ids in one partition replica: `rows` of HISTORY_ROW, each id's in the order of its timeline.

    `starts` (shape (ids + 1,)): the first row of each id, and the end. `others`: entries that are neither runs nor markers, by
    row. `states` (shape (ids,) each): the fields of EndState. `names`: transactional ids by producer id.
    """

    topic: str
    partition: int
    replica: str
    producer_ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    rows: Columns
    others: Mapping[int, Entry]
    states: Mapping[str, NDArray[np.int64]]
    names: Mapping[int, str]
    types: Sequence[str | None] = TYPES
    outcomes: Sequence[str] = OUTCOMES

    def timelines(self) -> Iterator[Timeline]:
        """Yield a timeline for each id. Entries of long histories are made when they are asked for."""
        made = self.entries(0, len(self.rows)) if len(self.rows) <= 2 * AT_ONCE else None
        states = zip(*(self.states[name].tolist() for name in EndState.__struct_fields__), strict=True)
        bounds = self.starts.tolist()
        for index, (producer_id, state) in enumerate(zip(self.producer_ids.tolist(), states, strict=True)):
            first, stop = bounds[index], bounds[index + 1]
            yield Timeline(
                topic=self.topic,
                partition=self.partition,
                replica=self.replica,
                producer_id=producer_id,
                transactional_id=self.names.get(producer_id),
                entries=_Entries(self, range(first, stop)) if made is None else made[first:stop],
                state=_state(*state),
            )

    def entries(self, first: int, stop: int) -> list[Entry]:
        """Return the entries of these rows."""
        return list(map(self._entry, range(first, stop), self.rows[first:stop].tolist()))

    def _entry(self, index: int, row: tuple[Any, ...]) -> Entry:
        if row[0] == RUN:
            transaction = EntryTransaction(row[14], self.outcomes[row[15]]) if row[11] else None
            values: list[Any] = [*row[_OF_RUN], transaction]
            return RunEntry(*values)
        if row[0] == OTHER:
            return self.others[index]
        marker = HistoryRow._make(row)
        epoch = None if marker.coordinator_epoch == NONE else marker.coordinator_epoch
        return MarkerEntry(
            marker.first_offset, marker.producer_epoch, epoch, self.types[marker.type], marker.min_timestamp
        )


def _state(*values: int) -> EndState:
    state = EndState(*(None if value == NONE else value for value in values))
    unseen = state.producer_epoch is None
    return state if unseen or state.last_timestamp is not None else replace(state, last_timestamp=NONE)  # a real time


class _Entries(Sequence[Entry]):
    """The entries of one producer id, made when they are asked for; as a list in all else."""

    def __init__(self, histories: Histories, places: range) -> None:
        self._histories = histories
        self._places = places

    def __reduce__(self) -> tuple[type[list[Entry]], tuple[list[Entry]]]:
        return list, (list(self),)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - one or some, as of a list
        if isinstance(index, slice):
            return [self._at(place) for place in self._places[index]]
        return self._at(self._places[index])

    def _at(self, place: int) -> Entry:
        return self._histories.entries(place, place + 1)[0]

    def __iter__(self) -> Iterator[Entry]:
        for first in range(self._places.start, self._places.stop, _AT_A_TIME):
            yield from self._histories.entries(first, min(first + _AT_A_TIME, self._places.stop))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


def history_rows(length: int, **columns: NDArray[Any] | int) -> Columns:
    """Return rows that have these columns and nothing else."""
    return Columns(HISTORY_ROW, length, {**_NOTHING, **columns})


def rows_of(
    entries: Sequence[Entry], types: Sequence[str | None] = TYPES, outcomes: Sequence[str] = OUTCOMES
) -> Columns:
    """Return the rows of entries; `types` has those of the markers, `outcomes` those of the transactions."""
    rows = np.array([_row(entry, types, outcomes) for entry in entries], dtype=HISTORY_ROW)
    return Columns(HISTORY_ROW, len(rows), {name: rows[name] for name in HistoryRow._fields})


def _row(entry: Entry, types: Sequence[str | None], outcomes: Sequence[str]) -> tuple[Any, ...]:
    values = {name: value for name in HistoryRow._fields if (value := getattr(entry, name, None)) is not None}
    row: dict[str, Any] = {**_NOTHING, **values, "kind": _KINDS.get(type(entry), OTHER)}
    for name, time in (("min_timestamp", entry.first_timestamp), ("max_timestamp", entry.last_timestamp)):
        row[name] = NO_TIMESTAMP if time is None else time
    match entry:
        case RunEntry(transaction=EntryTransaction(first_offset, outcome)):
            row |= {"transaction_first_offset": first_offset, "transaction_outcome": outcomes.index(outcome)}
        case MarkerEntry():
            row["type"] = types.index(entry.type)
        case EventEntry(base_sequence=int(sequence)):
            row["first_sequence"] = sequence
    return tuple(row.values())


def histories_of(timelines: Sequence[Timeline]) -> Iterator[Histories]:
    """Yield the histories that timelines are made of, or that objects stand for; no timeline without an entry."""
    made = getattr(timelines, "histories", None)
    if made is not None:
        yield from made()
        return
    for place, of_place in groupby(timelines, key=lambda one: (one.topic, one.partition, one.replica)):
        while part := list(islice(of_place, AT_ONCE)):
            entries = [entry for timeline in part for entry in timeline.entries]
            types = list(dict.fromkeys(entry.type for entry in entries if isinstance(entry, MarkerEntry)))
            transactions = (entry.transaction for entry in entries if isinstance(entry, RunEntry))
            outcomes = list(dict.fromkeys(one.outcome for one in transactions if one is not None))
            states = [[getattr(timeline.state, name) for timeline in part] for name in EndState.__struct_fields__]
            yield Histories(
                *place,
                producer_ids=np.array([timeline.producer_id for timeline in part], dtype=np.int64),
                starts=np.cumsum([0, *(len(timeline.entries) for timeline in part)]),
                rows=rows_of(entries, types, outcomes),
                others={at: entry for at, entry in enumerate(entries) if not isinstance(entry, RunEntry | MarkerEntry)},
                states={
                    name: np.array([NONE if value is None else value for value in values], dtype=np.int64)
                    for name, values in zip(EndState.__struct_fields__, states, strict=True)
                },
                names={one.producer_id: one.transactional_id for one in part if one.transactional_id is not None},
                types=types,
                outcomes=outcomes,
            )
