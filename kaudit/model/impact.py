"""What a finding cost: records lost or duplicated, offsets that consumers cannot see, bytes a broker would cut off."""

from kaudit.model.json_record import JsonRecord


class Impact(JsonRecord, frozen=True):
    """The cost of one finding; None where a kind of cost does not apply, 0 where it does and nothing was lost.

    Counts are of records: `records_duplicated` were written twice at least, `records_duplicated_at_most` at most, None where a
    client may have batched others anew, or they lie further apart than a scan compares. `offsets_invisible` counts offsets from
    `last_stable_offset` to the log end that consumers with `isolation.level=read_committed` do not get, since
    `invisible_since_timestamp` (ms since the epoch).
    """

    records_lost_at_least: int | None = None
    records_lost_at_most: int | None = None
    records_duplicated: int | None = None
    records_duplicated_at_most: int | None = None
    offsets_invisible: int | None = None
    last_stable_offset: int | None = None
    invisible_since_timestamp: int | None = None
    bytes_truncated: int | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, without the kinds of cost that do not apply."""
        return {name: value for name, value in super().to_dict().items() if value is not None}


NO_IMPACT = Impact()
