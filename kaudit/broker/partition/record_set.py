"""The record set of a produce request: its batches found, and what is checked before any log is involved.

Source: ByteBufferLogInputStream, ProduceRequest.validateRecords (ProduceRequestUtils since 2.8), RequestUtils.flag.
"""

from collections.abc import Iterator

from msgspec import Struct

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Response, rejected_fields
from kaudit.formats.errors import Reason, WireError
from kaudit.formats.log.batch_header import (
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MIN_LENGTH_LEGACY,
    batch_size,
)
from kaudit.formats.log.codecs import Codec, decompress
from kaudit.formats.log.legacy import LegacyMessage, parse_message, read_messages
from kaudit.model.batch_fields import CODEC_MASK, LOG_APPEND_TIME_FLAG, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kaudit.model.sequence import add as add_sequence

_HEADER = HEADER.struct()
_FIRST_WITH_BATCHES = 3
"""Produce version from which a record set must be exactly one batch of magic 2."""
_FIRST_WITH_ZSTD = 7
_LARGEST_SET = 64 << 20
"""Decompressed bytes of a set of magic 0 or 1 whose messages are counted."""


class WireBatch(Struct, frozen=True, gc=False):
    """A batch of a produce request; `data` is empty when the attempt gives fields instead of bytes."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    last_offset_delta: int
    base_offset: int
    attributes: int
    max_timestamp: int
    magic: int
    crc: int
    data: bytes

    @property
    def is_transactional(self) -> bool:
        """Whether it claims to belong to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def last_sequence(self) -> int:
        """Sequence of its last record, -1 when it has none."""
        return (
            self.base_sequence if self.base_sequence < 0 else add_sequence(self.base_sequence, self.last_offset_delta)
        )


class Refusal(Struct, frozen=True, gc=False):
    """Why a request got no further; no error when the connection is closed instead of an answer."""

    error: KafkaError | None
    why: str
    of_records: bool = False
    """Whether the validator names the records that are wrong."""


class RecordSet(Struct, frozen=True, gc=False):
    """The batches of a record set up to its end, or to the first corrupt header, which `corrupt` describes."""

    batches: list[WireBatch]
    corrupt: str | None

    @property
    def first_is_unreadable(self) -> bool:
        """Whether the corrupt header is the first one."""
        return self.corrupt is not None and not self.batches


def split(data: bytes) -> RecordSet:
    """Find the batches of a record set; trailing bytes that are not a whole batch are ignored, as by brokers."""
    batches: list[WireBatch] = []
    at, end = 0, len(data)
    while end - at >= LOG_OVERHEAD:
        size = batch_size(data, at) - LOG_OVERHEAD
        if size < MIN_LENGTH_LEGACY:
            return RecordSet(batches, f"a record of {size} bytes")
        if end - at <= MAGIC_OFFSET:
            break
        magic = data[at + MAGIC_OFFSET]
        if magic > CURRENT_MAGIC:
            return RecordSet(batches, f"magic {magic - 256 if magic >= 128 else magic}")
        following = at + size + LOG_OVERHEAD
        if following > end:
            break
        batches.append(_read(data[at:following], magic))
        at = following
    return RecordSet(batches, None)


def _read(data: bytes, magic: int) -> WireBatch:
    if magic < CURRENT_MAGIC:
        return _read_entry(data, magic)
    if len(data) < HEADER_SIZE:
        return WireBatch(-1, -1, -1, 1, 0, 0, 0, NO_TIMESTAMP, magic, 0, data)
    (base_offset, _, _, _, crc, attributes, delta, _, max_timestamp, producer_id, epoch, sequence, count) = (
        _HEADER.unpack_from(data)
    )
    return WireBatch(
        producer_id, epoch, sequence, count, delta, base_offset, attributes, max_timestamp, magic, crc, data
    )


