"""KA910: archived records of share groups, in a broker's logs (tests/data/internal-topics) and made ones."""

from pathlib import Path

import pytest

from tests.checks.groups.scanned import evidence_of, of_groups, scanned
from tests.commits import share_log

RECORDED = Path(__file__).parents[2] / "data" / "internal-topics"


def share_state(directory: Path, content: bytes) -> Path:
    partition = directory / "__share_group_state-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(content)
    return directory


def found_in(directory: Path, *states):
    return [
        (found.code, found.severity.value, found.impact.records_skipped_at_most)
        for found in of_groups(scanned(share_state(directory, share_log(*states))))
    ]


@pytest.mark.parametrize(
    ("release", "topic", "rejected", "exhausted"),
    [
        # as the consumers of the recordings acknowledged them: REJECT; of 4.4.0 offset 40 was released five times
        ("4.1.0", None, [5, 16, 27, 49], []),
        ("4.4.0", "queue", [5, 16, 27, 38, 49], [40]),
    ],
    ids=["4.1", "4.4"],
)
def test_what_consumers_rejected_and_released_too_often(release, topic, rejected, exhausted):
    (found,) = of_groups(scanned(RECORDED / release))
    shown = evidence_of(found)
    assert (found.code, shown["group_id"], shown["topic"]) == ("KA910", "workers", topic)
    assert [each["first_offset"] for each in shown["offsets"] if each["deliveries"] < 5] == rejected
    assert [each["first_offset"] for each in shown["offsets"] if each["deliveries"] >= 5] == exhausted
    assert (shown["rejected"], shown["exhausted"]) == (len(rejected), len(exhausted))


CASES = {
    "acknowledged": ([(1, 0, []), (-1, 0, [(0, 9, 2, 1)]), (-1, 10, [])], []),
    "available": ([(1, 0, []), (-1, 0, [(0, 9, 0, 1)])], []),
    "rejected": ([(1, 0, []), (-1, 0, [(0, 9, 4, 1)])], [("KA910", "warning", 10)]),
    # a snapshot says again what updates said
    "once": (
        [(1, 0, []), (-1, 0, [(3, 5, 4, 1)]), (1, 0, [(0, 2, 2, 1), (3, 5, 4, 1)]), (-1, 0, [(5, 6, 4, 2)])],
        [("KA910", "warning", 4)],
    ),
    "below-the-start": ([(1, 0, [(0, 5, 4, 1)]), (-1, 6, [])], [("KA910", "warning", 6)]),
    "jumped": ([(1, 0, [(0, 9, 2, 1), (10, 14, 0, 2)]), (-1, 40, [])], [("KA912", "warning", 30)]),
    "first-start": ([(1, -1, []), (-1, 40, [])], []),
    # -1: as it was (PartitionFactory.UNINITIALIZED_START_OFFSET)
    "start-unchanged": ([(1, 0, []), (-1, 0, [(0, 9, 2, 1)]), (-1, -1, [(10, 14, 2, 1)]), (-1, 15, [])], []),
    "reset": ([(1, 40, []), (2, 0, [])], [("KA912", "note", None)]),
    "backwards": ([(1, 40, []), (-1, 0, [])], [("KA912", "warning", None)]),
    # the copy's own time is all there is
    "acquired-just-now": ([(1, 0, [(0, 5, 1, 1)])], []),
}


@pytest.mark.parametrize(("states", "expected"), CASES.values(), ids=CASES)
def test_what_states_show(tmp_path, states, expected):
    assert found_in(tmp_path, *states) == expected


def test_ranges_that_overlap_are_counted_once(tmp_path):
    states = [(1, 0, []), (-1, 0, [(0, 10, 4, 1), (5, 12, 4, 1), (-3, 4, 2, 1)]), (-1, 0, [(0, 2**62, 4, 1)])]
    assert [code for code, *_ in found_in(tmp_path, *states)] == ["KA910"]


def test_the_first_and_the_last_record_that_archived(tmp_path):
    states = [(1, 0, [(0, 5, 4, 1)]), (-1, 0, [(6, 6, 4, 1)]), (-1, 7, [])]
    (found,) = of_groups(scanned(share_state(tmp_path, share_log(*states))))
    assert (found.offset, found.last_offset) == (0, 1)
