"""What stands below the table of `kaudit dedup`, and its documents."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kaudit.listings.duplicates import DuplicateListing, PartitionTotal
from kaudit.model.duplicates import DuplicateCounts
from kaudit.model.result import NotAudited
from kaudit.report.console import Console
from kaudit.report.text.duplicates import document, jsonl, not_compared, summary_text
from tests.scan_results import scan_result


def total(
    number=0, *, records=100, compacted=False, more=0, unread=0, undecoded=0, known_keys: int | None = None, **counts
):
    counted = DuplicateCounts(**counts)
    return PartitionTotal("orders", number, "1", records, compacted, counted, more, unread, undecoded, known_keys, None)


def listing(*totals, partitions=(), **scan):
    return DuplicateListing(scan_result(**scan), partitions, cast("Any", None), list(totals))


def text_of(*totals, console=Console()):  # noqa: B008 - frozen
    return "".join(summary_text(listing(*totals), console, "read_committed"))


def test_nothing_repeated():
    assert text_of(total(records=1)) == (
        "0 of 1 record repeat earlier ones (compared batch by batch, as isolation.level=read_committed is given them)\n"
        "- Batches were compared as wholes: --depth records finds records that were batched anew, and keys that recur.\n"
    )
    assert text_of(total(records=1, known_keys=0)).splitlines()[1:] == []
    assert text_of(total(records=1, known_keys=2)).splitlines()[1:] == [
        "",
        "a consumer that remembers     recognises  processes twice  drops, though new",
        "keys                                   0                0                  2",
        "producer id, epoch, sequence           0                0                  0",
    ]
    assert text_of() == (
        "0 of 0 records repeat earlier ones (compared batch by batch, as isolation.level=read_committed is given them)\n"
    )


def test_what_consumers_recognise():
    first = total(
        0, records=1000, known_keys=7, repeated=12, recurring=3, dropped_by_key=10, dropped_by_sequence=5,
        lost_by_sequence=2, given_twice_by_sequence={"other-producer-id": 4, "no-producer-id": 3},
    )  # fmt: skip
    second = total(
        1, records=500, known_keys=8, repeated=4, recurring=1, dropped_by_key=1, dropped_by_sequence=0,
        lost_by_sequence=1, given_twice_by_sequence={"other-producer-id": 1, "other-epoch": 1, "same-sequence": 2},
    )  # fmt: skip
    assert text_of(first, second) == (
        "16 of 1,500 records repeat earlier ones (compared one by one, as isolation.level=read_committed is given them)\n"
        "\n"
        "a consumer that remembers     recognises  processes twice  drops, though new\n"
        "keys                                  11                5                 15\n"
        "producer id, epoch, sequence           5               11                  3\n"
        "- Not recognised by sequence: 3 without a producer id, 1 under another producer epoch, "
        "5 under another producer id, 2 under the same sequence, further back than is compared.\n"
        "- Not recognised by key: 5 have no key.\n"
        "- 4 of the repeats are copy 4 or later: records that recur by themselves, "
        "rather than copies that a client sent again.\n"
    )


@pytest.mark.parametrize(("counts", "verb", "shown"), [
    ({"repeated": 1, "dropped_by_key": 1}, "1 of 100 records repeats an earlier one (", True),
    ({"repeated": 2, "dropped_by_key": 2}, "2 of 100 records repeat earlier ones (", True),
    ({"lost_by_sequence": 1}, "0 of 100 records repeat earlier ones (", True), ({}, "0 of 100 records repeat earlier ones (", False),
])  # fmt: skip
def test_the_table_is_there_for_repeats_and_losses(counts, verb, shown):
    text = text_of(total(**counts))
    assert text.startswith(verb)
    assert ("a consumer that remembers" in text) is shown
    assert "Not recognised" not in text
    if shown:
        lost = counts.get("lost_by_sequence", 0)
        assert (
            f"keys                                   {counts.get('dropped_by_key', 0)}                0          not known\n"
            in text
        )
        assert text.count(f"  {lost}\n") >= 1


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

    def partition(name, *texts):
        segments = [SimpleNamespace(text=text) for text in texts]
        return cast("Any", SimpleNamespace(directory=SimpleNamespace(name=name, segments=segments)))

    found = listing(
        total(0),
        total(1, undecoded=1, unread=2, more=3),
        total(2, undecoded=2, unread=1, more=1),
        partitions=[partition("text-0", None, object()), partition("bytes-0", None, None)],
        not_audited=notes,
    )
    assert [(note.path, note.reason) for note in not_compared(found)] == [
        ("a", "unreadable"),
        ("c", "left out"),
        ("text-0", "text of kafka-dump-log: it holds no records to compare"),
        ("orders-1", "1 batch cannot be decoded"),
        ("orders-1", "2 suspects cannot be read again, or not be decoded"),
        ("orders-1", "3 more suspects counted here, not listed"),
        ("orders-2", "2 batches cannot be decoded"),
        ("orders-2", "1 suspect cannot be read again, or not be decoded"),
        ("orders-2", "1 more suspect counted here, not listed"),
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
    by_batch = json.loads("".join(document([], lambda: listing(total()), "x")))["summary"]
    assert (by_batch["compared"], by_batch["incomplete"], by_batch["not_compared"]) == ("batches", False, [])
