"""Batches whose CRC is right for content that is wrong."""

import struct

import crc32c

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import Depth, ScanOptions
from tests.logs import Log, data

NAME = "00000000000000000000.log"


def sealed(raw):
    """The batch with length and CRC made right for its bytes."""
    raw = bytearray(raw)
    raw[8:12] = struct.pack(">i", len(raw) - 12)
    raw[17:21] = struct.pack(">I", crc32c.crc32c(bytes(raw[21:])))
    return bytes(raw)


def edited(raw, at, layout, value):
    raw = bytearray(raw)
    struct.pack_into(layout, raw, at, value)
    return sealed(raw)


def written(tmp_path, change):
    """Three batches of one producer, the middle one changed; the bytes it begins at."""
    log = Log()
    batches = [log.append(data(5, 0, sequence, 3)).encode() for sequence in (0, 3, 6)]
    directory = tmp_path / "b" / "t-0"
    directory.mkdir(parents=True)
    (directory / NAME).write_bytes(batches[0] + change(batches[1]) + batches[2])
    return directory, len(batches[0])


def found(directory, depth=Depth.CRC):
    result = scan(ScanOptions([str(directory)], depth=depth), SilentProgress())
    return [(entry.code, entry.position, entry.offset, entry.last_offset) for entry in result.findings]
