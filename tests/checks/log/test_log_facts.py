"""Checks of a log's offsets and files from facts: what missing offsets cost, and what brokers leave behind."""

import pytest
from msgspec.structs import replace

from kaudit.checks.check import Evidence
from kaudit.checks.log.damage import (
    crc_mismatch,
    damaged_ranges,
    offset_regression,
    truncated_tail,
    unparsable_bytes,
    zero_filled,
)
from kaudit.checks.log.leader_epoch_regression import leader_epoch_regression
from kaudit.checks.log.malformed import limit_exceeded, malformed_batch
from kaudit.checks.log.missing_offsets import consequences, lacking_producers, lost_records, missing_segment, offset_gap
from kaudit.checks.log.stray_file import stray_file
from kaudit.checks.log.unreadable_segment import unreadable_segment
from kaudit.model.damage import (
    DamageKind,
    LeaderEpochRegression,
    LogDamage,
    MalformedBatch,
    MissingCause,
    MissingOffsets,
    PlacedDamage,
)
from kaudit.model.impact import Impact
from kaudit.model.observation import ObservationKind
from kaudit.source.layout import LeftoverFile, Unreadable
from tests.checks.facts import CONTEXT, batch, gap, reported, summary


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
        listed = consequences(many)
        assert listed is not None
        assert listed[0].to_dict() == {"producer_id": 0, "producer_epoch": 1, "missing_sequences": 4, "offset": 20}
        assert (len(listed), listed[-1].to_dict()) == (21, {"more": 2})
        assert len(consequences(many[:20]) or ()) == 20
        assert consequences([]) is None

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

    def test_without_a_batch_before_nobody_knows_the_leader(self):
        known = gap(1, batch(0, 0, 5, 0), batch(20, 9, 1, 10), 4, 10)
        assert known.remembered is not None
        for unknown in (None, replace(known.remembered, last=None)):
            lacking = replace(known, remembered=unknown)
            assert lost_records(CONTEXT, Evidence(), 10, [lacking]).records_lost_at_least == 0

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
            "00000000000000000000.log.deleted and 24 more not checked: retention or compaction"
        )
        assert (deleted.severity.value, deleted.evidence["count"]) == ("note", 25)
        assert deleted.evidence["files"] == names[:20]
        assert (deleted.evidence["first_offset"], deleted.evidence["last_offset"]) == (0, 240)
        alone = found["orders-0/notes.txt"]
        assert alone.message.startswith("notes.txt not checked")
        assert (alone.evidence["first_offset"], alone.evidence["count"]) == (None, 1)
        assert [each.explanations[0].innocent for each in (deleted, alone)] == [True, False]

    def test_leftovers_of_log_directories_that_have_a_name_and_of_those_that_have_none(self):
        files = [
            LeftoverFile("lost.txt", "odd-name"),
            LeftoverFile("lost-too.txt", "odd-name"),
            LeftoverFile("b/orders-0/1.log.swap", "swap", "orders", 0, "/b", 1),
            LeftoverFile("b/orders-1/1.log.swap", "swap", "orders", 1, "/b", 1),
            LeftoverFile("b/orders-0/2.log.cleaned", "cleaned", "orders", 0, "/b", 2),
            LeftoverFile("orders-0/2.log.swap", "swap", "orders", 0, None, 2),
            LeftoverFile("b/x.txt", "odd-name", None, None, "/b"),
        ]
        found = reported(stray_file, *files)
        assert [(each.log_dir, each.topic, each.partition, each.evidence["files"]) for each in found] == [
            (None, None, None, ["lost-too.txt"]),
            (None, None, None, ["lost.txt"]),
            (None, "orders", 0, ["orders-0/2.log.swap"]),
            ("/b", None, None, ["b/x.txt"]),
            ("/b", "orders", 0, ["b/orders-0/2.log.cleaned"]),
            ("/b", "orders", 0, ["b/orders-0/1.log.swap"]),
            ("/b", "orders", 1, ["b/orders-1/1.log.swap"]),
        ]
        assert [(each.anchor, each.file) for each in found[4:6]] == [
            ("2.log.cleaned", "b/orders-0/2.log.cleaned"),
            ("1.log.swap", "b/orders-0/1.log.swap"),
        ]

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("deleted", "retention or compaction renamed it"),
            ("cleaned", "the log cleaner was writing it"),
            ("swap", "the log cleaner was swapping files"),
            ("future", "a replica is being moved"),
            ("delete", "the partition was deleted or moved"),
            ("stray", "this broker no longer owns the partition"),
            ("odd-name", "not a name a broker gives"),
        ],
    )
    def test_what_each_kind_means(self, kind, text):
        many = [LeftoverFile(f"x{number}", kind, "orders", 0, "/b", 5) for number in range(21)]
        found = reported(stray_file, *many)
        assert all(text in each.message for each in found)
        directories = kind in ("future", "delete", "stray")
        assert [each.evidence["count"] for each in found] == ([1] * 21 if directories else [21])
        assert len(found[0].evidence["files"]) == (1 if directories else 20)  # type: ignore[arg-type]


