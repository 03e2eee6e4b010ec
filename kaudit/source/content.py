"""The kinds of evidence that people hand over, and of what is none."""

import enum
from typing import Final

from msgspec import Struct

from kaudit.model.application_logs import Origin

HEAD_BYTES: Final = 1 << 16
"""Bytes of a file that are enough to recognise it."""


class Content(enum.Enum):
    """What a file holds."""

    SEGMENT = "batches of a log"
    DUMP_TEXT = "output of kafka-dump-log"
    APPLICATION_LOG = "a log of an application"
    OTHER_LOG = "a log of another program"
    RECORDS = "records without their batches"
    PACKED = "an archive or a compressed file"
    EMPTY = "an empty file"
    TEXT = "text"
    BINARY = "binary data"


class Recognised(Struct, frozen=True):
    """What a file holds. `detail` says it in words where `content` says too little.

    `origins` are those whose messages an application's log may hold: more than one where the first bytes do not tell.
    """

    content: Content
    detail: str
    origins: tuple[Origin, ...] = ()
