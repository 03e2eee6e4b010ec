"""What the local engine compares with what: replicas by their paths, and a report's partitions with those under a path."""

import pytest

from kaudit.engines.fingerprints import verify_report
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.engines.replicas import diff, layout_of, name_replicas
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.fingerprint import VerificationOutcome
from kaudit.model.replicas import Replica
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data


def write(directory, batches=3):
    log = Log()
    for sequence in range(batches):
        log.append(data(7, 0, sequence))
    return log.write(directory)


class Counted(SilentProgress):
    """Keeps how many bytes there were said to be."""

    def __init__(self):
        self.total = []

    def start(self, total):
        self.total.append(total)


def judged(*paths):
    digests = scan(ScanOptions([str(path) for path in paths], jobs=1, digests=True), SilentProgress()).digests
    assert digests is not None
    return digests.partitions


def verified(path, report, progress=None, **options):
    return verify_report(ScanOptions([str(path)], jobs=1, **options), report, progress or SilentProgress())


def verdicts(found):
    return [(each.topic, each.partition, each.replica, each.verdict) for each in found.partitions]


@pytest.fixture
def site(tmp_path):
    for name in ("orders-0", "orders-1", "pay-0"):
        write(tmp_path / "b1" / name)
    return tmp_path / "b1"


def test_a_log_that_is_as_it_was(site):
    progress = Counted()
    found = verified(site, judged(site), progress)
    assert verdicts(found) == [
        ("orders", 0, "b1", VerificationOutcome.UNCHANGED), ("orders", 1, "b1", VerificationOutcome.UNCHANGED), ("pay", 0, "b1", VerificationOutcome.UNCHANGED),
    ]  # fmt: skip
    assert (found.inputs, found.not_in_report, found.not_audited, found.incomplete) == ([str(site)], [], [], False)
    assert progress.total == [sum(path.stat().st_size for path in site.glob("*/*.log"))]


def test_what_is_gone_and_what_was_not_judged(site, tmp_path):
    report = judged(site)
    (site / "orders-1").rename(site / "other-1")
    found = verified(site, report)
    assert [each.verdict for each in found.partitions] == [
        VerificationOutcome.UNCHANGED,
        VerificationOutcome.MISSING,
        VerificationOutcome.UNCHANGED,
    ]
    gone = found.partitions[1]
    assert (gone.topic, gone.partition, gone.replica, gone.start_offset, gone.end_offset) == ("orders", 1, "b1", 0, 3)
    assert (gone.log_start_offset, gone.log_end_offset) == (None, None)
    assert found.not_in_report == [("other", 1)]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"topics": ["orders"]}, [("orders", 0), ("orders", 1)]),
        ({"partitions": [0]}, [("orders", 0), ("pay", 0)]),
        ({"topics": ["orders"], "partitions": [1]}, [("orders", 1)]),
        ({"topics": ["pay", "orders"], "partitions": [0, 1]}, [("orders", 0), ("orders", 1), ("pay", 0)]),
    ],
)
def test_only_what_is_asked_for_is_held_against_the_log(site, options, wanted):
    report = judged(site)
    found = verified(site, report, **options)
    assert [(each.topic, each.partition) for each in found.partitions] == wanted
    assert found.not_in_report == []
    unknown = verified(site, report[:1], topics=["orders"])
    assert (len(unknown.partitions), unknown.not_in_report) == (1, [("orders", 1)])


