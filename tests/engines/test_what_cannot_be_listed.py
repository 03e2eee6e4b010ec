"""Where a directory could not be listed there may be something to compare: it is named, and nothing is called empty."""

import errno

import pytest

from kaudit.engines import repeated_records as repeats
from kaudit.engines.fingerprints import fingerprint, verify_report
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LedgerRequest, plan_ledger, record_fingerprint
from kaudit.engines.replicas import plan_diff
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.replicas import Replica
from kaudit.scanning.comparison_options import RecordOptions
from kaudit.scanning.options import ScanOptions
from kaudit.source.local import LocalFileSystem
from tests.logs import Log, data

WHY = "closed to you"


def write(directory):
    log = Log()
    log.append(data(7, 0, 0))
    return log.write(directory)


def sides(tmp_path):
    return Replica("one", str(tmp_path / "one")), Replica("two", str(tmp_path / "two"))


def diffed(tmp_path):
    both = sides(tmp_path)
    return plan_diff(ScanOptions([side.path for side in both], jobs=1), both).unreadable


def fingerprinted(tmp_path):
    one, _ = sides(tmp_path)
    found = fingerprint(ScanOptions([one.path], jobs=1), one, SilentProgress())
    assert found.incomplete
    return found.not_audited


def verified(tmp_path):
    write(tmp_path / "before/orders-0")
    digests = scan(ScanOptions([str(tmp_path / "before")], jobs=1, digests=True), SilentProgress()).digests
    assert digests is not None
    one, _ = sides(tmp_path)
    found = verify_report(ScanOptions([one.path], jobs=1), digests.partitions, SilentProgress())
    assert found.incomplete
    return found.not_audited


def counted(tmp_path):
    one, _ = sides(tmp_path)
    found = record_fingerprint(ScanOptions([one.path], jobs=1), one, LedgerRequest(), SilentProgress())
    assert (found.incomplete, found.topics) == (True, [])
    return found.not_audited


def paired(tmp_path):
    plan = plan_ledger(ScanOptions([], jobs=1), sides(tmp_path), LedgerRequest())
    assert (plan.pairings, plan.alone) == ([], {})
    return plan.unreadable


@pytest.mark.parametrize("compare", [diffed, fingerprinted, verified, counted, paired])
def test_nothing_is_called_empty_that_could_not_be_listed(tmp_path, monkeypatch, compare):
    for name in ("one", "two"):
        (tmp_path / name / "closed").mkdir(parents=True)
    with pytest.raises(NothingToAuditError):
        compare(tmp_path)
    listed = LocalFileSystem.entries

    def entries(self, uri):
        if uri.name == "closed":
            raise OSError(errno.EACCES, WHY, str(uri))
        return listed(self, uri)

    monkeypatch.setattr(LocalFileSystem, "entries", entries)
    named = compare(tmp_path)
    assert {entry.path for entry in named} <= {str(tmp_path / name / "closed") for name in ("one", "two")}
    assert named
    assert all(WHY in entry.reason for entry in named)


@pytest.mark.parametrize(("most", "good"), [(2, True), (1, False)])
def test_partitions_that_can_be_compared_at_once(tmp_path, monkeypatch, most, good):
    for partition in range(2):
        write(tmp_path / f"orders-{partition}")
    write(tmp_path / "__consumer_offsets-0")
    (tmp_path / "empty-0").mkdir()
    monkeypatch.setattr(repeats, "MOST_PARTITIONS", most)
    if good:
        plan = repeats.plan_repeats(ScanOptions([str(tmp_path)]), RecordOptions())
        assert [(each.directory.name, each.bytes) for each in plan.compared] == [
            (f"orders-{partition}", (tmp_path / f"orders-{partition}" / f"{0:020d}.log").stat().st_size)
            for partition in range(2)
        ]
        assert plan.texts == []
    else:
        with pytest.raises(
            UsageError, match=r"^2 partitions are more than can be compared at once: choose some with --topic"
        ):
            repeats.plan_repeats(ScanOptions([str(tmp_path)]), RecordOptions())


@pytest.mark.parametrize(
    ("topics", "pairs", "alone"),
    [
        ((), [("a", "x.a"), ("b", "x.b")], ["c", "d"]),
        (("a",), [("a", "x.a")], []),
        (("x.b",), [("b", "x.b")], []),
        (("c", "a"), [("a", "x.a")], ["c"]),
    ],
)
def test_which_topics_are_compared_and_which_have_no_copy(tmp_path, topics, pairs, alone):
    for name in ("one/a-0", "one/b-0", "one/b-1", "one/c-0", "one/d-0", "two/x.a-0", "two/x.b-0", "two/x.b-1"):
        write(tmp_path / name)
    plan = plan_ledger(ScanOptions([], topics=topics, jobs=1), sides(tmp_path), LedgerRequest())
    assert [(pair.source, pair.target) for pair in plan.pairings] == pairs
    assert list(plan.alone) == alone
    # partitions are numbered through
    sizes = [len(pair.partitions) for pair in plan.pairings]
    assert [pair.first_number for pair in plan.pairings] == [sum(sizes[:at]) for at in range(len(sizes))]
