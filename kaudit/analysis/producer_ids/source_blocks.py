"""What sources tell of blocks of producer ids, and one cluster's blocks by all of them."""

from collections.abc import Sequence

from msgspec import Struct, field

from kaudit.broker.producer_ids.allocation_rules import Step, is_complete, next_block, replay
from kaudit.broker.producer_ids.block_history import BlockHistory, combine
from kaudit.broker.producer_ids.coverage import Coverage
from kaudit.model.result import NotAudited


class BlockSource(Struct):
    """What one source tells. `cluster` is the id of its cluster, empty where unknown; `extent` as in MetadataLog."""

    origin: str
    history: BlockHistory = field(default_factory=BlockHistory)
    cluster: str = ""
    extent: tuple[int, int] | None = None
    notes: list[NotAudited] = field(default_factory=list)


class Blocks(Struct, frozen=True):
    """One cluster's blocks. `origin` names the sources; `following` is the block the next broker will get."""

    origin: str
    history: BlockHistory
    steps: list[Step]
    coverage: Coverage
    complete: bool
    following: tuple[int, int] | None


def together(told: Sequence[BlockSource]) -> Blocks | None:
    """Return what these sources tell together, None if that is no block."""
    history = combine([source.history for source in told])
    if not history.entries:
        return None
    steps = replay(history)
    origin = ", ".join(dict.fromkeys(source.origin for source in told if source.history.entries))
    return Blocks(origin, history, steps, Coverage(steps), is_complete(steps), next_block(history))
