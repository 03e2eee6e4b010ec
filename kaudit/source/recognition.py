"""What a file is, by its first bytes, and whose a directory is, by its names: the one place that knows all that people hand over.

A kind of file that is new here is a member of `Content` and a line of `recognise`; discovery decides what becomes of it.
"""

import codecs
import re
from collections.abc import Collection
from typing import Final

from kaudit.formats.log.batch_header import (
    CURRENT_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    PREFIX_SIZE,
    batch_size,
    plausible_length,
)
from kaudit.formats.log.resync import first_sound
from kaudit.source.archives.forms import form_of
from kaudit.source.content import Content, Recognised
from kaudit.source.file_kinds import describe_dump
from kaudit.source.remote_storage import is_copied_segment
from kaudit.source.uri import Uri

_CONTROLS: Final = [bytes([code]) for code in range(32) if code not in b"\t\r\n\f\x1b"]
_TEXT_BYTES: Final = 50
"""A text has at least so many bytes for each control character."""
_REDPANDA: Final = re.compile(r"[0-9]+-[0-9]+(-[0-9]+-[0-9]+)?-v[0-9]+\.log(\.[0-9]+)?")
"""A segment on disk, or in Redpanda's own tiered storage."""
_REDPANDA_PARTITION: Final = re.compile(r"[0-9]+_[0-9]+")
_AUTOMQ_HASH_DIGITS: Final = 8
_TOPIC: Final = "kafka://HOST:PORT/TOPIC"


def recognise(name: str, head: bytes) -> Recognised:
    """Return what a file holds by its first bytes: HEAD_BYTES of them, or all; the name counts only where they say nothing."""
    if starts_batch(head):
        return Recognised(Content.SEGMENT, Content.SEGMENT.value)
    packed = form_of(head)
    if packed is not None:
        return Recognised(Content.PACKED, f"an archive or a compressed file ({packed.value})")
    if b"\0" in head and first_batch(head) is not None:
        return Recognised(Content.SEGMENT, Content.SEGMENT.value)
    from kaudit.source.text_recognition import recognise_text  # noqa: PLC0415 - most inputs hold segments alone

    return (recognise_text(head) if head else None) or _no_evidence(name, head)


def _no_evidence(name: str, head: bytes) -> Recognised:
    """Return what a file is that holds neither batches nor lines of Kafka's logs and tools."""
    dump = describe_dump(name, head)
    if dump is not None:
        return Recognised(Content.RECORDS, dump)
    if not head:
        return Recognised(Content.EMPTY, Content.EMPTY.value)
    if _is_text(head):
        return Recognised(Content.TEXT, Content.TEXT.value, ("server", "client"))
    return Recognised(Content.BINARY, Content.BINARY.value)


def starts_batch(head: bytes) -> bool:
    """Return whether bytes begin like a batch of records, of any magic; a preallocated segment of zeros does not."""
    if len(head) < PREFIX_SIZE or head[0] or not any(head[:PREFIX_SIZE]) or head[MAGIC_OFFSET] > CURRENT_MAGIC:
        return False  # the top byte of a base offset below 2^56 is zero: text is not
    return plausible_length(head[MAGIC_OFFSET], batch_size(head) - LOG_OVERHEAD)


def first_batch(head: bytes) -> int | None:
    """Return where the first batch of a file begins, by its first bytes; None if they hold none.

    If the first is damaged, that is the next one in `head` that matches its CRC. A batch that ends beyond `head` counts as sound.
    """
    begins = starts_batch(head)
    if begins and batch_size(head) > len(head):
        return 0
    sound = first_sound(head)
    return 0 if sound is None and begins else sound


def _is_text(head: bytes) -> bool:
    """Return whether bytes are a text in UTF-8, UTF-16 or a code page of eight bits: they have few control characters."""
    data = head.replace(b"\0", b"") if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else head
    controls = sum(data.count(byte) for byte in _CONTROLS)
    return bool(data.strip()) and _TEXT_BYTES * controls <= len(data)


def foreign_layout(directory: Uri, files: Collection[str]) -> str | None:
    """Return whose a directory is that is no broker's log, by its name and those of its files, and how that is audited; None for others.

    Programs that speak Kafka's protocol store logs otherwise: Redpanda as `kafka/TOPIC/PARTITION_REVISION/OFFSET-TERM-v1.log`
    (docs.redpanda.com, rpk cluster logdirs describe), AutoMQ as objects `HASH/NAMESPACE/OBJECTID` (com.automq.stream.s3.metadata.ObjectUtils),
    WarpStream below a top-level prefix `warpstream` (docs.warpstream.com, Object Storage Configuration).
    """
    directory = directory.absolute()
    if any(is_copied_segment(directory, name) for name in files):
        return "segments that brokers copied to remote storage: give this location with --remote"
    if _REDPANDA_PARTITION.fullmatch(directory.last) and any(_REDPANDA.fullmatch(name) for name in files):
        topic = directory.parent.last or "TOPIC"
        return (
            f"a log of Redpanda, which stores batches in a format of its own: audit kafka://HOST:PORT/{topic} instead"
        )
    if any(_is_automq(directory.parent.last, name) for name in files):
        return f"objects of AutoMQ, which hold pieces of many partitions: audit {_TOPIC} instead"
    if directory.last == "warpstream":
        return f"objects of WarpStream, whose agents keep no logs: audit {_TOPIC} instead"
    return None


def _is_automq(prefix: str, name: str) -> bool:
    """Return whether an object's prefix is its number in hexadecimal digits, backwards."""
    if len(prefix) < _AUTOMQ_HASH_DIGITS or not name.isdecimal() or len(name) > 19:
        return False
    return f"{int(name):08x}"[::-1] == prefix
