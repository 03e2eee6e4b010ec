"""Unclean elections, by lines of brokers' and controllers' logs."""

from kaudit.checks.broker_state.logged_losses import unclean_election
from kaudit.model.finding import Severity
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
