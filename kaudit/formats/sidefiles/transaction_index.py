"""Transaction index of a segment, `%020d.txnindex`: its aborted transactions.

Source of the format: Kafka's TransactionIndex and AbortedTxn.
"""

import struct
from typing import Final

from msgspec import Struct

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Damage, Reason

ROW_BYTES: Final = 34
_VERSION: Final = 0
_ROW: Final = struct.Struct(">hqqqq")


class AbortedTxn(Struct, frozen=True):
    """One row, as written. `last_offset` is the abort marker's; `position` the row's byte in the file.

    `last_stable_offset` is the first offset of the oldest other open transaction, else the marker's plus one
    (before 2.2.1 and 2.3.0 computed differently, see RULES.md 1.4).
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    position: int


class TransactionIndex(Struct, frozen=True):
    """Rows in file order, and what gave none: a torn last row (readers ignore it) or rows of an unknown version."""

    rows: tuple[AbortedTxn, ...]
    damage: tuple[Damage, ...]


def parse_transaction_index(data: Buffer) -> TransactionIndex:
    """Decode a whole .txnindex. Never raises; order of the rows is not judged here."""
    whole = len(data) // ROW_BYTES * ROW_BYTES
    rows: list[AbortedTxn] = []
    damage: list[Damage] = []
    for index, (version, *fields) in enumerate(_ROW.iter_unpack(memoryview(data)[:whole])):
        position = index * ROW_BYTES
        if version == _VERSION:
            rows.append(AbortedTxn(fields[0], fields[1], fields[2], fields[3], position))
        else:
            damage.append(
                Damage(position, position + ROW_BYTES, Reason.VERSION, f"row version {version}, only 0 exists")
            )
    if whole != len(data):
        left = len(data) - whole
        damage.append(Damage(whole, len(data), Reason.TRUNCATED, f"{left} bytes of a row of {ROW_BYTES}"))
    return TransactionIndex(tuple(rows), tuple(damage))
