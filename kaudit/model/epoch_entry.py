"""A leader epoch and where it begins, as LeaderEpochFileCache keeps it."""

from kaudit.model.json_record import JsonRecord


class EpochEntry(JsonRecord, frozen=True):
    """A leader epoch (>= 0) and the first offset written under it."""

    epoch: int
    start_offset: int
