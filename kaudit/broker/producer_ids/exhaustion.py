"""What each release does when the ids are used up."""

from msgspec import Struct

from kaudit.broker.producer_ids.blocks import BLOCK_SIZE, MAX_PRODUCER_ID


class Exhaustion(Struct, frozen=True):
    """The end of the ids under one allocator, `first_release` up to the next entry.

    `last_start` is the start of the last block it grants. `answer` is what InitProducerId gets from a broker that needs
    another block. `overflows`: the holder of the last block goes on with negative ids. `recorded`: seen on live
    brokers, else read from the source.
    """

    allocator: str
    first_release: tuple[int, int]
    last_start: int
    answer: str
    overflows: bool
    recorded: bool


EXHAUSTIONS = (
    Exhaustion("zookeeper", (0, 11), MAX_PRODUCER_ID - BLOCK_SIZE + 1, "UNKNOWN_SERVER_ERROR", True, True),
    # The controller stops one id short of the end, so the last id is never granted and nothing can overflow. Brokers
    # of 3.6+ answer as here; the waiting ones before may pass the controller's own error on.
    Exhaustion("controller", (3, 0), MAX_PRODUCER_ID - BLOCK_SIZE, "COORDINATOR_LOAD_IN_PROGRESS", False, False),
)


def exhaustion_of(release: tuple[int, int]) -> Exhaustion:
    """Return what `release`, e.g. (2, 8), does; 3.x still allocates by ZooKeeper while its protocol is below 3.0."""
    return max(
        (rule for rule in EXHAUSTIONS if rule.first_release <= release),
        key=lambda rule: rule.first_release,
        default=EXHAUSTIONS[0],
    )