class TestMissingOffsets:
    """Offsets that are missing inside a segment, and between two."""

    EVIDENCE = gap(1, batch(80, 0, 5, 0), batch(92, 9, 1, 10), 4, 10)

    @pytest.mark.parametrize("cause", MissingCause)
    @pytest.mark.parametrize("compacted", [False, True])
    def test_which_are_reported(self, cause, compacted):
        missing = MissingOffsets(85, 89, cause, 1, 70)
        here = replace(CONTEXT, compacted=compacted)
        inside = [] if compacted or cause is not MissingCause.UNKNOWN else [85]
        between = [] if compacted or cause is not MissingCause.MISSING_SEGMENT else [85]
        assert [each.offset for each in reported(offset_gap, missing, context=here)] == inside
        assert [each.offset for each in reported(missing_segment, missing, context=here)] == between

    @pytest.mark.parametrize(
        ("first", "last", "text", "count"), [(85, 89, "offsets 85..89", "5 offsets"), (85, 85, "offset 85", "1 offset")]
    )
    def test_offsets_missing_inside_a_segment(self, first, last, text, count):
        other = MissingOffsets(3, 4, MissingCause.COMPACTION, 0, 7)
        (found,) = reported(offset_gap, other, MissingOffsets(first, last, MissingCause.UNKNOWN, 1, 70), self.EVIDENCE)
        assert found.message == f"{text} missing: the next batch, at byte 70, starts {count} too high"
        assert summary(found) == ("error", "certain", first, last)
        assert (found.segment, found.position) == (CONTEXT.segments[1], 70)
        assert found.evidence["missing_offsets"] == last - first + 1
        assert found.evidence["consequences"] == [
            {"producer_id": 1, "producer_epoch": 1, "missing_sequences": 4, "offset": 92}
        ]
        assert [each.innocent for each in found.explanations] == [False, True]

    @pytest.mark.parametrize(
        ("empty", "segment", "begun", "position"),
        [(None, 1, 0, None), (None, 0, 0, None), (1, 1, 1, 0), (0, 1, 0, 0)],
    )
    def test_offsets_missing_between_two_segments(self, empty, segment, begun, position):
        other = MissingOffsets(3, 4, MissingCause.UNKNOWN, 0, 7)
        missing = MissingOffsets(85, 89, MissingCause.MISSING_SEGMENT, segment, 70, empty)
        leftovers = [
            LeftoverFile(f"orders-0/{base:020d}.log.{kind}", kind, "orders", 0, "/logs", base)
            for base, kind in ((85, "deleted"), (85, "swap"), (86, "deleted"))
        ]
        (found,) = reported(missing_segment, *leftovers, other, missing)
        what = "no segment holds offsets 85..89" if empty is None else f"segment {85:020d}.log is empty"
        assert found.message == f"{what}: offsets 85..89 (5) missing between two segments"
        assert summary(found) == ("error", "certain", 85, 89)
        assert (found.segment, found.position) == (CONTEXT.segments[begun], position)
        assert found.evidence["next_segment"] == CONTEXT.segments[segment]
        names = [f"{85:020d}.log.{kind}" for kind in ("deleted", "swap")]
        assert found.evidence["leftovers"] == names
        assert [each.speaks_for for each in found.explanations] == [(names[0],), (names[1],), (), ()]
        assert [each.innocent for each in found.explanations] == [False] * 4


