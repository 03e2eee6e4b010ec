"""What can be wrong with a ZooKeeper file while the rest of it is still read."""

from dataclasses import dataclass
from enum import StrEnum


class DamageKind(StrEnum):
    """Why bytes of a ZooKeeper file were not used."""

    TORN_TAIL = "torn-tail"  # the last transaction or the file ends too early
    CHECKSUM = "checksum"  # the Adler-32 does not hold
    FRAMING = "framing"  # lengths or end marks contradict each other
    UNPARSABLE = "unparsable"  # the checksum holds, the record inside does not decode
    AFTER_END = "after-end"  # bytes after the zeros that should end the file
    NOT_ZOOKEEPER = "not-zookeeper"  # the file as a whole is something else
    UNREADABLE = "unreadable"  # the operating system refused
    CONFLICT = "conflict"  # two files tell different things about one zxid


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage at byte `position` of a file, `detail` a sentence for people. `size` is how many bytes were not used."""

    kind: DamageKind
    position: int
    size: int
    detail: str
