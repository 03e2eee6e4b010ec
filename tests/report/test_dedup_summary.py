"""What `kaudit dedup` says before its rows, and its documents."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kaudit.listings.duplicates import DuplicateListing, PartitionTotal
from kaudit.model.duplicates import Cause, DuplicateCounts, Relation, RepeatedRange
from kaudit.model.result import NotAudited
from kaudit.model.severity import Confidence
from kaudit.report.console import Console
from kaudit.report.text.duplicates import document, jsonl, not_compared, summary_text
from tests.scan_results import scan_result


def total(number=0, *, records=100, compacted=False, more=0, unread=0, undecoded=0, known_keys=0, **counts):
    counted = DuplicateCounts(**counts)
    return PartitionTotal(
        "orders", number, "1", records, compacted, counted, more, unread, undecoded, known_keys, 0, "key"
    )


def listing(*totals, partitions=(), ranges=(), **scan):
    return DuplicateListing(
        scan_result(**scan), partitions, cast("Any", None), list(totals), ranges=list(ranges), range_count=len(ranges)
    )


def text_of(*totals, console=Console(), ranges=(), most=2):  # noqa: B008 - frozen
    return "".join(summary_text(listing(*totals, ranges=ranges), console, "read_committed", most))


def test_nothing_repeated():
    assert text_of(total(records=1)) == (
        "0 of 1 record repeat earlier ones (as isolation.level=read_committed is given them)\n"
    )
    assert text_of(total(records=1, known_keys=2)).splitlines()[1:] == [
        "",
        "a consumer that remembers     drops equal  processes equal  drops different",
        "keys                                    0                0                2",
        "producer id, epoch, sequence            0                0                0",
    ]
    assert text_of() == "0 of 0 records repeat earlier ones (as isolation.level=read_committed is given them)\n"


def test_what_consumers_recognise():
    first = total(
        0, records=1000, known_keys=7, repeated=12, recurring=3, dropped_by_key=10, dropped_by_sequence=5,
        lost_by_sequence=2, given_twice_by_sequence={"other-producer-id": 4, "no-producer-id": 3},
        by_confidence={"certain": 8, "possible": 4},
    )  # fmt: skip
    second = total(
        1, records=500, known_keys=8, repeated=4, recurring=1, dropped_by_key=1, dropped_by_sequence=0,
        lost_by_sequence=1, given_twice_by_sequence={"other-producer-id": 1, "other-epoch": 1, "same-sequence": 2},
        by_confidence={"likely": 3, "possible": 1},
    )  # fmt: skip
    assert text_of(first, second) == (
        "11 of 1,500 records repeat earlier ones (as isolation.level=read_committed is given them)\n"
        "5 more equal earlier ones, which proves nothing: alone, under another timestamp, or over and over\n"
        "\n"
        "a consumer that remembers     drops equal  processes equal  drops different\n"
        "keys                                   11                5               15\n"
        "producer id, epoch, sequence            5               11                3\n"
        "- Not recognised by sequence: 3 without a producer id, 1 under another producer epoch, "
        "5 under another producer id, 2 under the same sequence, further back than is compared.\n"
        "- Not recognised by key: 5 have no key.\n"
    )


@pytest.mark.parametrize(("counts", "verb", "shown"), [
    ({"repeated": 1, "dropped_by_key": 1}, "1 of 100 records repeats an earlier one (", True),
    ({"repeated": 2, "dropped_by_key": 2}, "2 of 100 records repeat earlier ones (", True),
    ({"repeated": 1, "dropped_by_key": 1, "by_confidence": {"possible": 1}}, "0 of 100 records repeat earlier ones (", True),
    ({"lost_by_sequence": 1}, "0 of 100 records repeat earlier ones (", True), ({}, "0 of 100 records repeat earlier ones (", False),
])  # fmt: skip
def test_the_table_is_there_for_repeats_and_losses(counts, verb, shown):
    text = text_of(total(**counts))
    assert text.startswith(verb)
    assert ("a consumer that remembers" in text) is shown
    assert "Not recognised" not in text
    assert ("\n1 more equals an earlier one, which proves nothing" in text) is ("by_confidence" in counts)
    if shown:
        dropped = counts.get("dropped_by_key", 0)
        assert f"keys                                    {dropped}                0                0\n" in text


NAMED = cast(
    "Any", SimpleNamespace(directory=SimpleNamespace(name="orders-0", topic="orders", partition=0, replica="1"))
)
RANGE = RepeatedRange(
    7, 10, 3, 6, 4, 1_002_500, 1_000_000, 9, 0, 8, 0, Relation.OTHER_PRODUCER_ID, Cause.RESTART, Confidence.LIKELY,
    same_timestamps=False, differs_in=None, recognisable_by=None,
)  # fmt: skip


@pytest.mark.parametrize(("changed", "lines"), [
    ({}, ["orders-0: 7..10 repeat 3..6 (4 records)", "  likely a restart: producer 9/0 begins with what producer 8/0 had written",
          "  equal in key, value and headers; timestamps 2.5 s later",
          "  nothing but their content shows a consumer that it had them before"]),
    ({"confidence": Confidence.CERTAIN, "differs_in": "value:ts_ms", "recognisable_by": "source.lsn", "timestamp": 999_000},
     ["orders-0: 7..10 repeat 3..6 (4 records)", "  restart: producer 9/0 begins with what producer 8/0 had written",
      "  they differ in value:ts_ms; timestamps 1.0 s earlier", "  a consumer can recognise them by: source.lsn"]),
    ({"confidence": Confidence.POSSIBLE, "cause": Cause.UNKNOWN, "last_offset": 7, "original_last_offset": 3, "record_count": 1,
      "timestamp": None},
     ["orders-0: 7 equals 3 (1 record)", "  no sign that they were sent again: an application, or a person, may have written them",
      "  equal in key, value and headers; no timestamps to compare",
      "  nothing but their content shows a consumer that it had them before"]),
    ({"cause": Cause.RETRY, "same_timestamps": True},
     ["orders-0: 7..10 repeat 3..6 (4 records)", "  likely a retry: the transaction that wrote them first was aborted",
      "  equal in key, value and headers; timestamps equal too",
      "  nothing but their content shows a consumer that it had them before"]),
], ids=["restart", "id", "alone", "aborted"])  # fmt: skip
def test_a_range(changed, lines):
    text = text_of(total(repeated=4), ranges=[(NAMED, replace(RANGE, **changed))])
    assert text.split("\n\n")[1].splitlines() == lines


def test_the_surest_ranges_with_the_most_records_are_shown():
    recurring = replace(RANGE, cause=Cause.RECURRING, confidence=Confidence.POSSIBLE, record_count=900)
    few, many = replace(RANGE, offset=20, record_count=2), replace(RANGE, offset=30, record_count=50)
    certain = replace(RANGE, offset=40, record_count=1, confidence=Confidence.CERTAIN)
    ranges = [(NAMED, each) for each in (recurring, few, many, certain)]
    text = text_of(total(repeated=4), ranges=ranges)
    assert [line for line in text.splitlines() if line.startswith("orders-0") or "more range" in line] == [
        "orders-0: 30..10 repeat 3..6 (50 records)",
        "orders-0: 40..10 repeats 3..6 (1 record)",
        "1 more range (-v shows them)",
    ]
    shown = json.loads("".join(document([], lambda: listing(total(), ranges=ranges), "x")))["summary"]
    assert [row["record_count"] for row in shown["ranges"]] == [900, 2, 50, 1]
    assert (shown["ranges"][0]["cause"], shown["ranges"][0]["topic"], shown["more_ranges"]) == (
        "recurring",
        "orders",
        0,
    )


@pytest.mark.parametrize(("counts", "exhaustive"), [({"records": (1 << 20) + 1}, True), ({"more": 1}, False)])
def test_what_was_not_compared_with_all_before_it_is_a_lower_bound(counts, exhaustive):
    text = text_of(total(0, repeated=7), total(1, **counts))
    assert text.startswith("7 of " if exhaustive else "at least 7 of ")
    shown = json.loads("".join(document([], lambda: listing(total(1, **counts)), "x")))["summary"]
    assert shown["exhaustive"] is exhaustive


@pytest.mark.parametrize(("numbers", "more"), [([2], ""), ([2, 5], " and 1 more"), ([2, 5, 9], " and 2 more")])
def test_compacted_partitions(numbers, more):
    text = text_of(total(1), *(total(number, compacted=True) for number in numbers))
    assert text.endswith(
        f"- Compacted (orders-2{more}): copies that the log cleaner removed are not listed, though consumers may have read them.\n"
    )
    assert "Compacted" not in text_of(total(1))


def test_colours():
    text = text_of(total(known_keys=1), console=Console(color=True, width=200))
    assert text.startswith("\x1b[1m0 of 100 records repeat")
    lines = text.splitlines()
    assert lines[2].startswith("\x1b[2ma consumer that remembers")
    assert lines[3].startswith("keys  ")


def test_what_is_not_compared():
    notes = [
        NotAudited("a", "unreadable", unreadable=True),
        NotAudited("b", "healthy"),
        NotAudited("c", "left out", asked_for=True),
    ]

    def partition(name, *, damaged):
        read = SimpleNamespace(damaged=damaged)
        return cast("Any", SimpleNamespace(directory=SimpleNamespace(name=name), read=read))

    found = listing(
        total(0),
        total(1, undecoded=1, unread=2, more=3),
        total(2, undecoded=2, unread=1, more=1),
        partitions=[partition("torn-0", damaged=True), partition("whole-0", damaged=False)],
        not_audited=notes,
    )
    assert [(note.path, note.reason) for note in not_compared(found)] == [
        ("a", "unreadable"),
        ("c", "left out"),
        ("torn-0", "has damage ('kaudit scan' describes it): records in it are not compared"),
        ("orders-1", "1 batch cannot be decoded"),
        ("orders-1", "2 repeats cannot be read again, or not be decoded"),
        ("orders-1", "3 more records whose sequences other batches have, too: not compared with these"),
        ("orders-2", "2 batches cannot be decoded"),
        ("orders-2", "1 repeat cannot be read again, or not be decoded"),
        ("orders-2", "1 more record whose sequences other batches have, too: not compared with these"),
    ]


ROWS: list[dict[str, object]] = [{"row": "duplicate", "offset": 2**62, "a": 1}, {"row": "duplicate", "offset": 7}]


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS])
def test_documents(rows):
    found = listing(total(0, repeated=3, known_keys=1), total(1, repeated=4), incomplete=True)
    shown = json.loads("".join(document(rows, lambda: found, "read_committed")))
    assert (shown["schema"], shown["inputs"], shown["rows"]) == ("kaudit.dedup/1", ["/data"], rows)
    summary = shown["summary"]
    assert [entry["counts"]["repeated"] for entry in summary["partitions"]] == [3, 4]
    assert summary["counts"]["repeated"] == 7
    assert (summary["isolation_level"], summary["compared"], summary["incomplete"]) == (
        "read_committed",
        "records",
        True,
    )
    lines = "".join(jsonl(rows, lambda: found, "read_committed")).splitlines()
    assert [json.loads(line) for line in lines] == [*rows, {"row": "summary", **summary}]
    assert all(line == json.dumps(json.loads(line), sort_keys=True) for line in lines)
    complete = json.loads("".join(document([], lambda: listing(total()), "x")))["summary"]
    assert (complete["incomplete"], complete["not_compared"]) == (False, [])
