"""Findings made of facts that logs seldom show: their severity, confidence, place and what they say."""

import pytest
from msgspec.structs import replace

from kaudit.checks.check import Evidence
from kaudit.checks.log.consequences import consequences, lacking_producers, lost_records
from kaudit.checks.log.stray_file import stray_file
from kaudit.checks.producer_ids.producer_id_shared import producer_id_shared
from kaudit.checks.producer_ids.unallocated_producer_id import unallocated_producer_id
from kaudit.checks.repeats.reordered_retry import reordered_retry
from kaudit.checks.repeats.retry_duplicate import retry_duplicate
from kaudit.model.impact import Impact
from kaudit.model.observation import ObservationKind
from kaudit.model.producer_ids import BlockEntry, EntryKind, FirstBatch, Unallocated, UnallocatedId, UnallocatedReason
from kaudit.model.repeats import ReorderedBatches, RepeatedBatch
from kaudit.model.sequence_patterns import Chain, InterleavedWriters, SharedProducerId
from kaudit.source.layout import LeftoverFile
from tests.checks.facts import CONTEXT, batch, gap, plain, reported, summary


class TestRetries:
    """Copies right behind one another, with times alike, are one event."""

    def test_a_burst(self):
        copies = [
            RepeatedBatch(plain(number, 10 * number), plain(number + 5, 100 + 10 * number)) for number in (1, 3, 2)
        ]
        in_a_row = [
            RepeatedBatch(copy.first, plain(20 + number, 200 + 10 * number, 2 + number))
            for number, copy in enumerate(copies)
        ]
        (found,) = reported(retry_duplicate, *in_a_row)
        assert summary(found) == ("warning", "likely", 200, 223)
        assert found.message.startswith("3 batches at offsets 200..223 (9 records) are repeats of batches at 10..31: ")
        assert (found.evidence["batches"], found.evidence["records"]) == (3, 9)
        assert found.evidence["copies"] == [[10, 200], [30, 210], [20, 220]]
        assert found.impact == Impact(records_duplicated=9)
        assert (found.segment, found.position) == (CONTEXT.segments[1], 1400)
        assert list(found.next) == ["kaudit inspect --records --around 200 /logs/orders-0"]

    def test_of_a_long_burst_the_first_hundred_copies_are_listed(self):
        copies = [RepeatedBatch(plain(0, 0), plain(5 + number, 100 + 10 * number)) for number in range(120)]
        (found,) = reported(retry_duplicate, *copies)
        assert found.evidence["batches"] == 120
        assert found.evidence["copies"] == [[0, 100 + 10 * number] for number in range(100)]

    @pytest.mark.parametrize(
        ("second", "third"),
        [
            ((2, 40), (4, 60)),  # a batch between them
            ((2, 40), (4, 50)),
        ],
    )
    def test_what_lies_between_parts_them(self, second, third):
        copies = [
            RepeatedBatch(plain(0, 0), plain(*second)),
            RepeatedBatch(plain(1, 10), plain(*third)),
        ]
        assert [found.offset for found in reported(retry_duplicate, *copies)] == [second[1], third[1]]

    def test_new_timestamps_are_another_event(self):
        copies = [
            RepeatedBatch(plain(0, 0), plain(2, 40)),
            RepeatedBatch(plain(1, 10), plain(3, 50, time=1300)),
            RepeatedBatch(plain(5, 70), plain(6, 80, 1, time=1400)),
        ]
        same, later, behind = reported(retry_duplicate, *copies)
        assert summary(same) == ("warning", "likely", 40, 41)
        assert summary(later) == ("warning", "possible", 50, 51)
        assert (
            same.message == "the batch at offset 40 (2 records) is a repeat of the batch at offset 0: the same records"
        )
        assert later.message.endswith("repeat of the batch at offset 10: the same records under new timestamps")
        assert behind.message.startswith("the batch at offset 80 (1 record) is")
        causes = [found.explanations[0].speaks_for for found in (same, later, behind)]
        assert causes == [
            ("same records and timestamps, 2 batches apart",),
            ("same records, 2 batches apart, and nothing else around is repeated; stamped 300 ms later",),
            ("same records, right behind it, and nothing else around is repeated; stamped 400 ms later",),
        ]
        assert [found.explanations[1].innocent for found in (same, later, behind)] == [True] * 3

    @pytest.mark.parametrize(
        ("late", "backwards", "confidence", "kind", "message"),
        [
            ([plain(3, 40)], False, "possible", "older", "the batch at offset 40 comes behind later records"),
            ([plain(3, 40)], True, "likely", "reversed", "the batch at offset 40 comes behind later records"),
            (
                [plain(3, 40), plain(4, 42, 3)],
                False,
                "possible",
                "older",
                "2 batches at offsets 40..44 come behind later records",
            ),
        ],
    )
    def test_batches_out_of_order(self, late, backwards, confidence, kind, message):
        (found,) = reported(reordered_retry, ReorderedBatches(plain(2, 30), late, backwards))
        assert summary(found) == ("warning", confidence, 40, late[-1].last_offset)
        assert found.message.startswith(message)
        assert (found.evidence["class"], found.evidence["batches"]) == (kind, len(late))
        assert found.evidence["previous"]["offset"] == 30  # type: ignore[index]
        if backwards:
            assert found.message.endswith("copies in the opposite order of what they copy")
        else:
            assert found.message.endswith(("its records are older", "their records are older"))


