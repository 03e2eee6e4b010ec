"""Attempts: what a broker was asked and what happened to it. Each kind has its fields, and how a broker answers.

This is the one schema of the format: reading (kaudit/replay/session.py), its error messages and writing
(kaudit/simulate/cluster/brokers.py) derive from it.
"""

from kaudit.broker.attempts.base import NO_INDEX
from kaudit.broker.attempts.configuration import ConfigureTopic, StartBroker
from kaudit.broker.attempts.coordinator_requests import AddPartitions, EndTxn, InitProducerId
from kaudit.broker.attempts.delete_records import DeleteRecords
from kaudit.broker.attempts.describe import Describe
from kaudit.broker.attempts.leader_change import FollowerRestart, LeaderChange, LeaderChangeKind
from kaudit.broker.attempts.produce_request import BATCH_FIELDS, Produce, SentBatch, SentElsewhere
from kaudit.broker.attempts.restart import FoundBatch, Restart, Tamper
from kaudit.broker.attempts.time_passes import ExpireProducers, Wait
from kaudit.broker.attempts.txn_offset_commit import TxnOffsetCommit
from kaudit.broker.attempts.write_marker import WriteMarker

__all__ = [
    "BATCH_FIELDS",
    "NO_INDEX",
    "AddPartitions",
    "Attempt",
    "ConfigureTopic",
    "DeleteRecords",
    "Describe",
    "EndTxn",
    "ExpireProducers",
    "FollowerRestart",
    "FoundBatch",
    "InitProducerId",
    "LeaderChange",
    "LeaderChangeKind",
    "PartitionAttempt",
    "Produce",
    "Restart",
    "SentBatch",
    "SentElsewhere",
    "StartBroker",
    "Tamper",
    "TxnOffsetCommit",
    "Wait",
    "WriteMarker",
    "op_of",
]

PartitionAttempt = (
    Produce
    | InitProducerId
    | AddPartitions
    | EndTxn
    | TxnOffsetCommit
    | WriteMarker
    | DeleteRecords
    | Restart
    | LeaderChange
    | FollowerRestart
    | Wait
    | ExpireProducers
    | Describe
)
"""A request to one partition, or an event at it."""
Attempt = StartBroker | ConfigureTopic | PartitionAttempt


def op_of(attempt: Attempt) -> str:
    """Return the `op` of an attempt's line."""
    return str(attempt.__struct_config__.tag)
