"""The attempts most files are made of, read and checked in one go: one batch a request, and a transaction's requests.

What they cannot be - several batches, a field missing or out of range - is for attempts.py, which has the words.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Struct, UnsetType

from kaudit.broker.attempts.attempt import Attempt

_Int16 = Annotated[int, msgspec.Meta(ge=-(2**15), le=2**15 - 1)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Natural7 = Annotated[int, msgspec.Meta(ge=0, le=2**7 - 1)]
_Natural16 = Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]
_Natural32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Natural64 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_NO_INDEX = -1


class PlainProduce(Struct, tag_field="op", tag="produce", gc=False):
    """A produce attempt whose fields are all there, with types and ranges as attempts.py checks them."""

    topic: str
    partition: _Natural32
    producer_id: _Int64
    producer_epoch: _Int16
    base_sequence: _Int32
    record_count: _Int32
    at: _Int64 | None = None
    timestamp: _Int64 | None = None
    is_transactional: bool = False
    transactional_id: str | None = None
    acks: _Int16 = -1
    api_version: _Natural16 = 8
    index: _Natural64 = _NO_INDEX
    records_hex: str | UnsetType = UNSET
    batches: msgspec.Raw | UnsetType = UNSET

    def as_attempt(self) -> Attempt:
        """Return it as attempts.py would have read it."""
        attempt = msgspec.structs.asdict(self)
        attempt["op"] = "produce"
        del attempt["batches"]
        if self.records_hex is UNSET:
            del attempt["records_hex"]
        return attempt


class _Request(Struct, tag_field="op", gc=False):
    def as_attempt(self) -> Attempt:
        """Return it as attempts.py would have read it."""
        return msgspec.structs.asdict(self) | {"op": self.__struct_config__.tag}


class PlainInitProducerId(_Request, tag="init_producer_id", gc=False):
    """InitProducerId: None where the client says nothing."""

    topic: str
    partition: _Natural32
    at: _Int64 | None = None
    transactional_id: str | None = None
    producer_id: _Int64 | None = None
    producer_epoch: _Int16 | None = None
    timeout_ms: _Int32 = 60_000
    granted_producer_id: _Int64 | None = None
    api_version: _Natural16 = 0
    index: _Natural64 = _NO_INDEX


class PlainAddPartitions(_Request, tag="add_partitions", gc=False):
    """AddPartitionsToTxn of the partition it is about."""

    topic: str
    partition: _Natural32
    transactional_id: str
    producer_id: _Int64
    producer_epoch: _Int16
    at: _Int64 | None = None
    api_version: _Natural16 = 0
    index: _Natural64 = _NO_INDEX


class PlainEndTxn(_Request, tag="end_txn", gc=False):
    """EndTxn."""

    topic: str
    partition: _Natural32
    transactional_id: str
    producer_id: _Int64
    producer_epoch: _Int16
    commit: bool
    at: _Int64 | None = None
    granted_producer_id: _Int64 | None = None
    api_version: _Natural16 = 0
    index: _Natural64 = _NO_INDEX


class PlainWriteMarker(_Request, tag="write_marker", gc=False):
    """WriteTxnMarkers of one marker."""

    topic: str
    partition: _Natural32
    producer_id: _Int64
    producer_epoch: _Int16
    commit: bool
    coordinator_epoch: _Int32
    at: _Int64 | None = None
    transaction_version: _Natural7 = 0
    api_version: _Natural16 = 0
    index: _Natural64 = _NO_INDEX


PlainRequest = PlainInitProducerId | PlainAddPartitions | PlainEndTxn | PlainWriteMarker
"""What a transaction's requests are read as, whoever reads them."""
Plain = PlainProduce | PlainRequest

REQUEST_OPS = ("init_producer_id", "add_partitions", "end_txn", "write_marker")

_decode = msgspec.json.Decoder(Plain).decode


def read_plain(line: bytes, number: int) -> Plain | None:
    """Return the attempt of a line, None if it is of any other kind or none; without an index it gets `number`.

    Whether records_hex is hexadecimal is left to whoever reads it.
    """
    try:
        plain: Plain = _decode(line)
    except (ValueError, RecursionError):
        return None
    if type(plain) is PlainProduce and plain.batches is not UNSET:
        return None
    if plain.index == _NO_INDEX:
        plain.index = number
    return plain


def as_request(attempt: Attempt) -> PlainRequest:
    """Return a checked attempt, one of REQUEST_OPS, as read_plain would have read it."""
    return msgspec.convert(attempt, PlainRequest)  # type: ignore[no-any-return]
