"""Valid batches of magic 2 that were found one stretch after the other and become columns at once."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.formats.log.record_batch import (
    HEADER_BYTES,
    HEADER_DTYPE,
    Controls,
    Headers,
    decode_controls,
    gather_headers,
    header_columns,
)
from kaudit.model.batch import Batches, empty_batches
from kaudit.reading.sound_batches import Block


class Stretch(Struct, frozen=True):
    """Batches that lie in one buffer; `file_positions`: int64, shape (n,), bytes, ascending."""

    headers: Headers
    file_positions: NDArray[np.int64]
    controls: Controls


class HeldBatches:
    """Stretches in file order; those between damages, of a batch or two each, are gathered from their block together."""

    def __init__(self) -> None:
        self._stretches: list[Stretch] = []
        self._block: Block | None = None
        self._positions: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._stretches or self._positions)

    def add(self, stretch: Stretch) -> None:
        """Take batches that lie behind those held."""
        self._gather()
        self._stretches.append(stretch)

    def add_from(self, block: Block, positions: list[int]) -> None:
        """Take the batches at these positions of the file, which lie in the block whole, behind those held."""
        if block is not self._block:
            self._gather()
            self._block = block
        self._positions += positions

    def columns(self) -> Batches:
        """Return what is held."""
        self._gather()
        held = self._stretches
        if not held:
            return empty_batches()
        if len(held) == 1:
            return header_columns(held[0].headers, held[0].file_positions, held[0].controls)
        before = np.cumsum([0] + [len(part.headers) for part in held[:-1]])
        controls = Controls(
            np.concatenate([part.controls.indexes + first for part, first in zip(held, before, strict=True)]),
            np.concatenate([part.controls.types for part in held]),
            np.concatenate([part.controls.coordinator_epochs for part in held]),
        )
        # as plain bytes: records would be copied field by field
        headers = np.concatenate([part.headers.view(HEADER_BYTES) for part in held]).view(HEADER_DTYPE)
        return header_columns(headers, np.concatenate([part.file_positions for part in held]), controls)

    def _gather(self) -> None:
        if self._block is None or not self._positions:
            return
        file_positions = np.array(self._positions, dtype=np.int64)
        positions = file_positions - self._block.start
        headers = gather_headers(self._block.content, positions)
        controls = decode_controls(self._block.content, positions, headers)
        self._stretches.append(Stretch(headers, file_positions, controls))
        self._positions = []
