"""A record's content as one number: what an application meant to write, whatever batch and producer carries it."""

import struct

from kaudit.formats.log.records import Record

_LENGTH = struct.Struct(">i")


def content_of(record: Record) -> int:
    """Return 64 bits of key, value and headers; timestamp, offset and sequence are no content."""
    import xxhash  # noqa: PLC0415 - a scan of headers needs none of it

    digest = xxhash.xxh3_64()
    for part in (record.key, record.value, *(part for header in record.headers for part in header)):
        digest.update(_LENGTH.pack(-1 if part is None else len(part)))
        digest.update(part or b"")
    return int(digest.intdigest())
