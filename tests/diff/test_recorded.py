"""Replicas of real clusters: three brokers before, during and after leaders failed."""

import json

import pytest

from kaudit.model.finding import Severity
from kaudit.model.replicas import Relation
from tests.diff.test_relations import run

MOMENTS = ("A1-right-after-kill", "A2-new-leader-old-one-down", "B2-unclean-leader-old-one-down", "B3-recovered")
# offsets acknowledged and lost, by truth.json: where the old leader's copy parts from the new leader's
PARTED = {
    ("A2-new-leader-old-one-down", "acks1"): 561,
    ("A2-new-leader-old-one-down", "acks1-unclean"): 584,
    ("A2-new-leader-old-one-down", "all-idem-unclean"): 591,
    ("B2-unclean-leader-old-one-down", "acks1-unclean"): 5713,
    ("B2-unclean-leader-old-one-down", "all-idem-unclean"): 6053,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_moment_of_the_failover_is_as_its_account_says(evidence, moment):
    capture = evidence.capture("failover-acks1")
    truth = json.loads((capture / "truth.json").read_text())
    brokers = sorted((capture / moment).iterdir())
    result = run(*brokers)
    assert [replica.name for replica in result.replicas] == [broker.name for broker in brokers]
    assert result.partitions
    for compared in result.partitions:
        ends = {broker.name: truth[compared.topic]["ends"][f"{moment}/{broker.name}"] for broker in brokers}
        assert compared.end_offsets == {name: end["last_offset"] + 1 for name, end in ends.items()}
        told = {name: [row.epoch for row in rows] for name, rows in compared.leader_epochs.items()}
        for name, end in ends.items():
            assert set(end["leader_epochs"]) <= set(told[name])
        parted = PARTED.get((moment, compared.topic))
        found = [finding for finding in result.scan.findings if finding.topic == compared.topic]
        assert [finding.offset for finding in found if finding.code == "KA601"] == ([] if parted is None else [parted])
        if parted is None:
            alike = len(set(compared.end_offsets.values())) == 1
            assert compared.relation is (Relation.IDENTICAL if alike else Relation.BEHIND)
            assert bool(found) is not alike
        else:
            assert compared.relations["b1"] is Relation.DIVERGED
            assert compared.truncation_offsets["b1"] == parted


def test_the_old_leader_was_truncated_to_where_the_next_moment_shows_it(evidence):
    # A3 is not kept, but B1's logs are its continuation: in B3 all three hold one log, in which the cut records are not
    capture = evidence.capture("failover-acks1")
    before, after = (capture / moment / "b1" for moment in ("A2-new-leader-old-one-down", "B3-recovered"))
    (compared,) = run(before, after, topics=("acks1",)).partitions
    assert compared.first_difference is not None
    assert compared.first_difference.offset == 561
    assert compared.only_on[next(iter(compared.relations))].last == 914


def test_acknowledged_by_one_in_sync_replica_is_an_error_below_its_high_watermark(evidence):
    capture = evidence.capture("failover-acks1") / "B2-unclean-leader-old-one-down"
    result = run(*sorted(capture.iterdir()), topics=("acks1",))
    (alone,) = [finding for finding in result.scan.findings if finding.code == "KA603"]
    assert (alone.severity, alone.offset, alone.last_offset) == (Severity.ERROR, 5798, 6967)
    assert alone.evidence["high_watermark_of"] == "b1"


def test_recovered_replicas_of_the_oracle_are_alike(evidence):
    root = evidence.oracle("3.9.1", "logdir-failover")
    brokers = sorted(path.parent for path in root.rglob("meta.properties"))[:3]
    result = run(*brokers)
    data = [compared for compared in result.partitions if not compared.topic.startswith("__")]
    assert len(data) > 50
    assert {compared.relation for compared in data} == {Relation.IDENTICAL}
    assert {finding.severity for finding in result.scan.findings} <= {Severity.NOTE}
