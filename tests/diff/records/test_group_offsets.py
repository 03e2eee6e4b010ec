"""Where a group goes on with a topic's copy: by the definition, on lists of records, and on ledgers of random mirrors."""

import random
from pathlib import Path
from typing import Any

import pytest

from kaudit.diff.records.group_offsets import GroupOffset, offsets_file, read_again, translated
from kaudit.model.ledger import RepeatedRange, SideCounts, TopicLedger
from tests.engines.test_record_ledger import batches_of, compared, log, rec

SIDE = SideCounts()


def follows(copied: list[int], committed: int) -> int:
    """Where a group goes on that has read the source's offsets below `committed`; `copied`: which of these the target has at 0, 1, 2 ...

    Nothing unread: after the last of all that it has read. Else at the first unread record, at its last copy where every unread one has
    a copy there or later.
    """
    unread = {offset for offset in copied if offset >= committed}
    if not unread:
        return len(copied)
    first = min(unread)
    last = max(at for at, offset in enumerate(copied) if offset == first)
    return last if unread <= set(copied[last:]) else copied.index(first)


def mirrored(chance: random.Random) -> list[int]:
    """Offsets that a mirror has written: some are lost, and after a restart it goes back, up to three times."""
    sent = [offset for offset in range(chance.randint(1, 24)) if chance.random() > 0.1] or [0]
    copied, at = [], 0
    restarts = sorted(chance.randint(1, len(sent)) for _ in range(chance.randint(0, 3)))
    # the last time it may have ended before it was where it had been
    for end in [*restarts, chance.choice((len(sent), max(len(sent) - 1, 1)))]:
        copied += sent[at:end]
        at = max(end - chance.randint(0, 8), 0)
    return copied


@pytest.mark.parametrize(
    ("committed", "offsets"), [(0, [0, 0]), (4, [4, 2]), (5, [5, 2]), (6, [5, 3]), (7, [6, 3]), (8, [6, 4])]
)
def test_each_partition_of_the_copy_is_gone_on_with_by_itself(tmp_path: Path, committed: int, offsets: list[int]):
    """The copy has even offsets in one partition, 4 and 6 twice, and odd ones in another."""
    log(tmp_path / "source", "t-0", batches_of([rec(number) for number in range(8)]))
    for number, part in enumerate(((0, 2, 4, 6, 4, 6), (1, 3, 5, 7))):
        log(tmp_path / "target", f"t-{number}", batches_of([rec(offset) for offset in part]))
    with compared(tmp_path) as result:
        found = [*translated(result.ledgers, [GroupOffset("g", "t", 0, committed)])]
    assert found == [GroupOffset("g", "t", number, offset) for number, offset in enumerate(offsets)]


@pytest.mark.parametrize("seed", range(24))
def test_a_group_goes_on_where_it_has_read_all_before(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    copied = mirrored(chance)
    log(tmp_path / "source", "t-0", batches_of([rec(number) for number in range(24)]))
    log(tmp_path / "target", "t-0", batches_of([rec(number) for number in copied]))
    commits = [GroupOffset("g", "t", 0, offset) for offset in range(25)]
    with compared(tmp_path) as result:
        (ledger,) = result.ledgers
        found = [[*translated([ledger], [commit])] for commit in commits]
    assert found == [[GroupOffset("g", "t", 0, follows(copied, offset))] for offset in range(25)]


def test_the_lowest_offset_counts_where_a_partition_has_records_of_several(tmp_path: Path):
    log(tmp_path / "source", "t-0", batches_of([rec(number) for number in range(4)]))
    log(tmp_path / "source", "t-1", batches_of([rec(number) for number in range(10, 14)]))
    log(tmp_path / "target", "t-1", batches_of([rec(number) for number in (0, 10, 1, 11, 2, 12, 3, 13)]))
    with compared(tmp_path) as result:
        for first, second, expected in ((4, 4, 7), (1, 4, 2), (4, 2, 5), (3, 1, 3), (0, 0, 0)):
            commits = [
                GroupOffset("g", "t", 0, first),
                GroupOffset("g", "t", 1, second),
                GroupOffset("g", "other", 1, 0),
            ]
            assert [*translated(result.ledgers, commits)] == [GroupOffset("g", "t", 1, expected)]
        alone = [GroupOffset("b", "t", 1, 1), GroupOffset("a", "t", 0, 1), GroupOffset("a", "t", 2, 1)]
        assert [*translated(result.ledgers, alone)] == [GroupOffset("a", "t", 1, 2), GroupOffset("b", "t", 1, 3)]


def ledger_of_repeats(*ranges: tuple[int, int, int, int]) -> TopicLedger:
    """A copy `m.t` of `t` with records that are there again: partition, first and last offset, records."""
    own = [RepeatedRange(*each, 0, 0, 0, 0, 0, 0) for each in ranges]
    return TopicLedger("t", "m.t", "key,value", False, SIDE, SIDE, repeated_ranges=own)


@pytest.mark.parametrize(
    ("offset", "records"), [(0, 7), (10, 7), (11, 6), (14, 3), (15, 2), (20, 2), (21, 2), (22, 2), (23, 1), (24, 0)]
)
def test_how_many_records_a_group_is_given_again(offset: int, records: int):
    """Five at 10 to 14, two somewhere within 20 to 23: as many as can follow."""
    ledger = ledger_of_repeats((3, 10, 14, 5), (3, 20, 23, 2), (4, 0, 99, 100))
    asked = GroupOffset("g", "m.t", 3, offset)
    expected: list[Any] = [(asked, records)] if records else []
    assert [*read_again([ledger], [asked])] == expected
    assert [*read_again([ledger], [GroupOffset("g", "t", 3, offset), GroupOffset("g", "m.t", 5, 0)])] == []


@pytest.mark.parametrize(
    ("group", "written"),
    [
        ("g", "g"),
        ("a,b", '"a,b"'),
        ('say "hi"', '"say ""hi"""'),
        ("a\nb", '"a\nb"'),
        ("a\rb", '"a\rb"'),
        ("a b", "a b"),
    ],
)
def test_the_file_for_kafka_consumer_groups(group: str, written: str):
    offsets = [GroupOffset(group, "m.t", 3, 7)]
    assert [*offsets_file(offsets, with_group=True)] == [f"{written},m.t,3,7\n"]
    assert [*offsets_file(offsets, with_group=False)] == ["m.t,3,7\n"]
