"""Facts about blocks of producer ids that hold in every release.

Source: ProducerIdManager.PidBlockSize, ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE; recorded on 1.1.1 to 4.2.0.
"""

BLOCK_SIZE = 1000
FIRST_BLOCK_START = 0
MAX_PRODUCER_ID = 2**63 - 1
MIN_INT64 = -(2**63)
NO_BROKER = -1
"""Written for the broker by the controller when it takes the counter over from, or back to, ZooKeeper."""

NO_BROKER_EPOCH = -1
"""The broker epoch of the one ProducerIdsRecord that a migration from ZooKeeper writes."""

LAST_CONTINUABLE_END = MAX_PRODUCER_ID - BLOCK_SIZE
"""A block that ends beyond this cannot be followed by another: every allocator calls it exhausted."""