FIRST = FirstBatch(70, 74, 123, 3, 700, 1)
BELOW = BlockEntry(EntryKind.GRANTED, "zookeeper", 3000, 3999, broker=2)


@pytest.mark.parametrize(
    ("proven", "after", "severity", "confidence"),
    [
        (True, False, "error", "certain"),
        (True, None, "error", "certain"),
        (True, True, "warning", "possible"),
        (False, False, "warning", "likely"),
        (False, None, "warning", "possible"),
        (False, True, "warning", "possible"),
    ],
)
def test_an_id_nobody_granted_is_an_error_where_the_history_is_complete_and_no_older(
    proven, after, severity, confidence
):
    unallocated = Unallocated(4500, UnallocatedReason.BEYOND, BELOW, proven, after)
    (found,) = reported(unallocated_producer_id, UnallocatedId(unallocated, FIRST, 2, (4000, 4999), "zookeeper"))
    assert summary(found) == (severity, confidence, 70, 74)
    assert (found.producer_id, found.producer_epoch, found.position) == (4500, 3, 700)
    assert "the next block is 4000..4999" in found.message
    assert found.evidence["next_block"] == {"start": 4000, "end": 4999}
    assert found.explanations[0].speaks_for == ("the nearest block below is 3000..3999 of broker 2",)
    innocent = [each.cause for each in found.explanations if each.innocent]
    assert any("after the history was saved" in text for text in innocent) is (after is True)
    assert any("the history is incomplete" in text for text in innocent) is (not proven)
    assert found.next


def test_a_negative_id_has_no_history_to_show():
    unallocated = Unallocated(-5, UnallocatedReason.NEGATIVE, None, True, False)
    (found,) = reported(unallocated_producer_id, UnallocatedId(unallocated, FIRST, 1, None, "zookeeper"))
    assert found.explanations[0].speaks_for == ()
    assert "exhausted" in found.explanations[0].cause
    assert (list(found.next), found.evidence["next_block"], found.evidence["block_below"]) == ([], None, None)
    assert "the next block" not in found.message


@pytest.mark.parametrize(("rewritten", "confidence"), [(0, "certain"), (1, "likely")])
@pytest.mark.parametrize(
    ("grants", "speaks_for", "speaks_against"),
    [(0, 0, 0), (1, 0, 1), (2, 1, 0)],
)
def test_two_writers_of_one_id(rewritten, confidence, grants, speaks_for, speaks_against):
    observed = [
        gap(7, batch(0, 0, 2, 0), batch(20, 9, 2, 20), 7, 0),
        gap(7, batch(0, 0, 2, 0), batch(40, 3, 2, 40), 1, 0),
    ]
    writers = InterleavedWriters(Chain(0, 90, 0, 50, 9), Chain(40, 60, 3, 30, 5), 6, 2, rewritten)
    (found,) = reported(producer_id_shared, SharedProducerId(7, 1, writers, observed, grants))
    assert summary(found) == ("error", confidence, 40, 90)
    assert (found.producer_id, found.producer_epoch) == (7, 1)
    assert found.evidence["replaces"] == {"KA104": 2}
    twice = found.explanations[0]
    assert (len(twice.speaks_for), len(twice.speaks_against)) == (speaks_for, speaks_against)


