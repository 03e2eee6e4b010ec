"""Which entries of a baseline a scan would have seen, and what becomes of findings that are only counted."""

from datetime import date

import pytest
from msgspec.structs import replace

from kaudit.model.result import PartitionSummary, UnlistedFindings
from kaudit.model.severity import Severity, Status
from kaudit.policy.baseline import Baseline, Entry
from kaudit.policy.comparison import Scope, compare
from kaudit.scanning.options import Depth, ScanOptions
from tests.scan_results import old_duplicate, scan_result

TODAY = date(2026, 11, 23)
YESTERDAY = date(2026, 11, 22)
ENTRY = Entry("00000000000000aa", "KA102", "s", topic="orders", partition=3, offset=500, producer_id=1000)


def anything(_code):
    return True


def scope(*, compares=False, **options):
    return Scope(anything, ScanOptions(paths=["/data"], **options), compares)


@pytest.mark.parametrize(
    ("entry", "options", "covered"),
    [
        ({}, {}, True),
        ({}, {"since_ms": 0}, False),
        ({}, {"until_ms": 9}, False),
        ({}, {"producer_ids": frozenset({1000})}, True),
        ({}, {"producer_ids": frozenset({7})}, False),
        ({"producer_id": None}, {"producer_ids": frozenset({7})}, True),
        ({"code": "KA701"}, {}, False),
        ({"code": "KA701"}, {"depth": Depth.RECORDS}, True),
        ({"code": "KA702"}, {}, True),
        ({"code": "KA001"}, {}, True),
        ({"code": "KA001"}, {"depth": Depth.HEADERS}, False),
        ({"code": "KA002"}, {"depth": Depth.HEADERS}, True),
        # differences of replicas are reported by a comparison only, and nothing else by it but damage
        ({"code": "KA601"}, {}, False),
        ({"code": "KA601"}, {"compares": True}, True),
        ({"code": "KA001"}, {"compares": True}, True),
        ({"code": "KA102"}, {"compares": True}, False),
        # what is not there cannot be seen
        ({"partition": 4}, {}, False),
        ({"topic": "x"}, {}, False),
        ({"topic": "x", "offset": None}, {}, False),
        ({"offset": 99}, {}, False),
        ({"offset": 100}, {}, True),
        ({"offset": None}, {}, True),
        ({"topic": None, "partition": None}, {}, True),
    ],
)
def test_what_a_scan_would_have_seen(entry, options, covered):
    part = PartitionSummary("orders", 3, "1", 100, 1017, 1017, compacted=False)
    result = scan_result(partitions=[part])
    assert scope(**options).covers(replace(ENTRY, **entry), result) is covered
    assert Scope(anything, None, options.get("compares", False)).covers(ENTRY, result) is not options.get(
        "compares", False
    )
    assert not Scope(lambda _code: False).covers(replace(ENTRY, **entry), result)
    assert not scope(**options).covers(replace(ENTRY, **entry), scan_result(partitions=[part], incomplete=True))


def test_of_a_scan_that_left_findings_out_nothing_is_gone():
    result = scan_result()
    omitting = replace(result, summary=replace(result.summary, omitted=1))
    assert not scope().covers(ENTRY, omitting)


@pytest.mark.parametrize(("starts", "covered"), [((501,), False), ((501, 500), True), ((501, None), True), ((), False)])
def test_one_replica_that_still_has_the_offset_is_enough(starts, covered):
    parts = [PartitionSummary("orders", 3, "1", start, 1017, 1017, compacted=False) for start in starts]
    assert scope().covers(ENTRY, scan_result(partitions=parts)) is covered
    assert scope().covers(replace(ENTRY, topic=None), scan_result(partitions=parts)) is bool(parts)


def compared(entries, *findings, **changes):
    return compare(scan_result(*findings, **changes), Baseline(entries), "b.toml", scope(), TODAY)


def test_entries_are_known_stale_out_of_scope_or_expired():
    seen = old_duplicate(offset=600, last_offset=600)
    entries = [
        Entry.of(seen, reason="on purpose"),
        ENTRY,
        replace(ENTRY, fingerprint="00000000000000bb", topic="x"),
        replace(ENTRY, fingerprint="00000000000000cc", expires=YESTERDAY),
    ]
    result = compared(entries, seen, *(old_duplicate(offset=offset, last_offset=offset) for offset in (700, 800)))
    assert [(found.status, found.suppression) for found in result.findings] == [
        (Status.KNOWN, "in the baseline: on purpose"),
        (Status.NEW, None),
        (Status.NEW, None),
    ]
    baseline = result.baseline
    assert baseline is not None
    assert (baseline.file, baseline.known) == ("b.toml", 1)
    assert [entry.fingerprint[-2:] for entry in baseline.stale] == ["aa", "cc"]
    assert [entry.fingerprint[-2:] for entry in baseline.out_of_scope] == ["bb"]
    # expired is what is still found
    assert not baseline.expired
    (expired,) = compared([Entry.of(seen, expires=YESTERDAY)], seen).baseline.expired
    assert expired.fingerprint == seen.fingerprint


@pytest.mark.parametrize(("expires", "status"), [(TODAY, Status.KNOWN), (YESTERDAY, Status.NEW)])
def test_an_entry_is_good_for_its_last_day(expires, status):
    seen = old_duplicate()
    (found,) = compared([Entry.of(seen, expires=expires)], seen).findings
    assert (found.status, found.suppression) == (status, "in the baseline" if status is Status.KNOWN else None)


def test_what_a_team_accepted_stays_accepted():
    seen = old_duplicate(status=Status.SUPPRESSED, suppression="by policy")
    (found,) = compared([Entry.of(seen, reason="x")], seen).findings
    assert (found.status, found.suppression) == (Status.SUPPRESSED, "by policy")


def test_findings_that_are_only_counted_are_parted_into_new_and_known():
    def more(*numbers, status=Status.NEW):
        return UnlistedFindings("KA102", Severity.ERROR, "orders", list(numbers), status)

    entries = [ENTRY, replace(ENTRY, fingerprint="00000000000000bb", expires=YESTERDAY)]
    result = compared(
        entries, unlisted=[more(0xAA, 0xBB, 0xCC), more(0xDD), more(0xAA), more(0xAA, status=Status.SUPPRESSED)]
    )
    assert [(list(map(int, each.fingerprints)), each.status) for each in result.unlisted] == [
        ([0xBB, 0xCC], Status.NEW),
        ([0xAA], Status.KNOWN),
        ([0xDD], Status.NEW),
        ([0xAA], Status.KNOWN),
        ([0xAA], Status.SUPPRESSED),
    ]
    baseline = result.baseline
    assert baseline is not None
    assert (baseline.known, list(baseline.stale)) == (2, [])
    assert [entry.fingerprint[-2:] for entry in baseline.expired] == ["bb"]
