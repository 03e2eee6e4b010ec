"""Replicas of real clusters: three brokers before, during and after leaders failed."""

import json

import pytest

from kaudit.model.finding import Finding
from kaudit.model.replicas import Relation
from kaudit.model.severity import Severity
from tests.diff.test_relations import run


def _lost(finding: Finding) -> int:
    """How many records at most; not fewer than at least."""
    least, most = finding.impact.records_lost_at_least, finding.impact.records_lost_at_most
    assert least is not None
    assert most is not None
    assert least <= most
    return most


def _offsets(finding: Finding) -> int:
    assert finding.offset is not None
    assert finding.last_offset is not None
    return finding.last_offset - finding.offset + 1


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
        epochs = {name: [row.epoch for row in rows] for name, rows in compared.leader_epochs.items()}
        for name, end in ends.items():
            assert set(end["leader_epochs"]) <= set(epochs[name])
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


def test_the_old_leader_lost_between_its_copies_what_truth_says_was_lost(evidence):
    capture = evidence.capture("failover-acks1")
    truth = json.loads((capture / "truth.json").read_text())
    moments = ("A2-new-leader-old-one-down", "B2-unclean-leader-old-one-down", "B3-recovered")
    result = run(*(capture / moment / "b1" for moment in moments))
    assert [(entry.broker_id, len(entry.replicas)) for entry in result.broker_copies] == [(1, 3)]
    found: dict[str | None, list[list[int | None]]] = {}
    found = {topic: [] for topic in ("acks1", "acks1-unclean", "all-idem", "all-idem-unclean")}
    for finding in result.scan.findings:
        assert (finding.code, _lost(finding)) == ("KA603", _offsets(finding))
        found[finding.topic].append([finding.offset, finding.last_offset])
    assert found == {topic: truth[topic]["lost_acked_offsets_as_reported"] for topic in found}
    for compared in result.partitions:
        assert compared.first_difference is None
        cut = [change for change in compared.copy_changes if change.relation is Relation.TRUNCATED]
        assert (compared.relation is Relation.TRUNCATED) is bool(cut)


def test_what_another_copy_of_the_broker_or_a_replica_still_holds_is_not_lost(evidence):
    # A1 and A2 hold the same on b1: it is reported once, of the later copy; all replicas of B3 are alike
    capture = evidence.capture("failover-acks1")
    moments = ("A1-right-after-kill", "A2-new-leader-old-one-down", "B3-recovered")
    brokers = [capture / moment / f"b{number}" for moment in moments for number in (1, 2, 3)]
    result = run(*brokers, topics=("acks1", "all-idem"))
    (finding,) = result.scan.findings
    assert (finding.offset, finding.last_offset) == (561, 914)
    assert str(finding.replica).startswith("A2")
    assert {compared.relation for compared in result.partitions} == {Relation.IDENTICAL}


def test_the_lost_records_stand_on_the_old_leader_beside_other_brokers_later_copies(evidence):
    # b1 of B2 and b2 of B3 are replicas of one another, of different times
    capture = evidence.capture("failover-acks1")
    truth = json.loads((capture / "truth.json").read_text())
    result = run(capture / "B2-unclean-leader-old-one-down/b1", capture / "B3-recovered/b2")
    assert result.broker_copies == []
    lost = {finding.topic: finding for finding in result.scan.findings if finding.code == "KA601"}
    assert set(lost) == {"acks1-unclean", "all-idem-unclean"}
    for topic, finding in lost.items():
        first, last = truth[topic]["lost_acked_offsets_as_reported"][-1]
        assert finding.severity is Severity.ERROR
        assert finding.offset == first
        assert _lost(finding) == last - first + 1
        assert finding.impact.records_lost_at_least


def test_what_the_followers_were_about_to_fetch_may_be_acknowledged_where_acks_may_be_1(evidence):
    # the producer of acks1 and acks1-unclean had acks=1 and no producer id, that of the others was idempotent
    moment = evidence.capture("failover-acks1") / "A2-new-leader-old-one-down"
    found = {
        entry.topic: (
            entry.severity,
            entry.impact.records_lost_at_most == (entry.last_offset or 0) - (entry.offset or 0) + 1,
        )
        for entry in run(*(moment / f"b{number}" for number in (1, 2, 3))).scan.findings
        if entry.code == "KA603"
    }
    assert found == {
        "acks1": (Severity.WARNING, True),
        "acks1-unclean": (Severity.WARNING, True),
        "all-idem": (Severity.NOTE, False),
        "all-idem-unclean": (Severity.NOTE, False),
    }


def test_records_that_came_back_under_the_new_leader_epoch_are_a_note(evidence):
    # truth.json: nothing of all-idem-unclean was lost in A; its producer sent the last batches again
    capture = evidence.capture("failover-acks1") / "A2-new-leader-old-one-down"
    (finding,) = [
        finding
        for finding in run(*sorted(capture.iterdir()), topics=("all-idem-unclean",)).scan.findings
        if finding.code == "KA601"
    ]
    assert (finding.severity, finding.offset) == (Severity.NOTE, 591)
    assert "nothing is lost" in finding.message


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
