"""When a scan says that kaudit diff shows more."""

from kaudit.audits.replicas.broker_copies import BrokerCopies
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.summaries import suggestions
from kaudit.source.layout import LogDirectoryIdentity, PartitionDirectory, SegmentFile

SEGMENT = SegmentFile("/0.log", "0.log", 0, 10, 0)
EACH = "kaudit diff shows them side by side"


def directory(log_dir, topic="orders", partition=0, cluster=None, broker=1, **more):
    identity = None if cluster is None else LogDirectoryIdentity(broker, cluster)
    fields = {"segments": [SEGMENT], "identity": identity} | more
    return PartitionDirectory(topic, partition, "", log_dir, f"{log_dir}/{topic}-{partition}", "", **fields)


def suggested(directories, copies=(), **options):
    found = suggestions(ScanOptions(options.pop("paths", ["/"]), **options), directories, copies)
    return [(each.reason, each.command) for each in found]


def test_one_copy_of_each_partition_is_compared_with_none():
    assert suggested([directory("/a"), directory("/a", partition=1), directory("/b", topic="payments")]) == []
    assert suggested([directory("/a"), directory("/b", segments=[])]) == []
    assert suggested([directory("/a"), directory("/b", whole_directory=False)]) == []
    assert suggested([directory("/a", cluster="x"), directory("/b", cluster="y")]) == []
    assert suggested([]) == []


def test_several_copies():
    three = [directory("/a"), directory("/b b"), directory("/c", partition=1)]
    assert suggested(three) == [(f"2 replicas of 1 partition were given; {EACH}", "kaudit diff /a '/b b'")]
    four = [*three, directory("/a", partition=1), directory("/d")]
    assert suggested(four) == [(f"3 replicas of 2 partitions were given; {EACH}", "kaudit diff /a '/b b' /c /d")]
    ((_, command),) = suggested(four, topics=["orders", "a b"], partitions=[0, 1])
    assert command == "kaudit diff --topic orders --topic 'a b' --partition 0 --partition 1 /a '/b b' /c /d"


def test_partition_directories_that_were_given_are_named_themselves():
    two = [directory("/a"), directory("/b")]
    assert suggested(two, paths=["/a/orders-0", "/b/orders-0"])[0][1] == "kaudit diff /a/orders-0 /b/orders-0"
    assert suggested(two, paths=["/a/orders-0", "/b"])[0][1] == "kaudit diff /a /b"


def test_each_cluster_by_itself_where_several_are_known():
    two = [directory("/a", cluster="x"), directory("/b", cluster="x")]
    others = [directory("/c", cluster="y"), directory("/d", cluster="y")]
    one = f"2 replicas of 1 partition were given; {EACH}"
    assert suggested([two[0], others[0], two[1], others[1]]) == [(one, "kaudit diff /a /b"), (one, "kaudit diff /c /d")]
    # a directory that does not say whose it is may be any cluster's
    unknown = directory("/e")
    (both,) = suggested([*two, unknown])
    assert both == (f"3 replicas of 1 partition were given; {EACH}", "kaudit diff /a /b /e")
    assert len(suggested([*two, unknown, *others])) == 2


def test_copies_of_one_broker():
    two = [directory("/a", cluster="x"), directory("/b", cluster="x")]
    first = BrokerCopies(LogDirectoryIdentity(1, "x"), dict.fromkeys(["/a", "/b"]))  # type: ignore[arg-type]
    second = BrokerCopies(LogDirectoryIdentity(7, "x"), dict.fromkeys(["/a", "/b", "/c"]))  # type: ignore[arg-type]
    ((reason, _),) = suggested(two, [first])
    assert reason == f"the inputs are copies made at different times: 2 of broker 1; {EACH}"
    # those of which some is of another cluster, or was not chosen, are not named
    ((reason, _),) = suggested(two, [second])
    assert reason == f"2 replicas of 1 partition were given; {EACH}"
    ((reason, _),) = suggested([*two, directory("/c", cluster="x")], [first, second])
    assert reason == f"the inputs are copies made at different times: 2 of broker 1, 3 of broker 7; {EACH}"