class TestFiles:
    """Segments that cannot be read, and batches that cannot be decoded."""

    def test_a_segment_that_cannot_be_read(self):
        paths = [
            f"/logs/orders-0/{CONTEXT.segments[1]}",
            "/logs/orders-0/notes.txt",
            f"/logs/orders-0/{CONTEXT.segments[0]}",
        ]
        second, first = reported(unreadable_segment, *(Unreadable(path, "Permission denied") for path in paths))
        assert second.message == f"{CONTEXT.segments[1]} cannot be read: Permission denied"
        assert (*summary(second), second.segment) == ("warning", "certain", None, None, CONTEXT.segments[1])
        assert (first.segment, first.anchor) == (CONTEXT.segments[0], CONTEXT.segments[0])
        assert [each.innocent for each in first.explanations] == [True, False]

    @pytest.mark.parametrize("limited", [False, True])
    @pytest.mark.parametrize(("producer_id", "shown"), [(0, (0, 3)), (7, (7, 3)), (-1, (None, None))])
    @pytest.mark.parametrize(("records", "at_most"), [(3, 5), (9, 9)])
    def test_a_batch_that_cannot_be_decoded(self, limited, producer_id, shown, records, at_most):
        malformed = MalformedBatch(
            1, 70, 400, 95, 99, records, producer_id, 3, "no end", limited, 1000 if limited else None
        )
        check, other = (limit_exceeded, malformed_batch)[:: 1 if limited else -1]
        assert reported(other, malformed) == []
        (found,) = reported(check, malformed)
        what = "too large to unpack" if limited else "malformed"
        assert found.message == f"the batch of offsets 95..99 is {what}: no end"
        assert summary(found) == ("error", "certain", 95, 99)
        assert (found.producer_id, found.producer_epoch) == shown
        assert (found.segment, found.position) == (CONTEXT.segments[1], 70)
        assert (found.evidence["bytes"], found.evidence["limit"]) == (400, malformed.limit)
        assert found.impact == (Impact() if limited else Impact(records_lost_at_least=0, records_lost_at_most=at_most))
        assert [each.innocent for each in found.explanations] == [False, limited]
        assert list(found.next) == [f"kaudit inspect --at 70 {CONTEXT.paths[1]}"]

    def test_a_leader_epoch_that_falls(self):
        (found,) = reported(leader_epoch_regression, LeaderEpochRegression(2, 5, 95, 99, 70, 1))
        assert found.message == "the batch at offset 95 has leader epoch 2 among batches of leader epoch 5"
        assert (*summary(found), found.segment, found.position) == ("error", "certain", 95, 99, CONTEXT.segments[1], 70)
        assert (found.evidence["leader_epoch"], found.evidence["expected_leader_epoch"]) == (2, 5)


def damage(kind, position, end, *, segment=0, resynchronised=True, missing=(None, None), expected=None, **claims):
    return PlacedDamage(LogDamage(kind, position, end, resynchronised, "why", **claims), segment, expected, *missing)


