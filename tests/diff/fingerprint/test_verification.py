"""What a log still holds of what a report judged, on digests written by hand."""

from typing import Any

import pytest

from kaudit.diff.fingerprint.comparison import rows_of_audited, verify
from kaudit.diff.fingerprint.document import FingerprintError, read_fingerprint_document
from kaudit.model.digests import PartitionDigest, RangeDigests
from kaudit.model.fingerprint import PartitionFingerprint, VerificationOutcome
from kaudit.model.replicas import OffsetRange

A, B, C = "a" * 64, "b" * 64, "c" * 64


def judged(start: int, end: int, *digests: str | None, first: int = 0) -> PartitionDigest:
    ranges = RangeDigests(first, 1024, digests) if digests else None
    return PartitionDigest("orders", 3, "b1", start, end, 7, None, ranges, False, False)


def log(start: int, end: int, covers: tuple[int, int], *digests: str | None, damaged=False) -> PartitionFingerprint:
    ranges = [RangeDigests(0, 1024, digests)] if digests else []
    return PartitionFingerprint("orders", 3, start, end, *covers, 7, None, ranges=ranges, damaged=damaged)


def offsets(*ranges: tuple[int, int]) -> list[OffsetRange]:
    return [OffsetRange(*each) for each in ranges]


REPORT = judged(0, 2048, A, B)
CASES: dict[str, tuple[PartitionDigest, PartitionFingerprint, int, VerificationOutcome, dict[str, Any]]] = {
    "the same": (REPORT, log(0, 2048, (0, 2048), A, B), 0, VerificationOutcome.UNCHANGED, {"unchanged": [(0, 2047)]}),
    "grown": (REPORT, log(0, 2060, (0, 2048), A, B), 0, VerificationOutcome.UNCHANGED, {"unchanged": [(0, 2047)]}),
    "second range": (
        REPORT, log(0, 2048, (0, 2048), A, C), 0, VerificationOutcome.DIFFERS,
        {"unchanged": [(0, 1023)], "differing": [(1024, 2047)]},
    ),
    "second range, cleaned to its first offset": (
        REPORT, log(0, 2048, (0, 2048), A, C), 1024, VerificationOutcome.DIFFERS,
        {"unchanged": [(0, 1023)], "differing": [(1024, 2047)]},
    ),
    "second range, cleaned beyond its first offset": (
        REPORT, log(0, 2048, (0, 2048), A, C), 1025, VerificationOutcome.CLEANED,
        {"unchanged": [(0, 1023)], "cleaned": [(1024, 2047)]},
    ),
    "the last record lost": (
        REPORT, log(0, 2047, (0, 2047), A, B), 0, VerificationOutcome.DIFFERS, {"unchanged": [(0, 1023)], "not_compared": [(1024, 2046)], "lost": (2047, 2047)},
    ),
    "the first record removed": (
        REPORT, log(1, 2048, (1, 2048), A, B), 0, VerificationOutcome.UNCHANGED, {"unchanged": [(1024, 2047)], "not_compared": [(1, 1023)], "removed": (0, 0)},
    ),
    "all of it removed": (REPORT, log(5000, 5001, (2048, 2048)), 0, VerificationOutcome.UNPROVEN, {"removed": (0, 2047)}),
    "all of it lost": (
        judged(1024, 2048, B, first=1024), log(0, 10, (1024, 1024)), 0, VerificationOutcome.DIFFERS, {"lost": (1024, 2047)},
    ),
    "no digests": (judged(0, 5), log(0, 5, (0, 5)), 0, VerificationOutcome.UNPROVEN, {"not_compared": [(0, 4)]}),
    "nothing was judged": (judged(5, 5), log(5, 5, (5, 5)), 0, VerificationOutcome.UNCHANGED, {}),
    "nothing was judged, since written": (judged(5, 5), log(5, 9, (5, 5)), 0, VerificationOutcome.UNCHANGED, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_became_of_what_was_judged(name):
    report, now, cleaned_below, verdict, ranges = CASES[name]
    found = verify(report, now, cleaned_below)
    assert (found.topic, found.partition, found.replica, found.damaged) == ("orders", 3, "b1", False)
    assert (found.start_offset, found.end_offset) == (report.start_offset, report.end_offset)
    assert (found.log_start_offset, found.log_end_offset) == (now.log_start_offset, now.log_end_offset)
    assert found.verdict is verdict
    for field in ("unchanged", "differing", "cleaned", "not_compared"):
        assert getattr(found, field) == offsets(*ranges.get(field, ())), field
    for field in ("removed", "lost"):
        assert getattr(found, field) == (OffsetRange(*ranges[field]) if field in ranges else None), field


def test_what_could_not_be_read_whole_proves_nothing_but_what_is_the_same():
    for now in (log(0, 1500, (0, 1500), A, C), log(0, 2048, (0, 2048), A, C), log(0, 2048, (0, 2048), A, B)):
        found = verify(REPORT, now, 0, read_whole=False)
        assert (found.verdict, found.differing, found.cleaned, found.lost) == (
            VerificationOutcome.UNPROVEN,
            [],
            [],
            None,
        )
        assert found.unchanged[0].first == 0
    assert verify(judged(5, 5), log(5, 5, (5, 5)), 0, read_whole=False).verdict is VerificationOutcome.UNPROVEN
    assert verify(REPORT, log(0, 2048, (0, 2048), A, B, damaged=True), 0).damaged


def test_which_digests_are_made_for_a_report():
    rows = rows_of_audited(judged(1500, 3000, A, B, first=1024))
    assert (rows.most_ranges, rows.ranges, rows.listed) == (0, [(1024, 1024, 2)], ())
    assert (rows.start_offset, rows.end_offset, rows.cleaned) == (1500, 3000, True)
    assert rows_of_audited(judged(5, 9)).ranges == []


def test_a_document_of_another_kind_is_named():
    for schema in ("kaudit.scan/1", "kaudit.fingerprint/2"):
        with pytest.raises(FingerprintError, match=f"^a {schema} document, not "):
            read_fingerprint_document(f'{{"schema": "{schema}"}}')
    for text in ("{}", "[]", "", "[" * 100_000, '{"schema": "kaudit.fingerprint/1"}'):
        with pytest.raises(FingerprintError, match=r"^not a fingerprint"):
            read_fingerprint_document(text)
