"""KA702 and KA703 from facts: batches without producer ids that are in the log twice, or out of order."""

import pytest

from kaudit.checks.repeats.retries import reordered_retry, retry_duplicate
from kaudit.model.impact import NO_IMPACT, Impact
from kaudit.model.producer_patterns import ReorderedBatches, RepeatedBatch
from tests.checks.facts import CONTEXT, plain, reported, summary


def repeated(first, again):
    return RepeatedBatch(first, again, timestamps=1)


class TestRetries:
    """Copies right behind one another, with times alike, are one event."""

    def test_a_burst(self):
        copies = [repeated(plain(number, 10 * number), plain(number + 5, 100 + 10 * number)) for number in (1, 3, 2)]
        in_a_row = [
            repeated(copy.first, plain(20 + number, 200 + 10 * number, 2 + number))
            for number, copy in enumerate(copies)
        ]
        (found,) = reported(retry_duplicate, *in_a_row)
        assert summary(found) == ("warning", "likely", 200, 223)
        assert found.message.startswith("3 batches at offsets 200..223 (9 records) are repeats of batches at 10..31: ")
        assert (found.evidence["batches"], found.evidence["records"]) == (3, 9)
        assert found.evidence["copies"] == [[10, 200], [30, 210], [20, 220]]
        assert found.impact == Impact(records_duplicated=9)
        assert (found.segment, found.position) == (CONTEXT.segments[1], 1400)
        assert list(found.next) == [
            "kaudit inspect --records --around 200 /logs/orders-0",
            "kaudit dedup /logs/orders-0",
        ]

    def test_of_a_long_burst_the_first_hundred_copies_are_listed(self):
        copies = [repeated(plain(0, 0), plain(5 + number, 100 + 10 * number)) for number in range(120)]
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
            repeated(plain(0, 0), plain(*second)),
            repeated(plain(1, 10), plain(*third)),
        ]
        assert [found.offset for found in reported(retry_duplicate, *copies)] == [second[1], third[1]]

    def test_new_timestamps_are_another_event(self):
        copies = [
            repeated(plain(0, 0), plain(2, 40)),
            repeated(plain(1, 10), plain(3, 50, time=1300)),
            repeated(plain(5, 70), plain(6, 80, 1, time=1400)),
        ]
        same, later, behind = reported(retry_duplicate, *copies)
        assert summary(same) == ("warning", "likely", 40, 41)
        assert summary(later) == ("warning", "possible", 50, 51)
        assert (
            same.message == "the batch at offset 40 (2 records) is a repeat of the batch at offset 0: the same records"
        )
        assert later.message.endswith("repeat of the batch at offset 10: the same records under new timestamps")
        # one record alone, as a person types it twice in a console
        assert behind.message == "the record at offset 80 equals that at offset 70, under another timestamp"
        assert (summary(behind), behind.impact) == (("note", "possible", 80, 80), NO_IMPACT)
        assert {found.impact for found in (same, later)} == {Impact(records_duplicated=2)}
        causes = [found.explanations[0].speaks_for for found in (same, later, behind)]
        assert causes == [
            ("same records and timestamps, 2 batches apart",),
            ("same records, 2 batches apart, and nothing else around is repeated; stamped 300 ms later",),
            ("same records, right after it, and nothing else around is repeated; stamped 400 ms later",),
        ]
        assert [found.explanations[1].innocent for found in (same, later, behind)] == [True] * 3
        meant = [found.explanations[1].cause for found in (same, later, behind)]
        assert ["load generators" in text for text in meant] == [True, False, False]
        assert ["at a console" in text for text in meant] == [False, False, True]
        assert [found.evidence["offending"]["producer_id"] for found in (same, later)] == [-1, -1]  # type: ignore[index]

    def test_several_at_once_are_likely_under_new_timestamps_too(self):
        copies = [
            repeated(plain(number, 10 * number), plain(5 + number, 60 + 10 * number, time=1300)) for number in range(2)
        ]
        (found,) = reported(retry_duplicate, *copies)
        assert summary(found) == ("warning", "likely", 60, 71)
        assert found.message.endswith("repeats of batches at 0..11: the same records under new timestamps")

    @pytest.mark.parametrize(
        ("late", "backwards", "confidence", "kind", "message"),
        [
            ([plain(3, 40)], False, "possible", "older", "the batch at offset 40 comes after later records"),
            ([plain(3, 40)], True, "likely", "reversed", "the batch at offset 40 comes after later records"),
            (
                [plain(3, 40), plain(4, 42, 3)],
                False,
                "possible",
                "older",
                "2 batches at offsets 40..44 come after later records",
            ),
        ],
    )
    def test_batches_out_of_order(self, late, backwards, confidence, kind, message):
        (found,) = reported(reordered_retry, ReorderedBatches(plain(2, 30), late, backwards))
        assert summary(found) == ("warning", confidence, 40, late[-1].last_offset)
        assert found.message.startswith(message)
        assert (found.evidence["class"], found.evidence["batches"]) == (kind, len(late))
        assert [each.innocent for each in found.explanations] == [False, True]
        assert found.evidence["previous"]["offset"] == 30  # type: ignore[index]
        if backwards:
            assert found.message.endswith("copies in the opposite order of what they copy")
        else:
            assert found.message.endswith(("its records are older", "their records are older"))
