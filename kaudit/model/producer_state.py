"""What the audit remembers of a producer id in a partition. This is the only definition.

A new field is added here, with its type and default, and used in the rule that needs it; the columns of
audits/sequences/producer_table.py follow.
"""

from typing import Annotated, NamedTuple

from msgspec import Struct

from kaudit.model.batch_fields import (
    NO_COORDINATOR_EPOCH,
    NO_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from kaudit.model.log_rows import BoundaryBatch
from kaudit.model.schema import AtMost, Bool, Int16, Int32, Int64, UInt32

NUM_BATCHES_TO_RETAIN = 5
"""Batches a broker remembers of a producer. Source: ProducerStateEntry.NUM_BATCHES_TO_RETAIN."""
NO_CRC = -1
NO_POSITION = -1
NO_SEGMENT = -1

# Bits of ProducerAuditState.flags.
TV2 = 1
"""A commit marker carried the data's epoch + 1: transaction version 2 (KIP-890). Stays set."""
EXHAUSTION_REPORTED = 2
"""It was reported that the epoch is nearly exhausted. Stays set."""
OUTSIDE_REPORTED = 4
"""The open transaction's non-transactional write was reported."""
ABORT_BUMPED = 8
"""The last marker was an abort that raised the epoch, and no data of that epoch has come yet."""
AFTER_MARKER = 16
"""The open transaction began after a marker of its own epoch."""
MARKED_EPOCH = 32
"""The last marker ended data of its own epoch, and that is still the epoch."""
SILENCE_REPORTED = 64
"""It was reported that the producer continued after brokers may have forgotten it. Stays set."""


class RetainedBatch(NamedTuple):
    """One batch of the duplicate window, as the log has it.

    Kafka's BatchMetadata (broker/producer_state) is what a broker keeps of it: no CRC, and a length in offsets from which
    some releases compute a wrong first sequence. The audit has seen the batch, so it keeps what is certain.
    """

    base_offset: Int64
    first_sequence: Int32
    last_sequence: Int32
    crc: UInt32


class ProducerAuditState(Struct, frozen=True, array_like=True, gc=False):
    """The fields of Kafka's ProducerStateEntry, and what explains where a bad batch came from."""

    epoch: Int16 = NO_PRODUCER_EPOCH
    last_sequence: Int32 = NO_SEQUENCE
    """-1 while no batch of `epoch` is remembered."""
    window: Annotated[tuple[RetainedBatch, ...], AtMost(NUM_BATCHES_TO_RETAIN)] = ()
    """The newest adopted batches of `epoch`, oldest first."""
    last: BoundaryBatch | None = None
    """The newest adopted batch of any epoch."""
    start_crc: Int64 = NO_CRC
    """CRC of the newest batch of this epoch at sequence 0: its first, or the first after the highest; -1 if not seen."""
    coordinator_epoch: Int32 = NO_COORDINATOR_EPOCH
    """The highest of its markers."""
    rebuilt_epoch: Int16 = NO_PRODUCER_EPOCH
    """What a broker holds that read the log up to here: it takes the newest batch's or marker's, even where that is lower."""
    rebuilt_coordinator_epoch: Int32 = NO_COORDINATOR_EPOCH
    """Likewise, of the newest marker."""
    last_timestamp: Int64 = NO_TIMESTAMP
    """Of the newest batch or marker, ms."""
    txn_first_offset: Int64 = NO_OFFSET
    """First offset of the open transaction, -1 without one; so are the next three."""
    txn_first_timestamp: Int64 = NO_TIMESTAMP
    txn_position: Int64 = NO_POSITION
    txn_segment: Int32 = NO_SEGMENT
    txn_records: Int64 = 0
    marker_offset: Int64 = NO_OFFSET
    """Of the last marker, -1 without one."""
    marker_timestamp: Int64 = NO_TIMESTAMP
    flags: Int32 = 0
    """The bits above."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.txn_first_offset != NO_OFFSET


class OpenRun(NamedTuple):
    """The run that is unfinished at the end of a chunk: the next chunk's first run may continue it. Columns only."""

    run_open: Bool
    run_transactional: Bool
    run_epoch: Int16
    run_sequence: Int32
    """Its last sequence."""
    run_timestamp: Int64
    """Max timestamp of its last batch, ms."""
