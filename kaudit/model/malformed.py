"""A batch whose CRC holds but whose content contradicts itself."""

from msgspec import Struct


class MalformedBatch(Struct, frozen=True):
    """One batch; `limited`: its content was larger than the limit, not wrong.

    `position` and `size` in the segment file of index `segment`, `record_count` as its header claims.
    """

    segment: int
    position: int
    size: int
    base_offset: int
    last_offset: int
    record_count: int
    producer_id: int
    producer_epoch: int
    detail: str
    limited: bool = False
    limit: int | None = None