def _read_entry(data: bytes, magic: int) -> WireBatch:
    """Return an entry of magic 0 or 1: a message, or a compressed wrapper with as many records as messages inside."""
    count, attributes, timestamp = 1, 0, NO_TIMESTAMP
    try:
        entry = parse_message(data)
        attributes = entry.attributes & (CODEC_MASK | LOG_APPEND_TIME_FLAG if magic else CODEC_MASK)
        timestamp = NO_TIMESTAMP if entry.timestamp is None else entry.timestamp
        count = sum(1 for _ in messages_in(data))
    except WireError:
        pass  # the validator reads it again and refuses it, with the reason
    crc = int.from_bytes(data[LOG_OVERHEAD:MAGIC_OFFSET], "big")
    return WireBatch(-1, -1, -1, count, count - 1, 0, attributes, timestamp, magic, crc, data)


def messages_in(data: bytes) -> Iterator[LegacyMessage]:
    """Yield the messages of an entry of magic 0 or 1: itself, or those inside a compressed wrapper, whatever their offsets.

    Raises WireError where they cannot be read. Source: AbstractLegacyRecordBatch.DeepRecordsIterator.
    """
    entry = parse_message(data)
    if entry.codec == Codec.NONE:
        yield entry
        return
    if entry.codec == Codec.ZSTD or entry.value is None:
        raise WireError(0, Reason.VALUE, "a wrapper compressed with zstd, or without a value")
    try:
        inside = decompress(entry.codec, entry.magic, entry.value, _LARGEST_SET)
    except WireError as error:  # also where the payload ends too soon: an IOException has no error code either
        raise WireError(error.position, Reason.DECOMPRESSION, error.detail) from None
    if not inside:
        raise WireError(0, Reason.COUNT, "a wrapper without messages")
    for message in read_messages(inside):
        if message.codec != Codec.NONE or message.magic != entry.magic:
            raise WireError(message.position, Reason.VALUE, "a message inside that is compressed, or of another magic")
        yield message


def check_request(
    records: RecordSet, profile: Profile, api_version: int, transactional_id: str | None
) -> Refusal | None:
    """Check what is checked before any log is involved; return why the request is refused, None when it passes."""
    batches, corrupt = records.batches, records.corrupt
    if profile.unreadable_records_close_connection and not batches:
        return Refusal(None, f"the first batch cannot be read: {corrupt or 'the record set is empty or cut'}")
    invalid = None if api_version < _FIRST_WITH_BATCHES else _validate_records(records, profile, api_version)
    if profile.bad_record_set_closes_connection and invalid is not None:
        return Refusal(None, invalid.why)
    if corrupt is not None and not batches:
        return _unreadable(corrupt)
    if profile.needs_transactional_id and transactional_id is None and batches and batches[0].is_transactional:
        return Refusal(
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a transactional batch in a request without a transactional id",
        )
    return invalid


def _validate_records(records: RecordSet, profile: Profile, api_version: int) -> Refusal | None:
    """Check that a record set is exactly one batch of magic 2 (ProduceRequest.validateRecords)."""
    batches, corrupt = records.batches, records.corrupt
    if not batches:
        no_batch = Refusal(profile.invalid_record_error, "the record set holds no whole batch")
        return no_batch if corrupt is None else _unreadable(corrupt)
    first = batches[0]
    if first.magic != CURRENT_MAGIC:
        return Refusal(profile.invalid_record_error, f"magic {first.magic}, from Produce version 3 on it must be 2")
    codec = first.attributes & CODEC_MASK
    if profile.supports_zstd and api_version < _FIRST_WITH_ZSTD and codec > Codec.ZSTD:
        return Refusal(KafkaError.UNKNOWN_SERVER_ERROR, f"unknown compression codec {codec}")
    if profile.supports_zstd and api_version < _FIRST_WITH_ZSTD and codec == Codec.ZSTD:
        return Refusal(KafkaError.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7")
    if len(batches) > 1:
        return Refusal(profile.invalid_record_error, f"{len(batches)} batches, it must be exactly one")
    return None if corrupt is None else Refusal(KafkaError.CORRUPT_MESSAGE, f"after the first batch: {corrupt}")


def _unreadable(corrupt: str) -> Refusal:
    return Refusal(KafkaError.CORRUPT_MESSAGE, f"the first batch cannot be read: {corrupt}")


def refused(index: int, refusal: Refusal) -> Answer:
    """Return the answer to a request that got no further."""
    if refusal.error is None:
        return Response(index, {"outcome": "connection-closed"}, refusal.why)
    return Response(index, rejected_fields(refusal.error), refusal.why)