def test_nothing_to_verify(site, tmp_path):
    report = judged(site)
    with pytest.raises(NothingToAuditError, match="the report names no digest of what is asked for"):
        verified(site, report, topics=["none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingToAuditError, match=f"under {tmp_path / 'empty'}: no segment was found"):
        verified(tmp_path / "empty", report)
    with pytest.raises(UsageError, match="no such file or directory"):
        verified(tmp_path / "none", report)
    with pytest.raises(UsageError, match="kaudit reads local paths"):
        verified("ftp://host/x", report)


@pytest.fixture
def replicas(tmp_path):
    for broker, batches in (("b1", 3), ("b2", 4)):
        write(tmp_path / "site" / broker / "orders-0", batches)
    return tmp_path / "site"


def test_replicas_are_held_against_those_of_their_names(replicas):
    report = judged(replicas)
    assert [entry.replica for entry in report] == ["b1", "b2"]
    found = verified(replicas, report[::-1])
    assert verdicts(found) == [
        ("orders", 0, "b2", VerificationOutcome.UNCHANGED),
        ("orders", 0, "b1", VerificationOutcome.UNCHANGED),
    ]
    (replicas / "b2").rename(replicas / "b3")
    found = verified(replicas, report)
    assert verdicts(found) == [
        ("orders", 0, "b1", VerificationOutcome.UNCHANGED),
        ("orders", 0, "b2", VerificationOutcome.MISSING),
    ]
    (replicas / "b1").rename(replicas / "b4")
    with pytest.raises(UsageError) as caught:
        verified(replicas, report)
    assert str(caught.value) == (
        "orders-0: the report audited b1, b2, and here lie b3, b4: the names do not say which is which"
    )


def test_the_only_replica_is_held_against_the_only_one_whatever_their_names(replicas):
    found = verified(replicas / "b1", judged(replicas / "b1"))
    (replicas / "b1").rename(replicas / "elsewhere")
    again = verified(replicas / "elsewhere", judged(replicas / "b2"))
    assert [each.verdict for each in (*found.partitions, *again.partitions)] == [
        VerificationOutcome.UNCHANGED,
        VerificationOutcome.DIFFERS,
    ]
    # one of two has to have its name
    (replicas / "b2").rename(replicas / "b9")
    report = judged(replicas / "b9")
    (replicas / "b9").rename(replicas / "b2")
    with pytest.raises(UsageError, match="the report audited b9, and here lie b2, elsewhere"):
        verified(replicas, report)


@pytest.mark.parametrize(
    ("paths", "names", "expected"),
    [
        (["/x/b1", "/x/b2"], {}, ["b1", "b2"]),
        (["/x/b1/logs", "/x/b2/logs"], {}, ["b1/logs", "b2/logs"]),
        (["/b1/x/logs", "/b2/x/logs"], {}, ["b1/x/logs", "b2/x/logs"]),
        (["/x/b1", "/y/b1"], {"/y/b1": "other"}, ["b1", "other"]),
        (["/x/b1", "/y/b1"], {"/x/b1": "a", "/y/b1": "b"}, ["a", "b"]),
        (["s3://a/logs", "s3://b/logs"], {}, ["s3://a/logs", "s3://b/logs"]),
        (["/only"], {}, ["only"]),
    ],
)
def test_names_of_replicas(paths, names, expected):
    assert name_replicas(paths, names) == [Replica(name, path) for name, path in zip(expected, paths, strict=True)]


@pytest.mark.parametrize(
    ("paths", "names", "said"),
    [
        (["/x/b1", "/x/b1"], {}, "a replica is given twice"),
        (["/x/b1", "/x/../x/b1"], {}, "a replica is given twice"),
        (["s3://a/logs", "s3://a/logs"], {}, "a replica is given twice"),
        (["/x/b1", "/y/b2"], {"/x/b1": "b2"}, "two replicas have the same name"),
        (["file://host/x", "/y"], {}, "three slashes"),
    ],
)
def test_replicas_that_cannot_be_told_apart(paths, names, said):
    with pytest.raises(UsageError, match=said):
        name_replicas(paths, names)


def test_what_lies_under_a_replicas_path(site, tmp_path):
    replica = Replica("b1", str(site))
    for options, expected in (
        ({}, ["orders-0", "orders-1", "pay-0"]),
        ({"topics": ["orders"]}, ["orders-0", "orders-1"]),
        ({"partitions": [0]}, ["orders-0", "pay-0"]),
        ({"topics": ["pay"], "partitions": [1]}, []),
    ):
        assert [entry.name for entry in layout_of(replica, ScanOptions([], **options)).partitions] == expected
    write(tmp_path / "b2" / "orders-1")
    with pytest.raises(UsageError) as caught:
        layout_of(Replica("all", str(tmp_path)), ScanOptions([]))
    assert str(caught.value) == (
        f"{tmp_path} holds orders-1 twice ({site / 'orders-1'} and {tmp_path / 'b2' / 'orders-1'}): "
        "give each replica's directory by itself"
    )
    with pytest.raises(UsageError, match="no such file or directory"):
        layout_of(Replica("none", str(tmp_path / "none")), ScanOptions([]))
    with pytest.raises(UsageError, match="kaudit reads local paths"):
        layout_of(Replica("ftp", "ftp://host/x"), ScanOptions([]))


def test_nothing_to_compare(site, tmp_path):
    write(tmp_path / "b2" / "other-7")
    (tmp_path / "b3").mkdir()
    (tmp_path / "b4").mkdir()

    def compared(*names):
        paths = [str(tmp_path / name) for name in names]
        return diff(ScanOptions(paths, jobs=1), name_replicas(paths, {}), SilentProgress())

    with pytest.raises(NothingToAuditError) as caught:
        compared("b1", "b2", "b3")
    assert str(caught.value) == (
        "nothing to compare: no two of these have a partition in common: "
        f"{site} has orders-0 and 2 more; {tmp_path / 'b2'} has other-7; {tmp_path / 'b3'} has none"
    )
    with pytest.raises(NothingToAuditError) as caught:
        compared("b3", "b4")
    assert str(caught.value) == (f"nothing to compare under {tmp_path / 'b3'}, {tmp_path / 'b4'}: no segment was found")
