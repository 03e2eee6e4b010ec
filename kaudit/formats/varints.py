"""Variable-length numbers as Kafka writes them (ByteUtils)."""

from typing import Final

_MORE: Final = 0x80


def unsigned_varint(value: int) -> bytes:
    """Encode a number that is not negative, seven bits a byte, the lowest first."""
    out = bytearray()
    while value >= _MORE:
        out.append(value & 0x7F | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Encode a signed number as a zigzag varint."""
    return unsigned_varint(value << 1 if value >= 0 else (-value << 1) - 1)
