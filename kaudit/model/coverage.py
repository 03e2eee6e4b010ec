"""The account of a partition's offsets: what became of each up to the end of its log, and on what evidence.

How the lines of a text were taken: of a dump of kafka-dump-log, or of a log of a broker or client.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from kaudit.model.json_record import JsonRecord
from kaudit.model.remote_segments import RemoteAccount

MAX_EXAMPLES: Final = 3
_SHOWN: Final = 160


class TextLines(JsonRecord, frozen=True):
    """Every one of the `lines` of a text is read, not Kafka's (`other_lines`), or not understood (`unknown_lines`).

    `unknown_facts` are those not understood that hold a fact - a producer id, an epoch, a sequence, an exception, an error's
    name, a partition - or break off before one; `examples` the first MAX_EXAMPLES of them, each with its number.
    """

    lines: int = 0
    other_lines: int = 0
    unknown_lines: int = 0
    unknown_facts: int = 0
    examples: tuple[str, ...] = ()

    @property
    def read_lines(self) -> int:
        """The number of lines that were understood."""
        return self.lines - self.other_lines - self.unknown_lines

    def and_also(self, other: "TextLines") -> "TextLines":
        """Return the sum with other lines, which follow these."""
        return TextLines(
            self.lines + other.lines,
            self.other_lines + other.other_lines,
            self.unknown_lines + other.unknown_lines,
            self.unknown_facts + other.unknown_facts,
            (*self.examples, *other.examples)[:MAX_EXAMPLES],
        )

    @property
    def reason(self) -> str:
        """Return what is not audited because of the lines with facts that were not understood."""
        shown = "; ".join(self.examples)
        return f"{self.unknown_facts:,} of {self.lines:,} lines are cut off or not understood, and hold facts of producers: {shown}"


NO_LINES: Final = TextLines()


def example(number: int, text: str) -> str:
    """Return a line as an example."""
    return f"line {number}: {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"


MOST_RANGES = 100
"""Ranges that are listed of one partition; the offsets of more are only counted."""


class OffsetClass(enum.Enum):
    """What became of an offset. There is evidence for each but UNKNOWN."""

    DATA = "data"
    MARKER = "marker"
    """A control batch covers it: the end of a transaction, or a control record of KRaft."""
    COMPACTED = "compacted"
    RETENTION = "retention"
    """It lies below the log start offset: retention or DeleteRecords removed it."""
    REMOTE = "remote"
    """By __remote_log_metadata it is in remote storage (KIP-405); what is there was not read."""
    UNCONFIRMED = "unconfirmed"
    """A broker with remote storage has deleted its segment here, and no record shows that it was copied there before."""
    DAMAGED = "damaged"
    MISSING = "missing"
    UNKNOWN = "unknown"


NOT_ACCOUNTED = (OffsetClass.MISSING, OffsetClass.DAMAGED, OffsetClass.UNCONFIRMED, OffsetClass.UNKNOWN)
"""The classes of offsets that are not accounted for."""


class EndWitness(JsonRecord, frozen=True):
    """A file, or a broker's answer, by which the log once had at least this end (exclusive)."""

    name: str
    end_offset: int


class OffsetRange(JsonRecord, frozen=True):
    """Offsets that are not accounted for: `offsets` of those from `first_offset` to `last_offset`, both inclusive.

    `last_offset` is None, and `offsets` 0, where nothing says how many they are. `incomplete`: an audit that knows so little is not
    complete; False where the offsets are known to be lost, or only a checkpoint was not copied.
    """

    first_offset: int
    last_offset: int | None
    offsets: int
    kind: OffsetClass
    reason: str
    incomplete: bool = False


class Coverage(JsonRecord, frozen=True):
    """The account of one replica of one partition.

    `offsets` is how many there are of each class, without classes that have none. Together they are all from 0 on, or from
    `log_start_offset` on where only single files were given, up to `log_end_offset` (exclusive, None where the end could not be
    read), and those beyond it that a witness knows. `ranges` are those not accounted for, the first MOST_RANGES found.
    """

    topic: str
    partition: int
    replica: str
    log_start_offset: int
    log_start_source: str
    log_end_offset: int | None
    witnesses: Sequence[EndWitness]
    offsets: Mapping[str, int]
    ranges: Sequence[OffsetRange]
    all_accounted: bool
    text_lines: TextLines | None = None
    """Of a text of kafka-dump-log in place of the segments: how its lines were taken."""
    remote: RemoteAccount | None = None
    """What __remote_log_metadata says of its segments in remote storage."""

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form, with `text_lines` only where a text was read, and `remote` where there is anything remote."""
        absent = [name for name in ("text_lines", "remote") if getattr(self, name) is None]
        return {name: value for name, value in super().to_dict().items() if name not in absent}

    def with_ranges(self, ranges: Sequence[OffsetRange]) -> "Coverage":
        """Return the account with more offsets that are not accounted for."""
        offsets = dict(self.offsets)
        for found in ranges:
            if found.offsets:
                offsets[found.kind.value] = offsets.get(found.kind.value, 0) + found.offsets
        listed = [*self.ranges, *ranges][:MOST_RANGES]
        return replace(self, offsets=offsets, ranges=listed, all_accounted=self.all_accounted and not ranges)

    def with_witness(self, witness: EndWitness) -> "Coverage":
        """Return the account with one more witness, whatever it knows."""
        return replace(self, witnesses=[*self.witnesses, witness])

    def with_witnesses(self, witnesses: Iterable[EndWitness], log_end_offset: int | None) -> "Coverage":
        """Return the account with more witnesses; what the furthest knows beyond the log's end (None: not certain) is missing."""
        known = [*self.witnesses, *witnesses]
        account = replace(self, witnesses=known)
        if log_end_offset is None or not known:
            return account
        if log_end_offset < self.log_start_offset and OffsetClass.RETENTION.value in self.offsets:
            # the log start offset itself lies beyond the end: nothing shows that the offsets between ever were
            account = replace(account, offsets={**self.offsets, OffsetClass.RETENTION.value: log_end_offset})
        account = replace(account, log_end_offset=log_end_offset)
        furthest = max(known, key=lambda witness: witness.end_offset)
        reason = f"{furthest.name} knows the log up to {furthest.end_offset}"
        return account.known_up_to(furthest.end_offset, OffsetClass.MISSING, reason)

    def known_up_to(self, end_offset: int, kind: OffsetClass, reason: str) -> "Coverage":
        """Return the account with what became of the offsets beyond the log's end, up to `end_offset` (exclusive)."""
        # damage at the end, or another witness, accounts for some of them
        first = max(
            [
                self.log_end_offset or 0,
                *(found.last_offset + 1 for found in self.ranges if found.last_offset is not None),
            ]
        )
        count = end_offset - first
        if count <= 0:
            return self
        incomplete = kind is OffsetClass.UNKNOWN
        return self.with_ranges([OffsetRange(first, end_offset - 1, count, kind, reason, incomplete)])
