"""One broker at several times: what was copied together, and whose coordinator speaks for which copy."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kaudit.audits.replicas.broker_copies import broker_copies, copied_together, of_one_run
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.result import ScanResult
from kaudit.report.render_options import RenderOptions
from kaudit.scanning.options import ScanOptions
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.diff.replicas import Copy, broker, history
from tests.logs import BASE_TIMESTAMP
from tests.rendered import scan_text


def audit(*paths: Path, **options: object) -> ScanResult:
    return scan(ScanOptions([str(path) for path in paths], jobs=1, **options), SilentProgress())  # type: ignore[arg-type]


def copies_of(root: Path) -> list[tuple[int, list[str]]]:
    found = broker_copies(discover([str(root)]).everything, open_segment)
    return [
        (entry.identity.broker_id, [os.path.relpath(log_dir, root) for log_dir in entry.log_dirs]) for entry in found
    ]


def together(root: Path) -> list[list[str]]:
    directories = discover([str(root)]).everything
    groups = copied_together(directories, broker_copies(directories, open_segment), open_segment)
    return sorted(sorted(os.path.relpath(log_dir, root) for log_dir in group) for group in groups)


def runs(root: Path) -> list[list[str]]:
    directories = discover([str(root)]).everything
    groups = copied_together(directories, broker_copies(directories, open_segment), open_segment)
    return sorted(sorted(os.path.relpath(log_dir, root) for log_dir in run) for run in of_one_run(directories, groups))


def later(log: Copy, ms: int) -> Copy:
    """The log, and a batch so long after the others."""
    return log.copy().append(1, 9, b"later", timestamp=BASE_TIMESTAMP + ms)


def test_an_open_transaction_is_compared_with_its_own_moment_of_the_coordinator(evidence):
    # txn-mix-2.8.2.md: t-dead and t-live are open in both earlier copies, t-dead alone in the last
    result = audit(evidence.capture("txn-mix-2.8.2"))
    assert result.summary.findings["error"] == 0
    found: dict[str, list[tuple[str | None, int | None]]] = {}
    for finding in result.findings:
        if finding.code == "KA302":
            found.setdefault(str(finding.replica).split("/")[0], []).append((finding.topic, finding.offset))
    both = [("tx-a", 155), ("tx-open", 0), ("tx-open", 6)]
    assert found == {"logdirs-live": both, "logdirs-killed": both, "logdirs": both[:2]}


def test_the_copies_of_three_brokers_are_those_of_their_account(evidence):
    capture = evidence.capture("failover-acks1")
    times = sorted(path.name for path in capture.iterdir() if (path / "b1").exists())
    assert copies_of(capture) == [(number, [f"{at}/b{number}" for at in times]) for number in (1, 2, 3)]
    assert together(capture) == [[f"{at}/b{number}" for number in (1, 2, 3)] for at in times]


@pytest.mark.parametrize("names", [("before", "after"), ("b", "a")])
def test_times_are_ordered_by_the_clock_of_the_logs(tmp_path, names: Sequence[str]):
    first, second = names
    broker(history((0, 2)).write(tmp_path / first), 1)
    broker(later(history((0, 2)), 1000).write(tmp_path / second), 1)
    assert copies_of(tmp_path) == [(1, [first, second])]


def test_where_paths_do_not_say_the_nearest_clock_does(tmp_path):
    log = history((0, 2))
    for number in (1, 2):
        for at, ms in (("x", 5000), ("y", 0)):
            # the second broker's copies are made a little later
            broker(later(log, ms + number * 100).write(tmp_path / f"b{number}" / at), number)
    assert together(tmp_path) == [["b1/x", "b2/x"], ["b1/y", "b2/y"]]


def test_a_second_copy_of_a_broker_stays_by_itself(tmp_path):
    log = history((0, 2))
    for name, number, ms in (("a", 1, 0), ("b", 1, 9000), ("c", 2, 10), ("d", 2, 30)):
        broker(later(log, ms).write(tmp_path / name), number)
    assert together(tmp_path) == [["a", "c"], ["b"], ["d"]]


def test_clusters_are_never_mixed(tmp_path):
    for name, number, cluster in (("a", 1, "one"), ("b", 2, "one"), ("c", 1, "two")):
        broker(history((0, 2)).write(tmp_path / name), number, cluster=cluster)
    assert copies_of(tmp_path) == []
    assert together(tmp_path) == [["a", "b"], ["c"]]


def test_a_copy_of_an_unknown_cluster_belongs_to_none_of_several(tmp_path):
    for name, cluster in (("a", "one"), ("b", "two")):
        broker(history((0, 2)).write(tmp_path / name), 1, cluster=cluster)
    history((0, 2)).write(tmp_path / "c")
    assert together(tmp_path) == [["a"], ["b"], ["c"]]
    (tmp_path / "c").rename(tmp_path / "b" / "c")
    assert together(tmp_path) == [["a"], ["b", "b/c"]]


def test_copies_of_one_cluster_are_of_one_run_at_whatever_time(tmp_path):
    for name, number, cluster in (("a", 1, "one"), ("b", 1, "one"), ("c", 1, "two")):
        broker(history((0, 2)).write(tmp_path / name), number, cluster=cluster)
    assert together(tmp_path) == [["a"], ["b"], ["c"]]
    assert runs(tmp_path) == [["a", "b"], ["c"]]
    history((0, 2)).write(tmp_path / "unknown")
    assert runs(tmp_path) == [["a", "b"], ["c"], ["unknown"]]


def test_what_may_be_of_any_cluster_is_of_the_only_one(tmp_path):
    for name in ("a", "b"):
        broker(history((0, 2)).write(tmp_path / name), 1)
    history((0, 2)).write(tmp_path / "unknown")
    assert len(together(tmp_path)) == 2
    assert runs(tmp_path) == [["a", "b", "unknown"]]


@pytest.mark.parametrize("cluster", ["one", None])
def test_an_internal_topic_of_two_ids_is_of_two_clusters_set_up_alike(tmp_path, cluster: str | None):
    for name, topic_id in (("a", "A" * 21 + "Q"), ("b", "A" * 21 + "g")):
        (broker(history((0, 2)).write(tmp_path / name), 1, cluster=cluster) / "orders-0").rename(
            tmp_path / name / "__consumer_offsets-0"
        )
        metadata = tmp_path / name / "__consumer_offsets-0" / "partition.metadata"
        metadata.write_text(f"version: 0\ntopic_id: {topic_id}\n")
    assert together(tmp_path) == runs(tmp_path) == [["a"], ["b"]]
    broker(history((0, 2)).write(tmp_path / "c"), 2, cluster=cluster)
    assert runs(tmp_path) == [["a"], ["b"], ["c"]]


def test_partitions_of_one_name_in_several_clusters_are_no_replicas(tmp_path):
    for name, number, cluster in (("a", 1, "one"), ("b", 1, "two"), ("c", 2, "two")):
        broker(history((0, 2)).write(tmp_path / name), number, cluster=cluster)
    (suggestion,) = audit(tmp_path).suggestions
    assert suggestion.command == f"kaudit diff {tmp_path}/b {tmp_path}/c"


def test_a_brokers_disks_are_no_times(tmp_path):
    for disk in ("disk1", "disk2"):
        broker(history((0, 2)).write(tmp_path / disk), 1)
    (tmp_path / "disk2/orders-0").rename(tmp_path / "disk2/payments-0")
    assert copies_of(tmp_path) == []
    assert together(tmp_path) == [["disk1", "disk2"]]


def test_too_little_is_known_of_a_broker_without_cluster_id_and_directory_id(tmp_path):
    for name in ("a", "b"):
        broker(history((0, 2)).write(tmp_path / name), 0, cluster=None)
    assert copies_of(tmp_path) == []


def test_one_partition_twice_on_a_broker_of_no_known_cluster_is_of_two(tmp_path):
    for name in ("a", "b"):
        broker(history((0, 2)).write(tmp_path / name), 0, cluster=None)
    broker(history((0, 2)).write(tmp_path / "c"), 1, cluster=None)  # equally near to both
    assert together(tmp_path) == [["a"], ["b"], ["c"]]


def test_no_coordinator_of_another_directory_ends_a_transaction(evidence):
    # before 2.4 meta.properties names no cluster: "expiry" and "main" are brokers of their own, and "epochs" a third
    found = audit(evidence.oracle("1.1.1", "logdir")).findings
    assert {f.code for f in found if f.topic == "e01-epoch-exhaustion" and f.code in {"KA301", "KA302"}} == {"KA302"}


def test_a_directory_id_distinguishes_what_a_broker_id_does_not(tmp_path):
    for name, directory in (("a", "one"), ("b", "two"), ("c", "one")):
        broker(history((0, 2)).write(tmp_path / name), 1, directory=directory)
    assert copies_of(tmp_path) == [(1, ["a", "c"])]


def test_copies_that_a_scan_audits_each_by_itself_are_for_diff(tmp_path):
    first, second = (history((0, 2)).write(tmp_path / name) for name in ("b1", "b2 old"))
    (suggestion,) = audit(first, second, topics=("orders",)).suggestions
    assert suggestion.reason.startswith("2 replicas of 1 partition were given")
    assert suggestion.command == f"kaudit diff --topic orders {first} '{second}'"
    (suggestion,) = audit(first / "orders-0", second / "orders-0").suggestions
    assert suggestion.command == f"kaudit diff {first}/orders-0 '{second}/orders-0'"
    for path in (first, second):
        broker(path, 4)
    (suggestion,) = audit(tmp_path).suggestions
    assert suggestion.reason.startswith("the inputs are copies made at different times: 2 of broker 4")
    assert audit(first).suggestions == []


def test_what_a_new_leader_began_without_is_a_finding_of_the_scan(evidence):
    # truth.json: the lost records of acks1-unclean, whose producers raised no epoch
    capture = evidence.capture("failover-acks1")
    copies = [capture / moment / "b1" for moment in ("B2-unclean-leader-old-one-down", "B3-recovered")]
    (found,) = [each for each in audit(*copies, topics=("acks1-unclean",)).findings if each.code == "KA603"]
    assert (found.offset, found.last_offset) == (5713, 6882)
    assert found.impact.records_lost_at_most == 1170


def test_the_suggested_command_stands_whole_in_the_table(tmp_path):
    for number in (1, 2):
        history((0, 2)).write(tmp_path / f"b{number}")
    text = scan_text("table", audit(tmp_path), RenderOptions())
    assert f"\n  kaudit diff {tmp_path}/b1 {tmp_path}/b2\n" in text
    assert "2 replicas of 1 partition were given" in text


def test_two_directories_of_one_broker_id_without_other_ids_are_no_replicas(tmp_path):
    """A broker has a partition once: they are of two times or of two clusters, and no follower of one another."""
    broker(history((0, 4)).write(tmp_path / "a"), 1, cluster=None)
    broker(history((0, 2), (1, 1)).write(tmp_path / "b"), 1, cluster=None)
    assert [finding.code for finding in audit(tmp_path).findings if finding.code.startswith("KA60")] == []
    broker(tmp_path / "b", 2, cluster=None)
    assert [finding.code for finding in audit(tmp_path).findings if finding.code.startswith("KA60")] == ["KA601"]
