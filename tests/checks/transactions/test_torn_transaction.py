"""Partitions of one transaction that ended differently."""

from kaudit.checks.transactions.marker_outcomes import torn_transaction
from tests.checks.transactions.coordinator_log import BOTH, cycle, reported, write_partition, write_states


def test_a_partition_that_ended_otherwise_tears_the_transaction(tmp_path):
    write_states(tmp_path, [*cycle(True, BOTH), *cycle(False, BOTH)])
    write_partition(tmp_path, "a", (True, False))
    write_partition(tmp_path, "b", (True, True))
    assert reported(tmp_path) == [(torn_transaction.code, "b", 3)]
