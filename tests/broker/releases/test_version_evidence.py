"""The range of releases, where what was seen contradicts itself."""

import pytest

from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range

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