class TestDamage:
    """Ranges of damage: which neighbours are one, what they cost, and how a broker takes them."""

    OUT, ZEROS, CRC = DamageKind.OUT_OF_ORDER, DamageKind.ZEROS, DamageKind.CRC_MISMATCH
    TORN, GARBAGE = DamageKind.TORN, DamageKind.UNPARSABLE
    PAGE = 4096
    """Where an append that was interrupted may end."""

    @pytest.mark.parametrize(
        ("first", "second", "one"),
        [
            (damage(OUT, 0, 70), damage(OUT, 70, 140), True),
            (damage(ZEROS, 0, 70), damage(OUT, 70, 140), True),
            (damage(CRC, 0, 70), damage(OUT, 70, 140), False),
            (damage(GARBAGE, 0, 70), damage(OUT, 70, 140), False),
            (damage(ZEROS, 0, 70), damage(ZEROS, 70, 140), False),
            (damage(OUT, 0, 70), damage(CRC, 70, 140), False),
            (damage(OUT, 0, 70), damage(OUT, 71, 140), False),
            (damage(OUT, 0, 70), damage(OUT, 70, 140, segment=1), False),
            (damage(DamageKind.LEFT_OUT, 0, 70), damage(OUT, 70, 140), None),
        ],
    )
    def test_what_is_one_event(self, first, second, one):
        ranges = [len(found.parts) for kind in DamageKind for found in damaged_ranges(Evidence([first, second]), kind)]
        assert ranges == ([2] if one else [1, 1])

    def test_a_range_of_several(self):
        parts = [
            damage(self.OUT, 70, 140, expected=40, missing=(40, 44), base_offset=10, last_offset=12),
            damage(self.OUT, 140, 200, expected=40, missing=(40, 44), base_offset=13, last_offset=15),
            damage(self.OUT, 200, 300, resynchronised=False, missing=(46, 47), base_offset=16, last_offset=19),
        ]
        here = replace(CONTEXT, segment_sizes=(1000, 500))
        (found,) = reported(offset_regression, *parts, context=here)
        assert found.message == "3 batches from offset 10 on are out of order: why"
        assert summary(found) == ("error", "certain", 10, 19)
        evidence = {name: found.evidence[name] for name in (
            "bytes", "end_position", "resynchronised_at", "count", "first_missing_offset", "last_missing_offset"
        )}  # fmt: skip
        assert evidence == {
            "bytes": 230, "end_position": 300, "resynchronised_at": None, "count": 3,
            "first_missing_offset": 40, "last_missing_offset": 47,
        }  # fmt: skip
        # what is missed may be what is out of its place; and no broker cuts it off
        assert found.impact == Impact(records_lost_at_least=0, records_lost_at_most=7)

    def test_a_file_that_breaks_off_where_no_append_ends_was_cut(self):
        here = replace(CONTEXT, segment_sizes=(5000, 4095))
        (found,) = reported(truncated_tail, damage(self.TORN, 70, 4095, segment=1), context=here)
        assert [each.innocent for each in found.explanations] == [False] * 2
        (found,) = reported(truncated_tail, damage(self.TORN, 70, 4095, segment=1))  # a text
        assert [each.innocent for each in found.explanations] == [False, False, True]

    @pytest.mark.parametrize(
        ("check", "kind", "segment", "resynchronised", "severity", "innocent"),
        [
            (truncated_tail, TORN, 1, False, "warning", [False, False, True]),
            (truncated_tail, TORN, 0, False, "error", [False, False]),
            (zero_filled, ZEROS, 1, False, "note", [True]),
            (zero_filled, ZEROS, 1, True, "error", [False] * 3),
            (zero_filled, ZEROS, 0, False, "error", [False] * 3),
            (crc_mismatch, CRC, 1, True, "error", [False] * 3),
            (unparsable_bytes, GARBAGE, 1, True, "error", [False] * 3),
            (offset_regression, OUT, 1, True, "error", [False] * 2),
        ],
    )
    @pytest.mark.parametrize(
        ("missing", "text"), [((95, 95), "offset 95"), ((95, 97), "offsets 95..97"), ((None, None), "")]
    )
    def test_by_place(self, check, kind, segment, resynchronised, severity, innocent, missing, text):
        here = replace(CONTEXT, segment_sizes=(5000, 4096))
        placed = damage(
            kind,
            70,
            self.PAGE,
            segment=segment,
            resynchronised=resynchronised,
            missing=missing,
            base_offset=94,
            last_offset=99,
        )
        (found,) = reported(check, placed, context=here)
        claims = kind in (self.CRC, self.OUT)
        last = None if missing[0] is None else missing[1]
        place = (94, 99) if claims else (missing[0], last)
        assert summary(found) == (severity, "certain", *place)
        assert (found.segment, found.position) == (CONTEXT.segments[segment], 70)
        assert (f"; {text} cannot be read" in found.message) is (bool(text) and not claims)
        assert [each.innocent for each in found.explanations] == innocent
        assert found.evidence["resynchronised_at"] == (self.PAGE if resynchronised else None)
        number = 0 if missing[0] is None else missing[1] - missing[0] + 1
        lost = Impact(records_lost_at_least=0, records_lost_at_most=number) if number else Impact()
        cut = None if kind is self.OUT else 4026 if segment else 9026
        assert found.impact == (Impact() if severity == "note" else replace(lost, bytes_truncated=cut))
        assert found.anchor == (None if place[0] is not None else "byte 70")
        assert found.next[0] == f"kafka-dump-log --files {CONTEXT.paths[segment]}"
        later = " and deletes 1 later segment;" in str(found.evidence["broker"])
        assert later is (segment == 0 and kind is not self.OUT)

    def test_where_no_offset_is_known_the_expected_one_names_it(self):
        (found,) = reported(unparsable_bytes, damage(self.GARBAGE, 70, 140, expected=95))
        assert (found.offset, found.last_offset, found.anchor) == (None, None, "95")
        assert found.message == "70 bytes at 70 are not a valid batch (why)"
        # texts stand for the segments: nobody knows how many bytes there are
        assert found.impact == Impact()
