"""Ids that no block holds: in which partitions they are looked for, which are reported, which a live history could not show."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from kaudit.audits.producer_ids.block_sources import BlockSource, combined_blocks
from kaudit.audits.sequences.rescan import Questions, Seen
from kaudit.broker.producer_ids.block_history import BlockHistory
from kaudit.model.producer_ids import BlockEntry, EntryKind, FirstBatch
from kaudit.scanning.block_audit import BlockAudit

MADE_MS = 1_000_000
"""When the history was copied; its blocks are 0..999 and 1000..1999, the next one begins at 2000."""
BEFORE_MS = MADE_MS - 120_000
"""A record waits no longer than delivery.timeout.ms, two minutes by default, for its producer's id: it was granted by MADE_MS."""


class Directory(NamedTuple):
    number: int
    segments: list[SimpleNamespace]


class Logs:
    """Partitions that hold these ids, each first batch at the offset of its id, at one time; notes what was asked."""

    def __init__(self, time: int, *ids: tuple[int, ...], without_producer: int = 0) -> None:
        self.time = time
        self.parts: Any = {
            number: SimpleNamespace(
                producer_ids=np.array([each for each in held if each >= 0], dtype=np.int64),
                counts=SimpleNamespace(without_producer=without_producer, min_timestamp=time),
                directory=Directory(number, [SimpleNamespace(modified_ms=0)]),
            )
            for number, held in enumerate(ids)
        }
        self.asked: list[tuple[int, list[int], bool]] = []

    def rescan(self, asked: Any) -> list[Seen]:
        answers = []
        for (number, _), questions in asked:
            assert isinstance(questions, Questions)
            self.asked.append((number, questions.first_of.tolist(), questions.negative))
            answers.append(
                Seen({each: FirstBatch(each, each, self.time, 0, 0, 0) for each in questions.first_of.tolist()})
            )
        return answers


def audit(logs: Logs) -> BlockAudit:
    entries = tuple(
        BlockEntry(EntryKind.GRANTED, "log", start, start + 999, broker=1, version=number, at_ms=1000)
        for number, start in enumerate((0, 1000), 1)
    )
    blocks = combined_blocks([BlockSource("A", BlockHistory(entries, observed_until_ms=MADE_MS))])
    assert blocks is not None
    return BlockAudit(blocks, logs.parts, logs.rescan)


@pytest.mark.parametrize(
    ("time", "reported"),
    [(BEFORE_MS, [2000, 2001, 11_999, 12_000]), (BEFORE_MS + 1, []), (-1, [])],
)
def test_ids_first_seen_after_the_copy_are_counted_as_not_checked(time, reported):
    logs = Logs(time, (0, 1999, 2000, 2001, 11_999, 12_000))
    checked = audit(logs)
    found = list(checked.unallocated())
    assert [one.found.producer_id for _, one in found] == reported
    reasons = [(note.path, note.reason) for note in checked.unlisted]
    words = (
        "the block history ends at 1970-01-01T00:16:40.000Z: 4 producer ids first seen later were not checked (KA401)"
    )
    assert reasons == ([] if reported else [("A", words)])


def test_the_partition_with_the_oldest_records_is_the_first_whatever_its_name():
    logs = Logs(BEFORE_MS, (7000,), (7000,), (7000,))
    logs.parts[0].counts.min_timestamp = -1  # no time is known
    logs.parts[2].counts.min_timestamp = BEFORE_MS - 1
    assert [number for number, _ in audit(logs).unallocated()] == [2]
    assert logs.asked == [(2, [7000], False)]


def test_each_is_looked_for_in_the_first_partition_that_has_it():
    logs = Logs(BEFORE_MS, (5,), (7000, 8000), (1000,), (8000, 9000), (7000, 8000))
    checked = audit(logs)
    found = [(number, one.found.producer_id, one.partitions, one.first.offset) for number, one in checked.unallocated()]
    assert found == [(1, 7000, 2, 7000), (1, 8000, 3, 8000), (3, 9000, 1, 9000)]
    assert logs.asked == [(1, [7000, 8000], False), (3, [9000], False)]
    (_, one), *_ = audit(logs).unallocated()
    assert (one.next_block, one.history) == ((2000, 2999), "A")
    assert checked.unlisted == []


@pytest.mark.parametrize("more", [0, 1, 1500])
def test_a_thousand_are_reported_one_by_one(more):
    logs = Logs(BEFORE_MS, tuple(range(50_000, 51_000 + more)))
    checked = audit(logs)
    assert len(list(checked.unallocated())) == 1000
    reasons = [(note.path, note.reason) for note in checked.unlisted]
    words = f"{more:,} more producer ids outside every known block are not reported one by one"
    assert reasons == ([("A", words)] if more else [])


def test_logs_without_producers_have_none():
    logs = Logs(MADE_MS, (), without_producer=3)
    assert list(audit(logs).unallocated()) == []
    assert logs.asked == []
