"""The attempt most files are made of, read and checked in one go: one batch, with all its fields and maybe its bytes.

What it cannot be - several batches, a field missing or out of range - is for attempts.py, which has the words.
"""

from typing import Annotated

import msgspec

from kaudit.replay.attempts import Attempt

_Int16 = Annotated[int, msgspec.Meta(ge=-(2**15), le=2**15 - 1)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Natural16 = Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]
_Natural32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Natural64 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_NO_INDEX = -1


class PlainProduce(msgspec.Struct, tag_field="op", tag="produce", gc=False):
    """A produce attempt whose fields are all there, with types and ranges as attempts.py checks them."""

    topic: str
    partition: _Natural32
    producer_id: _Int64
    producer_epoch: _Int16
    base_sequence: _Int32
    record_count: _Int32
    timestamp: _Int64
    at: _Int64
    is_transactional: bool = False
    transactional_id: str | None = None
    acks: _Int16 = -1
    api_version: _Natural16 = 8
    index: _Natural64 = _NO_INDEX
    records_hex: str | msgspec.UnsetType = msgspec.UNSET
    batches: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    def as_attempt(self) -> Attempt:
        """Return it as attempts.py would have read it."""
        attempt = msgspec.structs.asdict(self)
        attempt["op"] = "produce"
        del attempt["batches"]
        if self.records_hex is msgspec.UNSET:
            del attempt["records_hex"]
        return attempt


_decode = msgspec.json.Decoder(PlainProduce).decode


def read_plain(line: bytes, number: int) -> PlainProduce | None:
    """Return the attempt of a line, None if it is of any other kind or none; without an index it gets `number`."""
    if b'"produce"' not in line:
        return None
    try:
        plain = _decode(line)
        if plain.records_hex is not msgspec.UNSET:
            bytes.fromhex(plain.records_hex)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if plain.batches is not msgspec.UNSET:
        return None
    if plain.index == _NO_INDEX:
        plain.index = number
    return plain
