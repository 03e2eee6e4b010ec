"""KA604: log directories of two clusters given as if they were replicas."""

from kaudit.checks.replicas.identities import mixed_clusters
from tests.checks.findings import recorded_findings
from tests.checks.replicas.log_directories import log_directory


def test_mixed_clusters_are_found_by_their_ids(tmp_path):
    log_directory(tmp_path / "pvc0", cluster="A")
    log_directory(tmp_path / "pvc1", cluster="B", broker=2)
    assert recorded_findings(mixed_clusters, str(tmp_path)) == [("warning", None, None, None)]


def test_mixed_clusters_are_not_found_in_one_cluster(tmp_path):
    log_directory(tmp_path / "pvc0", cluster="A")
    log_directory(tmp_path / "pvc1", cluster="A", broker=2)
    log_directory(tmp_path / "pvc2", "users-0", cluster="B")
    assert recorded_findings(mixed_clusters, str(tmp_path)) == []
    assert recorded_findings(mixed_clusters, "samples/replicas") == []
