"""Markers in the partitions beside the decisions of their coordinator: which ended otherwise than decided."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from kaudit.audits.coordinator.transaction_state_reader import Decision
from kaudit.model.batch_fields import NO_OFFSET
from kaudit.model.transactions import MismatchedMarker
from kaudit.reading.rows import Rows
from kaudit.source.layout import PartitionDirectory


class Markers(Struct, frozen=True):
    """All markers of one partition replica (transaction_spans.ENDED_TRANSACTION), by offset."""

    directory: PartitionDirectory
    rows: Rows


def compare_outcomes(
    markers: Sequence[Markers], decisions: Mapping[int, Sequence[Decision] | None]
) -> list[list[MismatchedMarker]]:
    """Return for each of `markers` those that say otherwise than decided.

    A producer's markers in a partition are paired with the decisions that include the partition, in order, and only
    where there are as many of one as of the other: clocks of different hosts need not agree, and what retention,
    compaction or a marker written twice has changed is not comparable. Retention and a second copy together may leave as
    many, so nothing is said of a producer whose markers disagree where one of them may be a copy.
    """
    paired: list[list[tuple[Rows, Decision]]] = [_pairs(entry, decisions) for entry in markers]
    agreeing: dict[tuple[str, int], set[str]] = {}
    for entry, pairs in zip(markers, paired, strict=True):
        name = f"{entry.directory.topic}-{entry.directory.partition}"
        for row, decision in pairs:
            if int(row["type"]) == decision.type:
                agreeing.setdefault((decision.transactional_id, decision.offset), set()).add(name)
    return [
        [
            MismatchedMarker(
                decision.transactional_id,
                int(row["producer_id"]),
                int(row["producer_epoch"]),
                int(row["marker_offset"]),
                int(row["position"]),
                int(row["segment"]),
                int(row["type"]),
                decision.type,
                decision.offset,
                sorted(agreeing.get((decision.transactional_id, decision.offset), ())),
            )
            for row, decision in pairs
            if int(row["type"]) != decision.type
        ]
        for pairs in paired
    ]


def _pairs(markers: Markers, decisions: Mapping[int, Sequence[Decision] | None]) -> list[tuple[Rows, Decision]]:
    own = (markers.directory.topic, markers.directory.partition)
    found: list[tuple[Rows, Decision]] = []
    rows = markers.rows
    for producer_id in np.unique(rows["producer_id"]).tolist():
        decided = [decision for decision in decisions.get(producer_id) or () if own in decision.partitions]
        written = rows[rows["producer_id"] == producer_id]
        if len(decided) != len(written):
            continue
        pairs = list(zip(written, decided, strict=True))
        if not _may_hold_copies(written) or all(int(row["type"]) == decision.type for row, decision in pairs):
            found += pairs
    return found


def _may_hold_copies(markers: Rows) -> bool:
    """Whether a marker of a producer may be the one before once more: WriteTxnMarkers is sent again when its answer is lost."""
    before, after = markers[:-1], markers[1:]
    same = (before["type"] == after["type"]) & (before["producer_epoch"] == after["producer_epoch"])
    return bool(np.any(same & (after["first_offset"] == NO_OFFSET)))