class TestConsequences:
    """Producers whose sequences are missing where offsets are."""

    def test_those_without_a_batch_there_but_before_and_after(self):
        across = gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 10)
        touching = gap(2, batch(5, 0, 5, 0), batch(20, 9, 1, 10), 4, 10)  # to offset 9
        begins_inside = gap(3, batch(6, 0, 5, 0), batch(20, 9, 1, 10), 4, 10)  # to offset 10
        ends_before = gap(4, batch(0, 0, 5, 0), batch(15, 9, 1, 10), 4, 10)
        follows = gap(5, batch(0, 0, 5, 0), batch(16, 9, 1, 10), 4, 10)
        unexplained = gap(6, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 40, 10)
        evidence = Evidence([across, touching, begins_inside, ends_before, follows, unexplained])
        assert [found.producer_id for found in lacking_producers(evidence, 10, 15)] == [5, 1, 2]
        assert not lacking_producers(evidence, None, 15)
        assert not lacking_producers(evidence, 10, None)
        assert not lacking_producers(Evidence([unexplained]), 10, 15)

    def test_at_most_twenty_are_listed(self):
        many = [gap(number, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 10) for number in range(22)]
        listed = consequences(many)["consequences"]
        assert isinstance(listed, list)
        assert listed[0] == {"producer_id": 0, "producer_epoch": 1, "missing_sequences": 4, "offset": 20}
        assert (len(listed), listed[-1]) == (21, {"more": 2})
        assert len(consequences(many[:20])["consequences"]) == 20  # type: ignore[arg-type]
        assert consequences([]) == {}

    @pytest.mark.parametrize(
        ("observation", "compacted", "at_least"),
        [
            (gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 10), False, 4),
            (gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 12), False, 2),  # two may lie in other missing offsets
            (gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 15), False, 0),
            (gap(1, batch(0, 0, 5, 0), batch(20, 99, 1, 10), 94, 10), False, 10),  # no more than offsets
            (gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 10), True, 0),
            (gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10, leader_epoch=1), 4, 10), False, 0),
            (gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 10, kind=ObservationKind.AFTER_MARKER), False, 0),
        ],
    )
    def test_what_missing_offsets_cost(self, observation, compacted, at_least):
        found = lost_records(replace(CONTEXT, compacted=compacted), Evidence([observation]), 10, [observation])
        assert found == Impact(records_lost_at_least=at_least, records_lost_at_most=10)

    def test_what_came_later_is_not_lost(self):
        lacking = gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 10)
        late = gap(1, batch(20, 9, 1, 10), batch(21, 6, 2, 11), 0, 0, kind=ObservationKind.INSIDE)
        found = lost_records(CONTEXT, Evidence([lacking, late]), 10, [lacking])
        assert found == Impact(records_lost_at_least=2, records_lost_at_most=10)


class TestLeftovers:
    """Files that brokers leave behind."""

    def test_files_of_a_kind_are_one_note_and_directories_one_each(self):
        names = [f"orders-0/{base:020d}.log.deleted" for base in range(0, 250, 10)]
        files = [LeftoverFile(name, "deleted", "orders", 0, "/logs", int(name[9:29])) for name in names]
        directories = [LeftoverFile(f"old-{number}.abc-delete", "delete", "old", number, "/logs") for number in (1, 2)]
        odd = LeftoverFile("orders-0/notes.txt", "odd-name", "orders", 0, "/logs")
        found = {each.evidence["files"][0]: each for each in reported(stray_file, *directories, odd, *files)}  # type: ignore[index]
        assert list(found) == ["old-1.abc-delete", "old-2.abc-delete", names[0], "orders-0/notes.txt"]
        deleted = found[names[0]]
        assert deleted.message.startswith(
            "00000000000000000000.log.deleted and 24 more not audited: retention or compaction"
        )
        assert (deleted.severity.value, deleted.evidence["count"]) == ("note", 25)
        assert deleted.evidence["files"] == names[:20]
        assert (deleted.evidence["first_offset"], deleted.evidence["last_offset"]) == (0, 240)
        alone = found["orders-0/notes.txt"]
        assert alone.message.startswith("notes.txt not audited")
        assert (alone.evidence["first_offset"], alone.evidence["count"]) == (None, 1)
        assert [each.explanations[0].innocent for each in (deleted, alone)] == [True, False]
