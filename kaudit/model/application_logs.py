"""Logs of brokers and clients that were read beside the audited logs, and what they came to."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaudit.model.json_record import JsonRecord
from kaudit.model.log_event import LogEvent, Origin


class ApplicationLogFile(JsonRecord, frozen=True):
    """One file that was read. `unknown_lines` fit no layout and no message that is known."""

    path: str
    origin: Origin
    lines: int
    unknown_lines: int
    events: int


class ApplicationLogs(Struct, frozen=True):
    """The events of all files, in the order of the files and their lines; `events` counts those that are not kept too."""

    files: Sequence[ApplicationLogFile]
    kept: Sequence[LogEvent]
    events: Mapping[str, int]

    @property
    def producer_ids(self) -> Sequence[int]:
        """The producer ids that events name, ascending."""
        return sorted({event.producer_id for event in self.kept if event.producer_id is not None})

    @property
    def not_kept(self) -> int:
        """How many events are only counted."""
        return sum(self.events.values()) - len(self.kept)


class LogClock(JsonRecord, frozen=True):
    """How the clock of the logs in one directory goes: `lower_ms` to `upper_ms`, most likely `likely_ms`, are added to their times.

    That gives times of the batches. `zone_minutes` is how far east of UTC their local time is, None where they state it or it is
    not known. `agreeing` of `anchors` lines allow this.
    """

    directory: str
    lower_ms: int
    upper_ms: int
    likely_ms: int
    zone_minutes: int | None
    anchors: int
    agreeing: int


class RefusedBatches(JsonRecord, frozen=True):
    """What a broker's log says it refused of one producer id and epoch in a partition: so many lines, the first of them at `line`.

    `first_sequence` and `last_sequence` are the lowest and the highest base sequence refused, where the lines name them.
    `outcome`: `landed`, if the log holds a later batch of that epoch with at least the highest of them; `superseded`, if the
    producer went on under a higher epoch, which may have sent the records again; `fenced`, if another producer had taken over,
    as is meant; `never-landed`; `unknown`, where the log does not show it.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int | None
    event: str
    attempts: int
    first_sequence: int | None
    last_sequence: int | None
    outcome: str
    path: str
    line: int
    text: str


class LogEventSummary(JsonRecord, frozen=True):
    """What the logs came to: files, events by class, clocks, and what was refused."""

    files: Sequence[ApplicationLogFile]
    events: Mapping[str, int]
    clocks: Sequence[LogClock] = ()
    refused: Sequence[RefusedBatches] = ()
    refused_not_listed: int = 0
