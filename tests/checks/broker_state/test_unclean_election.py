"""Unclean elections, by lines of brokers' and controllers' logs."""

from kaudit.checks.broker_state.logged_losses import unclean_election
from kaudit.model.severity import Severity
from tests.checks.broker_state.lines import line, reported

CHANGED = (
    "[QuorumController id=3] UNCLEAN partition change for t-0 with topic ID IFkJogAsRRO4Xt85quh6tQ: replicas: [1, 2], isr: [1] -> "
    "[2], leader: 1 -> 2, leaderEpoch: 5 -> 6, partitionEpoch: 7 -> 8"
)
BUILT = "[QuorumController id=3] Setting new leader for topicId IFkJogAsRRO4Xt85quh6tQ, partition 0 to 2 using an unclean election"


def test_the_new_leader_may_lack_records(tmp_path):
    lines = [
        line(BUILT),
        line(CHANGED, 0.001),
        line("[QuorumController id=3] Fencing broker 1 because its session has timed out."),
    ]
    (found,) = reported(unclean_election, tmp_path, server=lines)
    assert (found.severity, found.topic, found.partition) == (Severity.WARNING, "t", 0)
    assert found.message.startswith("a leader that was not in sync was elected in t-0: broker 2 became the leader")
    assert found.explanations[0].cause.startswith("replicas had fallen out of sync, or their broker was lost")


def test_other_elections_are_silent(tmp_path):
    clean = CHANGED.replace("UNCLEAN partition", "partition")
    assert not reported(unclean_election, tmp_path, server=[line(clean)])


def test_the_only_replica_that_leads_again_after_a_crash_lacks_nothing(tmp_path):
    """The lines of a 4.1.1 broker that was killed: with KIP-966 such an election counts as unclean."""
    made = line("Created log for partition bills-0 in /data/bills-0 with properties {}")
    states = (
        "Leader bills-0 with topic id Some(ld6X76m_SJK4-N0qBw3a5Q) starts at leader epoch {} from offset {} with partition epoch {}, high "
        "watermark 0, ISR [2], adding replicas [] and removing replicas [] ."
    )
    nobody, other = (
        f"[Broker id=2] Follower bills-0 starts at leader epoch 1 from offset 41 with partition epoch 2 and high watermark 0. Current leader is {leader}."
        for leader in (-1, 1)
    )
    marked = (
        "[Broker id=2] The topic partition bills-0 was marked as RECOVERING. Marking the topic partition as RECOVERED."
    )
    first, last = f"[Broker id=2] {states.format(0, 0, 0)}", f"[Broker id=2] {states.format(2, 41, 3)}"
    alone = [made, line(first, 1), line(nobody, 20), line(marked, 21), line(last, 21)]
    assert not reported(unclean_election, tmp_path, server=alone)
    followed = [made, line(first, 1), line(other, 20), line(marked, 21), line(last, 21)]
    assert len(reported(unclean_election, tmp_path, server=followed)) == 1
