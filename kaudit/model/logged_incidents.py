"""What logs of brokers and clients say went wrong: their events about one producer or one replica, and what became of it."""

from collections.abc import Sequence
from enum import StrEnum, auto

from msgspec import Struct

from kaudit.model.application_logs import LogEvent
from kaudit.model.evidence_parts import EventEvidence


class Consequence(StrEnum):
    """What events of logs come to, for a producer or a replica; a check reports each."""

    REFUSED = auto()
    """A broker did not append batches: their sequences do not follow, or their records may not be written."""
    FORGOTTEN = auto()
    """A broker knows the producer, or the producer id of its transactional id, no more."""
    FENCED = auto()
    """A newer epoch has taken the producer's place."""
    ROLLED_BACK = auto()
    """A transaction ended otherwise than its application asked."""
    UNDELIVERED = auto()
    """A client gave records up."""
    TRUNCATED = auto()
    """A replica cut the end of its log off."""
    DIRECTORY_FAILED = auto()
    """A broker's log directory failed: its replicas there are offline."""
    UNCLEAN = auto()
    """A leader was elected that may lack records."""
    MARKERS_STOPPED = auto()
    """A coordinator gave up writing a transaction's markers."""
    STATE_REBUILT = auto()
    """A broker could not read what it had saved of its producers."""
    EPOCHS_EXHAUSTED = auto()
    """A producer id has few epochs left, none, or will soon have none."""


class Outcome(StrEnum):
    """What became of refused batches, by the bytes of a log or by lines alone. The best is first."""

    FENCED = "fenced"
    """Another instance had taken over, as intended."""
    LANDED = "landed"
    """The log holds that sequence by now, or a later line says so."""
    SUPERSEDED = "superseded"
    """The producer continued under a higher epoch or another id."""
    MENDED = "mended"
    """What made the broker refuse was over afterwards: who tried again was not refused."""
    UNKNOWN = "unknown"
    """Nothing shows it."""
    NEVER_LANDED = "never-landed"
    """The log of the partition was read, and does not hold it."""


class AbortedRecords(Struct, frozen=True):
    """Where the records of an aborted transaction lie in a partition: from its first one up to its marker."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int


MAX_EPOCH = 2**15 - 1
"""The last producer epoch."""


class EpochUse(Struct, frozen=True):
    """The lowest and the highest epoch that lines state of a producer id, and the time from the one to the other, ms."""

    first: int
    last: int
    milliseconds: int | None

    @property
    def left(self) -> int:
        """The number of epochs that the producer id has left."""
        return MAX_EPOCH - self.last

    @property
    def exhausted_in_ms(self) -> int | None:
        """When none will be left if they are raised on as fast, ms after the last line; None where no rate is known."""
        if self.milliseconds is None or self.last <= self.first:
            return None
        return self.left * self.milliseconds // (self.last - self.first)


class LoggedIncident(Struct, frozen=True, kw_only=True):
    """The events that say the same of one producer, or of one replica, in the order of their times.

    `subject` is the same for everything about one producer, whatever its lines name it by, or the log directory that failed. `error` is the name in Kafka's
    `Errors`, empty where events state none or several. `partition_read`: the log of the partition was read too. `shown` are
    some of the events as evidence. A field is None where no event says it.
    """

    consequence: Consequence
    subject: str
    events: Sequence[LogEvent]
    error: str
    outcome: Outcome
    partition_read: bool = False
    replica: str | None = None
    """The replica among the inputs that lies in the log directory that failed."""
    topic: str | None = None
    partition: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    coordinator_partition: int | None = None
    """The partition of __transaction_state that lines name for the transactional id."""
    shown: Sequence[EventEvidence] = ()
    timeout_ms: int | None = None
    """transaction.timeout.ms of the producer, by __transaction_state."""
    aborted: Sequence[AbortedRecords] = ()
    """What the last timeout aborted in the partitions that were read."""
    epochs: EpochUse | None = None
    """Where it is about epochs, and lines state some."""

    @property
    def of_replica(self) -> bool:
        """Whether it is about replicas, not about a producer."""
        return self.consequence in {Consequence.TRUNCATED, Consequence.UNCLEAN}

    @property
    def times(self) -> Sequence[int]:
        """The times of the events, ms, of those that have one."""
        return [event.timestamp_ms for event in self.events if event.timestamp_ms is not None]
