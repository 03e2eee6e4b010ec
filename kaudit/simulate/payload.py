"""What records hold: enough to identify, in every copy of a log, which record of which application it is."""

from msgspec import Struct

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
