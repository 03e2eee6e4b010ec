"""Histories of producer ids made by hand, and each producer's own out of those that kaudit made."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from kaudit.listings.timeline import other_rows
from kaudit.model.columns import Columns
from kaudit.model.timeline import HISTORY_ROW, MARKER, NONE, OUTCOMES, RUN, STATE, TYPES, Entry, Histories, HistoryRow

_NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields, NONE) | {"is_transactional": False, "type": 0}


def run(first_offset: int, last_offset: int, transaction: tuple[int, str] | None = None, **more: int) -> HistoryRow:
    """A run of one batch at these offsets, with what `more` says; `transaction`: its first offset and outcome."""
    began, outcome = (-1, None) if transaction is None else transaction
    known = {
        "row": RUN,
        "first_offset": first_offset,
        "last_offset": last_offset,
        "first_sequence": 0,
        "last_sequence": last_offset - first_offset,
        "producer_epoch": 0,
        "batches": 1,
        "records": 1,
        "bytes": 1,
        "min_timestamp": -1,
        "max_timestamp": -1,
        "is_transactional": transaction is not None,
        "first_leader_epoch": 0,
        "last_leader_epoch": 0,
        "transaction_first_offset": began,
        "transaction_outcome": -1 if outcome is None else OUTCOMES.index(outcome),
    }
    return HistoryRow(**{**_NOTHING, **known, **more})


def marker(
    offset: int, kind: str | None, epoch: int = 0, timestamp: int = -1, coordinator_epoch: int | None = None
) -> HistoryRow:
    known = {
        "row": MARKER,
        "first_offset": offset,
        "last_offset": offset,
        "producer_epoch": epoch,
        "min_timestamp": timestamp,
        "max_timestamp": timestamp,
        "coordinator_epoch": NONE if coordinator_epoch is None else coordinator_epoch,
        "type": TYPES.index(kind),
    }
    return HistoryRow(**{**_NOTHING, **known})


def rows_of(entries: Iterable[Entry]) -> Columns:
    made = [entry if isinstance(entry, HistoryRow) else other_rows([entry]).tolist()[0] for entry in entries]
    rows = np.array([tuple(row) for row in made], dtype=HISTORY_ROW)
    return Columns(HISTORY_ROW, len(rows), {name: rows[name] for name in HistoryRow._fields})


class Timeline(Struct, frozen=True):
    """One producer id's history in a partition replica; `state` as STATE, None where a broker remembers nothing."""

    topic: str
    partition: int
    replica: str
    producer_id: int
    transactional_id: str | None
    entries: Sequence[Entry]
    state: Sequence[int | None] = field(default_factory=lambda: [None] * len(STATE))


def histories(*timelines: Timeline) -> Histories:
    """The histories of producer ids of one partition replica."""
    entries = [entry for timeline in timelines for entry in timeline.entries]
    states = [[NONE if value is None else value for value in timeline.state] for timeline in timelines]
    return Histories(
        *(timelines[0].topic, timelines[0].partition, timelines[0].replica),
        producer_ids=np.array([timeline.producer_id for timeline in timelines]),
        starts=np.cumsum([0, *(len(timeline.entries) for timeline in timelines)]),
        rows=rows_of(entries),
        others={at: entry for at, entry in enumerate(entries) if not isinstance(entry, HistoryRow)},
        states={name: np.array(column) for name, column in zip(STATE, zip(*states, strict=True), strict=True)},
        transactional_ids={one.producer_id: one.transactional_id for one in timelines if one.transactional_id},
    )


def timelines_of(made: Iterable[Histories]) -> list[Timeline]:
    """Each producer's own, in their order."""
    found = []
    for each in made:
        states = zip(*(each.states[name].tolist() for name in STATE), strict=True)
        for (producer_id, entries), state in zip(each.timelines(), states, strict=True):
            known = [None if value == NONE else value for value in state]
            name = each.transactional_ids.get(producer_id)
            found.append(Timeline(*each.place, producer_id, name, list(entries), known))
    return found
