"""Transaction index of a segment, `%020d.txnindex`: its aborted transactions.

Source of the format: Kafka's TransactionIndex and AbortedTxn.
"""

from typing import Final, NamedTuple

from msgspec import Struct

from kaudit.formats.byte_reader import Buffer
from kaudit.formats.errors import Damage, Reason
from kaudit.formats.wire_format import WireFormat
from kaudit.model.dtypes import Int16, Int64


class AbortedTxnRow(NamedTuple):
    """One row as stored (AbortedTxn)."""

    version: Int16
    producer_id: Int64
    first_offset: Int64
    last_offset: Int64
    last_stable_offset: Int64


ENTRY: Final = WireFormat(AbortedTxnRow)
VERSION: Final = 0
"""The only version there ever was."""
_ENTRY: Final = ENTRY.struct()


class AbortedTxn(Struct, frozen=True):
    """One row, as written. `last_offset` is the abort marker's; `position` the row's byte in the file.

    `last_stable_offset` is the first offset of the oldest other open transaction, else the marker's plus one
    (brokers before 2.2.1, and 2.3.0, computed it differently: KAFKA-7866).
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
    """Decode a whole .txnindex. Never raises; the order of the rows is not checked here."""
    whole = len(data) // ENTRY.size * ENTRY.size
    rows: list[AbortedTxn] = []
    damage: list[Damage] = []
    for index, (version, *fields) in enumerate(_ENTRY.iter_unpack(memoryview(data)[:whole])):
        position = index * ENTRY.size
        if version == VERSION:
            rows.append(AbortedTxn(fields[0], fields[1], fields[2], fields[3], position))
        else:
            damage.append(
                Damage(position, position + ENTRY.size, Reason.VERSION, f"row version {version}, only 0 exists")
            )
    if whole != len(data):
        left = len(data) - whole
        damage.append(Damage(whole, len(data), Reason.TRUNCATED, f"{left} bytes of a row of {ENTRY.size}"))
    return TransactionIndex(tuple(rows), tuple(damage))
