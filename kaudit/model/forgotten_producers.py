"""Producers whose state a broker drops: for their age, or because their data was deleted."""

from msgspec import Struct


class IdleProducer(Struct, frozen=True):
    """A producer without an open transaction at the log's end: its newest batch or marker, times in ms."""

    producer_id: int
    producer_epoch: int
    last_offset: int
    last_timestamp: int
    segment: int | None
    position: int | None


class EvictedProducer(Struct, frozen=True):
    """A producer whose last batch below the log start is at `last_offset`; `position` is a byte in `segment`.

    `again`: offset of its first batch above, which starts anew at sequence 0 in the same epoch; `repeated`: that
    batch's bytes are those of one below.
    """

    producer_id: int
    producer_epoch: int
    last_offset: int
    last_sequence: int
    segment: int
    position: int
    again: int | None = None
    repeated: bool = False
