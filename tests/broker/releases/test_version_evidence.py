"""The range of releases, where what was seen contradicts itself."""

import pytest

from kaudit.broker.releases.profile import all_releases
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data

ZOOKEEPER, KRAFT = ("0",), ("1",)
NEWEST_ZOOKEEPER = "3.9"


def inferred(**seen):
    found, because = infer_range(VersionEvidence(has_magic_2=True, **seen))
    return str(found.at_least), str(found.at_most), because


def test_a_hand_written_marker_does_not_outweigh_meta_properties():
    """Any client that may write markers can write one of epoch + 1 on any release."""
    at_least, at_most, because = inferred(has_tv2_commit=True, meta_properties_versions=ZOOKEEPER)
    assert at_least == "0.11.0.0"
    assert at_most.startswith(NEWEST_ZOOKEEPER)
    (said,) = [reason for reason in because if reason.startswith("not counted: a commit marker")]
    assert "would mean >= 4.0.0" in said
    assert f"meta.properties version 0 (ZooKeeper) means <= {at_most}" in said


def test_it_does_not_outweigh_the_clusters_own_feature_levels():
    """Transaction version 2 is a feature of the cluster: KRaft's metadata says whether it is on."""
    at_least, _, because = inferred(has_tv2_commit=True, meta_properties_versions=KRAFT, metadata_version=20)
    assert at_least == "3.8.0"
    assert any(reason.startswith("not counted: a commit marker") for reason in because)
    at_least, _, _ = inferred(has_tv2_commit=True, metadata_version=25, transaction_version=2)
    assert at_least == "4.0.0"


def test_alone_it_counts():
    assert inferred(has_tv2_commit=True)[0] == "4.0.0"


@pytest.mark.parametrize("own", [{"has_bootstrap_checkpoint": True}, {"has_flexible_transaction_value": True}])
def test_where_brokers_contradict_each_other_no_upper_bound_is_left(own):
    """bootstrap.checkpoint with ZooKeeper's meta.properties is fine until 3.9; a value of version 1 is not."""
    at_least, at_most, because = inferred(meta_properties_versions=ZOOKEEPER, **own)
    contradicts = at_least >= "4"
    assert at_most.startswith("4" if contradicts else NEWEST_ZOOKEEPER)
    assert any("contradicts" in reason for reason in because) == contradicts


@pytest.mark.parametrize(
    ("seen", "at_least"),
    [
        ({}, "0.11.0.0"),
        ({"has_topic_id": True}, "2.8.0"),  # KIP-516
        ({"meta_properties_versions": KRAFT}, "2.8.0"),  # KIP-500, early access
        ({"has_delete_horizon": True}, "3.1.0"),  # KAFKA-8522
        ({"has_bootstrap_checkpoint": True}, "3.3.0"),  # KIP-778
        ({"has_directory_id": True}, "3.7.0"),  # KIP-858
        ({"has_flexible_transaction_value": True}, "4.0.0"),  # KIP-890
        ({"transaction_version": 1}, "4.0.0"),
        ({"has_topic_id": True, "has_directory_id": True, "meta_properties_versions": KRAFT}, "3.7.0"),
        ({"has_delete_horizon": True, "meta_properties_versions": ZOOKEEPER}, "3.1.0"),
        ({"has_delete_horizon": True, "metadata_version": 21}, "3.9.0"),
    ],
)
def test_what_a_release_was_the_first_to_write(seen, at_least):
    assert inferred(**seen)[0] == at_least


@pytest.mark.parametrize(
    ("level", "at_least"),
    [
        (1, "3.3.0"),
        (7, "3.3.0"),
        (8, "3.4.0"),
        (9, "3.5.0"),
        (11, "3.5.0"),
        (12, "3.6.0"),
        (14, "3.6.0"),
        (15, "3.7.0"),
        (19, "3.7.0"),
        (20, "3.8.0"),
        (21, "3.9.0"),
        (22, "4.0.0"),
        (25, "4.0.0"),
        (26, "4.1.0"),
        (27, "4.1.0"),
        (28, "4.2.0"),
        (29, "4.2.0"),
    ],
)
def test_levels_of_metadata_version(level, at_least):
    """The constants of Kafka's MetadataVersion, IBP_3_3_IV3 to IBP_4_2_IV1."""
    assert inferred(metadata_version=level)[0] == at_least


def test_clients_cannot_write_what_only_brokers_write():
    """The broker's own files set bounds that nothing outweighs; what clients can write gives way to them."""
    for own in ("has_topic_id", "has_bootstrap_checkpoint", "has_directory_id", "has_flexible_transaction_value"):
        _, _, because = inferred(meta_properties_versions=ZOOKEEPER, **{own: True})
        assert not [reason for reason in because if reason.startswith("not counted")]


def test_a_bound_that_equals_the_other_side_is_counted():
    """A delete horizon means 3.1 or later, and 3.9 is later."""
    _, at_most, because = inferred(has_delete_horizon=True, meta_properties_versions=ZOOKEEPER)
    assert at_most.startswith(NEWEST_ZOOKEEPER)
    assert not [reason for reason in because if reason.startswith("not counted")]


def test_without_transaction_version_the_cluster_may_still_be_of_4():
    at_least, at_most, because = inferred(metadata_version=25)
    assert (at_least, at_most) == ("4.0.0", str(all_releases()[-1]))
    assert "the upper bound was dropped" not in " ".join(because)


def test_partition_metadata_is_evidence_of_2_8(tmp_path):
    """KIP-516: brokers from 2.8 on write the topic id beside the segments."""
    log = Log()
    log.append(data(1, 0, 0))
    directory = log.write(tmp_path / "orders-0")

    def range_of_versions():
        versions = scan(ScanOptions([str(directory)]), SilentProgress()).broker_version
        return versions.at_least, versions.because

    assert range_of_versions()[0] == "0.11.0.0"
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: qMNJ6pQ8Qa-q3lT1mPQ7YQ")
    at_least, because = range_of_versions()
    assert at_least == "2.8.0"
    assert ">= 2.8.0: partition.metadata with a topic id" in because
