"""A bounds-checked cursor over Kafka's primitive types, for formats that need no speed.

Source of the encodings: Kafka's org.apache.kafka.common.protocol.types.Type and ByteUtils: big-endian integers,
int16-length strings with -1 for null, and the flexible forms with unsigned varints of length + 1, 0 for null.

Variable-length numbers as Kafka writes them (ByteUtils).
"""

import struct
from typing import Final

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.wire_format import WireFormat

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


def unzigzag(raw: int) -> int:
    """Return the signed number that a zigzag one stands for."""
    return (raw >> 1) ^ -(raw & 1)


Buffer = bytes | bytearray | memoryview

NULL_LENGTH: Final = -1
_MAX_VARINT_BYTES: Final = {32: 5, 64: 10}
"""By the bits of a number."""

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class Reader:
    """Reads forward through one buffer, up to byte `end`; every method raises WireError where that comes too early.

    `position` is the next byte to read. Only what is returned is copied, and nothing larger than the buffer is ever allocated.
    """

    __slots__ = ("_data", "_end", "position")

    def __init__(self, data: Buffer, position: int = 0, end: int | None = None) -> None:
        self._data = data
        self._end = len(data) if end is None else end
        self.position = position

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return self._end - self.position

    def _take(self, layout: struct.Struct, what: str) -> int:
        start = self.position
        if layout.size > self._end - start:
            raise WireError(start, Reason.TRUNCATED, f"{what} needs {layout.size} bytes, {self.remaining} are left")
        self.position = start + layout.size
        return int(layout.unpack_from(self._data, start)[0])

    def int8(self, what: str) -> int:
        """-128..127."""
        return self._take(_INT8, what)

    def int16(self, what: str) -> int:
        """-2^15..2^15-1."""
        return self._take(_INT16, what)

    def int32(self, what: str) -> int:
        """-2^31..2^31-1."""
        return self._take(_INT32, what)

    def int64(self, what: str) -> int:
        """-2^63..2^63-1."""
        return self._take(_INT64, what)

    def fields(self, structure: WireFormat) -> list[int]:
        """All fields of a structure of fixed size, in order."""
        read = {"int8": self.int8, "int16": self.int16, "int32": self.int32, "int64": self.int64}
        return [read[field.type](field.name.replace("_", " ")) for field in structure.fields]

    def skip(self, size: int, what: str) -> int:
        """Pass `size` bytes and return where they begin."""
        if not 0 <= size <= self.remaining:
            raise WireError(
                self.position, Reason.TRUNCATED, f"{what} of {size} bytes, {max(self.remaining, 0)} are left"
            )
        self.position += size
        return self.position - size

    def raw(self, size: int, what: str) -> bytes:
        """Exactly `size` bytes."""
        start = self.skip(size, what)
        return bytes(self._data[start : self.position])

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.raw(self.remaining, "rest")

    def _varint(self, bits: int, what: str) -> int:
        """Base 128, least significant group first; may be larger than `bits` by what its last byte has too much."""
        start = self.position
        value = 0
        for index in range(_MAX_VARINT_BYTES[bits]):
            if self.position >= self._end:
                raise WireError(start, Reason.TRUNCATED, f"{what}: varint runs over the end")
            byte = self._data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise WireError(start, Reason.VARINT, f"{what}: varint beyond {bits} bits")

    def unsigned_varint(self, what: str) -> int:
        """0..2^32-1 in at most five bytes."""
        start = self.position
        value = self._varint(32, what)
        if value >> 32:
            raise WireError(start, Reason.VARINT, f"{what}: varint beyond 32 bits")
        return value

    def unsigned_varlong(self, what: str) -> int:
        """0..2^64-1 in at most ten bytes, of which what is beyond 64 bits is dropped, as Avro's and Protobuf's readers do."""
        return self._varint(64, what) & 0xFFFFFFFFFFFFFFFF

    def varint(self, what: str) -> int:
        """-2^31..2^31-1, zigzag."""
        return unzigzag(self.unsigned_varint(what))

    def varlong(self, what: str) -> int:
        """-2^63..2^63-1, zigzag."""
        return unzigzag(self.unsigned_varlong(what))

    def _text(self, raw: bytes, start: int, what: str) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise WireError(start, Reason.TEXT, f"{what} is not UTF-8: {raw[:40]!r}") from None

    def nullable_string(self, what: str) -> str | None:
        """int16 length, -1 for null, then UTF-8."""
        start = self.position
        size = self.int16(what)
        if size == NULL_LENGTH:
            return None
        if size < NULL_LENGTH:
            raise WireError(start, Reason.LENGTH, f"{what} has length {size}")
        return self._text(self.raw(size, what), start, what)

    def string(self, what: str) -> str:
        """As nullable_string, null being an error."""
        start = self.position
        value = self.nullable_string(what)
        if value is None:
            raise WireError(start, Reason.LENGTH, f"{what} must not be null")
        return value

    def compact_nullable_string(self, what: str) -> str | None:
        """Unsigned varint of length + 1, 0 for null, then UTF-8."""
        start = self.position
        size = self.unsigned_varint(what)
        return None if size == 0 else self._text(self.raw(size - 1, what), start, what)

    def compact_string(self, what: str) -> str:
        """As compact_nullable_string, null being an error."""
        start = self.position
        value = self.compact_nullable_string(what)
        if value is None:
            raise WireError(start, Reason.LENGTH, f"{what} must not be null")
        return value

    def array_count(self, what: str, element_size: int) -> int | None:
        """int32 element count, -1 for null; `element_size` is the least an element takes, so that counts are bounded."""
        start = self.position
        count = self.int32(what)
        return None if count == NULL_LENGTH else self._bounded(count, element_size, start, what)

    def compact_array_count(self, what: str, element_size: int) -> int | None:
        """Unsigned varint of count + 1, 0 for null; bounded as array_count."""
        start = self.position
        count = self.unsigned_varint(what)
        return None if count == 0 else self._bounded(count - 1, element_size, start, what)

    def _bounded(self, count: int, element_size: int, start: int, what: str) -> int:
        if count < 0 or count * element_size > self.remaining:
            raise WireError(start, Reason.COUNT, f"{what} has {count} elements, {self.remaining} bytes are left")
        return count

    def tagged_fields(self) -> dict[int, bytes]:
        """Read the tagged fields that end a flexible structure: tag (ascending) to its raw bytes."""
        fields: dict[int, bytes] = {}
        previous = -1
        for _ in range(self._bounded(self.unsigned_varint("tagged field count"), 2, self.position, "tagged fields")):
            start = self.position
            tag = self.unsigned_varint("tag")
            if tag <= previous:
                raise WireError(start, Reason.ORDER, f"tag {tag} after tag {previous}")
            fields[tag] = self.raw(self.unsigned_varint("tagged field size"), f"tagged field {tag}")
            previous = tag
        return fields

    def expect_end(self) -> None:
        """Raise WireError if bytes are left."""
        if self.remaining:
            raise WireError(self.position, Reason.TRAILING, f"{self.remaining} bytes left over")
