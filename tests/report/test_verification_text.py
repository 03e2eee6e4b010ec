"""A report held against logs, as text and as JSON."""

import json

import pytest

from kaudit.model.fingerprint import PartitionVerification, Verification, VerificationOutcome
from kaudit.model.replicas import OffsetRange
from kaudit.model.result import NotAudited
from kaudit.report.console import Console
from kaudit.report.text.digest_comparisons import verification_document, verification_text


def audited(verdict, number=0, *, start=0, end=100, **more):
    return PartitionVerification("orders", number, "1", verdict, start, end, **more)


def held(*partitions, **more):
    return Verification(["/data"], partitions, more.pop("not_in_report", ()), **more)


def lines_of(found, console=Console()):  # noqa: B008 - frozen
    return "".join(verification_text(found, "report.json", console)).splitlines()


ALL = (OffsetRange(0, 99),)


def test_the_gravest_first_each_in_a_sentence():
    found = held(
        audited(VerificationOutcome.UNCHANGED, 0, log_start_offset=0, log_end_offset=100, unchanged=ALL),
        audited(VerificationOutcome.UNPROVEN, 1, log_end_offset=100, not_compared=ALL),
        audited(VerificationOutcome.CLEANED, 2, log_end_offset=100, cleaned=ALL),
        audited(VerificationOutcome.MISSING, 3),
        audited(
            VerificationOutcome.DIFFERS, 4, log_end_offset=60, differing=[OffsetRange(0, 49)], lost=OffsetRange(60, 99)
        ),
        not_in_report=[("logs", 0), ("logs", 1)],
    )
    assert lines_of(found) == [
        (
            "orders-4 differs: not what the report audited, somewhere in each of offsets 0..49; "
            "the log ends at 60, offsets 60..99 are gone."
        ),
        "orders-3 missing: the report audited offsets 0..99, and it is not here.",
        "orders-2 cleaned: offsets 0..99 differ, where the log cleaner may have been.",
        "orders-1 unproven: 0..99 cannot be compared: the digest there is of more than can be read now.",
        "orders-0 unchanged: offsets 0..99 are what the report audited.",
        "",
        (
            "1 partition unchanged, 1 partition unproven, 1 partition cleaned, 1 partition missing, 1 partition differs, "
            "by the digests of report.json; 2 here that the report did not audit"
        ),
    ]


def test_what_came_since():
    entry = audited(
        VerificationOutcome.UNCHANGED,
        log_start_offset=10,
        log_end_offset=101,
        unchanged=[OffsetRange(10, 99)],
        removed=OffsetRange(0, 9),
        damaged=True,
    )
    assert lines_of(held(entry)) == [
        (
            "orders-0 unchanged: offsets 10..99 are what the report audited; 0..9 removed since, the log begins at 10; "
            "100 written since; some bytes are not a valid batch ('kaudit scan' says which)."
        ),
        "",
        "1 partition unchanged, by the digests of report.json; 1 grown since; 1 without its former beginning",
    ]


@pytest.mark.parametrize(("start", "end", "missing", "empty"), [
    (5, 5, "the report audited it, and it is not here", "the report audited no offset of it"),
    (5, 6, "the report audited offsets 5, and it is not here", ""),
    (5, 7, "the report audited offsets 5..6, and it is not here", ""),
])  # fmt: skip
def test_a_partition_that_was_empty(start, end, missing, empty):
    assert (
        lines_of(held(audited(VerificationOutcome.MISSING, start=start, end=end)))[0] == f"orders-0 missing: {missing}."
    )
    shown = lines_of(held(audited(VerificationOutcome.UNCHANGED, start=start, end=end, log_end_offset=end)))[0]
    assert shown == f"orders-0 unchanged: {empty}."


@pytest.mark.parametrize(("number", "more"), [(5, ""), (6, " and 1 more ranges"), (8, " and 3 more ranges")])
def test_five_ranges_are_named(number, more):
    ranges = [OffsetRange(2 * first, 2 * first) for first in range(number)]
    shown = lines_of(held(audited(VerificationOutcome.DIFFERS, differing=ranges)))[0]
    assert shown.endswith(f"offsets 0, 2, 4, 6, 8{more}.")


@pytest.mark.parametrize(("number", "last"), [
    (50, "orders-49 unchanged: offsets 0..99 are what the report audited."),
    (51, "1 more partition (json lists all)"), (1053, "1,003 more partitions (json lists all)"),
])  # fmt: skip
def test_fifty_partitions_are_listed(number, last):
    lines = lines_of(held(*(audited(VerificationOutcome.UNCHANGED, each, unchanged=ALL) for each in range(number))))
    assert lines[-3:] == [last, "", f"{number:,} partitions unchanged, by the digests of report.json"]
    assert len(lines) == min(number, 51) + 2


def test_verdicts_have_colours():
    entries = [audited(verdict, unchanged=ALL) for verdict in VerificationOutcome]
    shown = "\n".join(lines_of(held(*entries), Console(color=True)))
    for verdict, code in (("unchanged", "32"), ("differs", "1;31"), ("cleaned", "1;33"), ("unproven", "1;33")):
        assert f"\x1b[{code}m{verdict}\x1b[0m" in shown


def test_document():
    grown = audited(VerificationOutcome.UNCHANGED, log_start_offset=0, log_end_offset=103, unchanged=ALL)
    level = audited(VerificationOutcome.UNCHANGED, 1, log_start_offset=0, log_end_offset=100, unchanged=ALL)
    found = held(grown, level, not_in_report=[("logs", 4)], not_audited=[NotAudited("x", "gone")], incomplete=True)
    text = "".join(verification_document(found, "report.json"))
    assert text.endswith("\n")
    shown = json.loads(text)
    assert [shown[name] for name in ("schema", "report", "inputs", "incomplete", "not_judged")] == [
        "kaudit.verification/1",
        "report.json",
        ["/data"],
        True,
        [{"topic": "logs", "partition": 4}],
    ]
    assert [entry["path"] for entry in shown["not_audited"]] == ["x"]
    assert [entry["grown"] for entry in shown["partitions"]] == [{"first_offset": 100, "last_offset": 102}, None]
    assert [entry["unchanged"] for entry in shown["partitions"]] == [[{"first_offset": 0, "last_offset": 99}]] * 2
