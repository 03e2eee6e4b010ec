"""One batch of a producer. Source: ProducerBatch."""

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.response import TopicPartition
from kaudit.formats.log.batch_header import HEADER_SIZE
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kaudit.model.sequence import add as add_sequence
from kaudit.simulate import encoding

_OVERHEAD = 10
"""Bytes of a record beside key and value, at most: its length, attributes, deltas, three lengths."""


class Payload(Struct, frozen=True):
    """The records of one application: number 7 of `orders` is the value `orders:7` padded to `value_bytes`."""

    application: str
    value_bytes: int
    producer: str
    session: int
    """Which producer of the application sends them: not in the bytes."""

    def of(self, number: int) -> tuple[bytes, bytes]:
        """Return key and value of a record."""
        key = b"%d" % number
        return key, (self.application.encode() + b":" + key).ljust(self.value_bytes, b".")

    def encoded_size(self, number: int) -> int:
        """Return the bytes a record takes in a batch, rounded up."""
        digits = len(str(number))
        return _OVERHEAD + digits + max(self.value_bytes, len(self.application) + 1 + digits)


class ProducerBatch(Struct, eq=False):
    """Records of one partition that are sent together, and their result.

    `numbers` are the application's numbers of its records, `timestamps` their times (ms since 1970). Times of the
    batch itself are simulated.
    """

    partition: TopicPartition
    payload: Payload
    created_at: int
    last_appended_at: int
    last_attempt_at: int
    numbers: list[int] = []
    timestamps: list[int] = []
    size: int = HEADER_SIZE
    attempts: int = 0
    in_retry: bool = False
    retry_at: int = 0
    """When the backoff after its last failed attempt is over."""
    sent_to: int = -1
    """The broker it was last sent to."""
    is_split: bool = False
    """Whether it is part of a batch that was too large."""
    closed: bool = False
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    transactional: bool = False
    sequence_was_reset: bool = False
    data: bytes | None = None
    finished: bool = False
    error: KafkaError | None = None
    last_error: KafkaError | None = None
    """The last error a broker responded with."""
    offset: int = -1

    @classmethod
    def created(cls, partition: TopicPartition, payload: Payload, now: int) -> "ProducerBatch":
        """Return an empty batch: nothing was appended to it or sent before."""
        return cls(partition, payload, now, now, now)

    def append(self, number: int, timestamp: int, size: int, now: int) -> None:
        """Add a record that takes `size` bytes in the batch."""
        self.numbers.append(number)
        self.timestamps.append(timestamp)
        self.size += size
        self.last_appended_at = now

    @property
    def has_sequence(self) -> bool:
        """Whether a sequence was assigned: it changes only together with all of the partition's."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def record_count(self) -> int:
        """Number of records, at least 1."""
        return len(self.numbers)

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record."""
        return add_sequence(self.base_sequence, len(self.numbers) - 1)

    def set_producer_state(self, producer_id: int, epoch: int, base_sequence: int, *, transactional: bool) -> None:
        """Set producer id, epoch and base sequence. Source: setProducerState."""
        self.producer_id, self.epoch, self.base_sequence = producer_id, epoch, base_sequence
        self.transactional = transactional
        self.data = None

    def reset_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """Set them again, as for all batches of its partition. Source: resetProducerState."""
        self.sequence_was_reset = True
        self.set_producer_state(producer_id, epoch, base_sequence, transactional=self.transactional)

    def reenqueued(self, now: int) -> None:
        """Count a failed attempt. Source: reenqueued."""
        self.attempts += 1
        self.last_attempt_at = max(self.last_appended_at, now)
        self.in_retry = True

    def has_reached(self, delivery_timeout_ms: int, now: int) -> bool:
        """Whether the delivery timeout is over. Source: hasReachedDeliveryTimeout."""
        return delivery_timeout_ms <= now - self.created_at

    def encoded(self) -> bytes:
        """Return the bytes that are sent: the same ones each time, unless the sequence was reset."""
        if self.data is None:
            base = self.timestamps[0]
            encode, payload = encoding.record, self.payload
            records = [
                encode(delta, timestamp - base, *payload.of(number))
                for delta, (number, timestamp) in enumerate(zip(self.numbers, self.timestamps, strict=True))
            ]
            self.data = encoding.batch(
                records,
                (self.producer_id, self.epoch, self.base_sequence),
                (base, max(self.timestamps)),
                transactional=self.transactional,
            )
        return self.data

    def split(self, batch_size: int, now: int) -> list["ProducerBatch"]:
        """Cut it into batches of at most `batch_size` bytes that share its sequences among them. Source: split."""
        parts: list[ProducerBatch] = []
        for number, timestamp in zip(self.numbers, self.timestamps, strict=True):
            size = self.payload.encoded_size(number)
            if not parts or parts[-1].size + size > batch_size:
                parts.append(ProducerBatch(self.partition, self.payload, self.created_at, now, now))
                parts[-1].closed = parts[-1].is_split = True
            parts[-1].append(number, timestamp, size, now)
        if self.has_sequence:
            sequence = self.base_sequence
            for part in parts:
                part.set_producer_state(self.producer_id, self.epoch, sequence, transactional=self.transactional)
                sequence = add_sequence(sequence, part.record_count)
        return parts
