"""Ids beside copies: what contradicts that they belong to one cluster, one broker, one topic."""

from msgspec.structs import replace

from kaudit.audits.replicas.copy_identities import contradictions
from kaudit.model.copy_identities import HeldTwice, LogCopy, MixedClusters, SeveralTopicIds

COPY = LogCopy("orders", 0, "b1", "/b1", 1, "A", "disk1", "id1", 0, 10, 3)


def other(name, **ids):
    """Another copy of the partition in a log directory of its own."""
    return replace(COPY, name=name, log_dir=f"/{name}", **ids)


def test_replicas_of_one_cluster_contradict_nothing():
    assert list(contradictions([COPY, other("b2", broker_id=2, directory_id="disk2")])) == []


def test_copies_of_one_disk_at_several_times_contradict_nothing():
    assert list(contradictions([COPY, other("later", end_offset=20)])) == []


def test_unknown_ids_contradict_nothing():
    unknown = {"cluster_id": None, "broker_id": None, "directory_id": None, "topic_id": None}
    assert list(contradictions([COPY, other("b2", **unknown)])) == []
    assert list(contradictions([COPY, other("b2", directory_id=None)])) == []
    assert (
        list(contradictions([replace(COPY, broker_id=None), other("b2", broker_id=None, directory_id="disk2")])) == []
    )


def test_clusters_are_mixed_where_they_share_a_partition():
    elsewhere = other("b2", broker_id=2, cluster_id="B", topic_id="id1")
    assert list(contradictions([replace(elsewhere, topic="users"), COPY])) == []
    (found,) = contradictions([elsewhere, COPY, replace(COPY, partition=1)])
    assert found == MixedClusters({"A": ["/b1"], "B": ["/b2"]}, ["orders-0"], same_topic_ids=True)
    (found,) = contradictions([replace(elsewhere, topic_id="id2"), COPY])
    assert found == MixedClusters({"A": ["/b1"], "B": ["/b2"]}, ["orders-0"], same_topic_ids=False)


def test_a_broker_holds_a_partition_once_and_the_newest_leader_decides():
    older, newer = replace(COPY, end_offset=100), other("d2", directory_id="disk2", end_offset=20, leader_epoch=5)
    assert list(contradictions([older, newer])) == [HeldTwice([newer, older])]
    longer = other("d3", directory_id="disk3", end_offset=30, leader_epoch=5)
    assert list(contradictions([older, newer, longer])) == [HeldTwice([longer, newer, older])]
    assert list(contradictions([older, replace(newer, in_use=False)])) == []
    assert list(contradictions([older, replace(newer, partition=1)])) == []


def test_a_topic_has_one_id_in_a_cluster():
    again = other("b2", broker_id=2, topic_id="id2", partition=1)
    assert list(contradictions([COPY, again])) == [SeveralTopicIds("orders", {"id1": [COPY], "id2": [again]})]
    assert list(contradictions([COPY, replace(again, topic="users")])) == []
