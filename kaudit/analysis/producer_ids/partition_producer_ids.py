"""The producer ids of one partition replica, as holding them against one another and against blocks needs them."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.analysis.scan.chunk_rows import Counts
from kaudit.model.observation import Observation
from kaudit.source.layout import PartitionDirectory


class PartitionProducerIds(Struct, frozen=True):
    """The producer ids of one partition replica, each once, and what the checks here need of it.

    `producer_ids` may be left out where no history of blocks is known; `producers` is how many there are.
    """

    directory: PartitionDirectory
    producer_ids: NDArray[np.int64]
    producers: int
    observations: Sequence[Observation]
    counts: Counts
