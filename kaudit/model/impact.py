"""What a finding cost: records lost or duplicated, offsets that consumers cannot see, bytes a broker would cut off."""

from collections.abc import Sequence
from enum import Enum

from kaudit.model.json_record import JsonRecord


class Act(Enum):
    """What an operator may do to a broker, a copy or a transaction that makes a finding cost more."""

    RESTART = "restart"
    ELECT = "elect"
    DELETE = "delete"
    ABORT = "abort"
    ATTACH = "attach"


class Caution(JsonRecord, frozen=True):
    """An act that makes a finding cost more, as long as nobody has saved what it destroys.

    `target` is what must be left alone, as people call it: `replica b1`, a directory, `the transaction of producer 6
    epoch 0`. `reason` continues a sentence after a colon: `it alone holds offsets 814..932`.
    """

    act: Act
    target: str
    reason: str


class Impact(JsonRecord, frozen=True):
    """The cost of one finding; None where a kind of cost does not apply, 0 where it does and nothing was lost.

    Counts are of records: `records_duplicated` were written twice at least, `records_duplicated_at_most` at most. `offsets_invisible`
    counts offsets from `last_stable_offset` to the log end that consumers with `isolation.level=read_committed` do not get, since
    `invisible_since_timestamp` (ms since the epoch). An upper bound of None beside a lower one is not known: more of the log than
    a scan reads again may have been written twice. Consumer groups were given `records_delivered_again` a second time at least,
    `records_delivered_again_at_most` at most, and `records_skipped_at_most` never. Of sends that applications were told had failed
    `records_failed_but_written` are in the log at least, `records_failed_but_written_at_most` at most, and `records_failed_not_written`
    are not, at least. Committed offsets of groups went back `commits_went_back` times. `cannot_start` says, in a sentence each, which
    brokers do not start, and why. `cautions` are what would make it cost more.
    """

    records_lost_at_least: int | None = None
    records_lost_at_most: int | None = None
    records_duplicated: int | None = None
    records_duplicated_at_most: int | None = None
    records_delivered_again: int | None = None
    records_delivered_again_at_most: int | None = None
    records_skipped_at_most: int | None = None
    records_failed_but_written: int | None = None
    records_failed_but_written_at_most: int | None = None
    records_failed_not_written: int | None = None
    commits_went_back: int | None = None
    offsets_invisible: int | None = None
    last_stable_offset: int | None = None
    invisible_since_timestamp: int | None = None
    bytes_truncated: int | None = None
    cannot_start: Sequence[str] = ()
    cautions: Sequence[Caution] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, without the kinds of cost that do not apply."""
        return {name: value for name, value in super().to_dict().items() if value is not None and value != []}

    @property
    def is_lossy(self) -> bool:
        """Whether a loss of records is bounded, from below or above; the bound may be 0."""
        return self.records_lost_at_least is not None or self.records_lost_at_most is not None


NO_IMPACT = Impact()
