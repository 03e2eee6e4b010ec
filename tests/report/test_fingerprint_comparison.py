"""The comparison of two sites by digests, as text and as JSON: every line, and at which number each one changes."""

import json

import pytest
from msgspec.structs import replace

from kaudit.model.fingerprint import FingerprintComparison, FingerprintDiff, HeldBatch
from kaudit.model.replicas import OffsetRange, Relation
from kaudit.model.result import NotAudited
from kaudit.report.console import Console
from kaudit.report.text.digest_comparisons import comparison_document, comparison_text

SITES = ("paris", "oslo")


def partition(relation, number=0, **changes):
    entry = FingerprintComparison(
        topic="orders",
        partition=number,
        relation=relation,
        start_offsets={"paris": 0, "oslo": 0},
        end_offsets={"paris": 2048, "oslo": 1024},
        identical_up_to=1024,
        differing=(),
        not_compared=(),
        first_difference=None,
        compacted=False,
        damaged_on=(),
    )
    return replace(entry, **changes)


def compared(*partitions, **only_on):
    return FingerprintDiff(SITES, ("a.json", "/data"), partitions, only_on, (), incomplete=False)


def text_of(found, *, width=None, narrowing=None):
    return "".join(comparison_text(found, Console(width=width), narrowing))


def ranges(*firsts):
    return [OffsetRange(first, first + 1023) for first in firsts]


def test_partitions_behind_and_diverged_are_in_the_table():
    found = compared(
        partition(Relation.IDENTICAL, 0),
        partition(Relation.BEHIND, 1),
        partition(Relation.DIVERGED, 2, identical_up_to=None, differing=ranges(0)),
    )
    assert text_of(found) == (
        "partition  relation  identical up to  paris ends  oslo ends  differs in\n"
        "orders-1   behind    1024             2048        1024       -\n"
        "orders-2   diverged  -                2048        1024       0..1023\n"
        "\n"
        "1 partition identical, 1 partition behind, 1 partition diverged, by digests of paris and oslo\n"
    )


@pytest.mark.parametrize(("firsts", "cell"), [
    ([0, 2048, 4096], "0..1023, 2048..3071, 4096..5119"),
    ([0, 2048, 4096, 6144], "0..1023, 2048..3071, 4096..5119 and 1 more"),
    ([0, 2048, 4096, 6144, 8192], "0..1023, 2048..3071, 4096..5119 and 2 more"),
])  # fmt: skip
def test_three_ranges_are_named(firsts, cell):
    assert f"1024       {cell}\n" in text_of(compared(partition(Relation.DIVERGED, differing=ranges(*firsts))))


def test_what_each_site_holds_at_the_first_difference():
    held = {"paris": HeldBatch(1030, 1033, 7, 0x2A), "oslo": None}
    found = compared(partition(Relation.DIVERGED, differing=[OffsetRange(1030, 1033)], first_difference=held))
    assert text_of(found).split("\n\n")[1] == (
        "- orders-0 at offset 1030: paris holds batch 1030..1033 (leader epoch 7, CRC 0000002a); oslo holds no batch."
    )
    for epoch, said in ((0, "leader epoch 0"), (-1, "no leader epoch")):
        held = {"paris": HeldBatch(1030, 1030, epoch, 2**32 - 1), "oslo": None}
        found = compared(partition(Relation.DIVERGED, differing=[OffsetRange(1030, 1030)], first_difference=held))
        assert f"paris holds batch 1030 ({said}, CRC ffffffff)" in text_of(found)


def test_each_remark_is_for_its_own_case():
    def remarks(**changes):
        parts = text_of(compared(partition(changes.pop("relation", Relation.IDENTICAL), **changes))).split("\n\n")
        return [line for part in parts for line in part.splitlines() if line.startswith("- ")]

    assert remarks() == []
    assert remarks(relation=Relation.DIVERGED, differing=ranges(0)) == []
    assert remarks(relation=Relation.DIVERGED, compacted=True, differing=ranges(0)) == [
        (
            "- orders-0 differs in 0..1023, but is compacted: the log cleaner removes records at its own time on each replica. "
            "Compare the directories themselves."
        )
    ]
    assert remarks(compacted=True) == []
    assert remarks(damaged_on=["oslo"]) == [
        "- orders-0: some bytes on oslo are not a valid batch; 'kaudit scan' says which."
    ]
    assert remarks(not_compared=ranges(0)) == [
        "- orders-0: 0..1023 not compared: the digests there cover other offsets on each site."
    ]
    # nothing in common: said only where nothing else is
    apart = {"start_offsets": {"paris": 0, "oslo": 5}, "end_offsets": {"paris": 2, "oslo": 5}, "relation": None}
    assert remarks(**apart) == ["- orders-0: no offset is in both logs, paris holds 0..1 and oslo is empty at 5."]
    assert remarks(**apart, differing=ranges(0)) == []
    assert len(remarks(**apart, not_compared=ranges(0))) == 1


def test_partitions_of_one_site_are_counted_after_the_first():
    for keys, more in (
        ([("logs", 3)], ""),
        ([("logs", 3), ("logs", 4)], " and 1 more"),
        ([("logs", 3), ("logs", 4), ("x", 0)], " and 2 more"),
    ):
        assert text_of(compared(partition(Relation.IDENTICAL), oslo=keys, paris=[])).startswith(
            f"- logs-3{more}: on oslo only, not compared.\n\n1 partition identical"
        )


@pytest.mark.parametrize(("damaged", "last"), [
    (20, "- orders-19: some bytes on oslo are not a valid batch; 'kaudit scan' says which."),
    (21, "- 1 more remark like these: json lists all."), (23, "- 3 more remarks like these: json lists all."),
])  # fmt: skip
def test_twenty_remarks_are_shown(damaged, last):
    entries = [partition(Relation.IDENTICAL, number, damaged_on=["oslo"]) for number in range(damaged)]
    lines = text_of(compared(*entries)).split("\n\n")[0].splitlines()
    assert len(lines) == min(damaged, 21)
    assert lines[-1] == last


def test_summary_counts_every_relation():
    assert text_of(compared()) == "no partition that both have, by digests of paris and oslo\n"
    found = compared(
        partition(Relation.IDENTICAL),
        partition(Relation.IDENTICAL, not_compared=ranges(0)),
        partition(Relation.BEHIND, not_compared=ranges(0)),
        partition(None, differing=ranges(0)),
    )
    assert text_of(found).endswith(
        "\n2 partitions identical, 1 partition behind, 1 undecided, by digests of paris and oslo; "
        "1 of the identical ones only as far as compared\n"
    )


NARROWER = (
    "To narrow it down, make digests of narrower ranges here:\n"
    "    kaudit fingerprint X > narrower.json\n"
    "and at the other site: kaudit diff narrower.json DIR\n"
)


@pytest.mark.parametrize(("changes", "narrows"), [
    ({}, False), ({"not_compared": ranges(0)}, True), ({"differing": ranges(0)}, True),
    ({"differing": [OffsetRange(5, 5)], "first_difference": {"paris": None, "oslo": HeldBatch(5, 5, 0, 0)}}, False),
])  # fmt: skip
def test_narrower_digests_are_proposed_where_they_would_help(changes, narrows):
    found = compared(partition(Relation.DIVERGED), partition(Relation.DIVERGED, 1, **changes))
    assert text_of(found, narrowing="kaudit fingerprint X").endswith(NARROWER) is narrows
    assert "narrow" not in text_of(found)


def test_names_are_made_visible_and_lines_fit():
    found = FingerprintDiff(
        ("a\x1b", "b\x1b"),
        (),
        [partition(Relation.BEHIND, topic="t\x1b", end_offsets={"a\x1b": 1, "b\x1b": 2}, damaged_on=["a\x1b"])],
        {"b\x1b": [("u\x1b", 0)]},
        (),
        incomplete=False,
    )
    for width in (None, 60):
        shown = text_of(found, width=width)
        assert "\x1b" not in shown
        assert shown.count("\\x1b") == 9  # in the table 3, the remarks 4, the summary 2
        assert width is None or max(map(len, shown.splitlines())) <= width


def test_document():
    batch = HeldBatch(5, 6, -1, 4_000_000_000)
    entry = partition(Relation.DIVERGED, differing=[OffsetRange(5, 6)], first_difference={"paris": None, "oslo": batch})
    found = replace(
        compared(entry, partition(None, 1), oslo=[("logs", 3)], paris=[]),
        not_audited=[NotAudited("x", "unreadable", unreadable=True)],
        incomplete=True,
    )
    text = "".join(comparison_document(found))
    assert text.endswith("}\n")
    shown = json.loads(text)
    assert {name: shown[name] for name in ("schema", "inputs", "sites", "incomplete", "only_on")} == {
        "schema": "kaudit.fingerprint-diff/1",
        "inputs": ["a.json", "/data"],
        "sites": ["paris", "oslo"],
        "incomplete": True,
        "only_on": {"oslo": [{"topic": "logs", "partition": 3}], "paris": []},
    }
    assert [entry["path"] for entry in shown["not_audited"]] == ["x"]
    first, second = shown["partitions"]
    assert first == {
        "topic": "orders",
        "partition": 0,
        "relation": "diverged",
        "start_offsets": {"paris": 0, "oslo": 0},
        "end_offsets": {"paris": 2048, "oslo": 1024},
        "identical_up_to": 1024,
        "differing": [{"first_offset": 5, "last_offset": 6}],
        "not_compared": [],
        "first_difference": {
            "paris": None,
            "oslo": {"base_offset": 5, "last_offset": 6, "leader_epoch": -1, "crc": 4_000_000_000},
        },
        "compacted": False,
        "damaged_on": [],
    }
    assert (second["partition"], second["relation"], second["first_difference"]) == (1, None, None)
