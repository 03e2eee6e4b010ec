"""Errors as brokers, clients and exceptions name them: the table in protocol_errors.toml beside this module.

Source of codes, names and classes: org.apache.kafka.common.protocol.Errors; of other names: the error tables of the clients.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import msgspec

from kaudit.formats.toml import packaged_toml

_LOCAL: Final = re.compile(r"(?:^|[.:]|ERR_|Local)_[A-Za-z]")
"""How librdkafka and its bindings begin the names of its own errors."""
_DESCRIBED: Final = "Local: "
"""How librdkafka describes its own errors."""
_PREFIX: Final = re.compile(r"^(?:RD_KAFKA_RESP_ERR_|ERR_|Err(?=[A-Z])|Local_)")
_SUFFIXES: Final = ("exception", "error")


class ProtocolError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One error. `code` is the number in the protocol (-1 to 136 in 4.4), or in the client that `program` names.

    `program` is None for errors of the protocol. `exception` is the class of Java. The texts are sentences; `brokers` says
    which releases send it to producers, and is empty where that is of no interest, as are `clients` and `advice`.
    """

    name: str
    meaning: str
    code: int | None = None
    program: str | None = None
    exception: str | None = None
    retriable: bool = False
    also: tuple[str, ...] = ()
    brokers: str = ""
    clients: str = ""
    advice: str = ""

    @property
    def class_name(self) -> str | None:
        """The class without its package."""
        return None if self.exception is None else self.exception.rpartition(".")[2]

    @property
    def names(self) -> Sequence[str]:
        """Every name that differs by more than its writing, the protocol's first."""
        return tuple(filter(None, (self.name, self.class_name, *self.also)))


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    brief: Sequence[ProtocolError]
    errors: Sequence[ProtocolError]


@cache
def protocol_errors() -> Sequence[ProtocolError]:
    """Return all errors: those of the protocol by code, then those of clients."""
    table = msgspec.convert(packaged_toml("kaudit.formats", "protocol_errors.toml"), _Table)
    of_clients = [error for error in table.errors if error.program is not None]
    of_protocol = [error for error in (*table.brief, *table.errors) if error.program is None]
    return (*sorted(of_protocol, key=lambda error: error.code or 0), *of_clients)


def error_key(name: str) -> str:
    """Return a name as it is compared: without package, separators, case, and what languages put around it.

    `OUT_OF_ORDER_SEQUENCE_NUMBER`, `kerr.OutOfOrderSequenceNumber`, `kafka.errors.OutOfOrderSequenceNumberError`,
    `ErrOutOfOrderSequenceNumber` and `RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER` have one key. Errors of a client's own
    keep the underscore that librdkafka begins them with: `_FENCED` is not `fenced`. Descriptions, `Local: Queue full`, stay.
    """
    if name.startswith(_DESCRIBED):
        return name.lower()
    own = _LOCAL.search(name) is not None
    key = re.sub(r"[^a-z0-9]", "", _PREFIX.sub("", re.split(r"[.:]", name.strip().rstrip(".:"))[-1]).lower())
    after = next((suffix for suffix in _SUFFIXES if key.endswith(suffix) and key != suffix), "")
    return ("_" if own else "") + key.removesuffix(after)


@cache
def _by_key() -> Mapping[str, ProtocolError]:
    found: dict[str, ProtocolError] = {}
    for error in protocol_errors():
        for name in error.names:
            found.setdefault(error_key(name), error)
    return found


def error_named(name: str) -> ProtocolError | None:
    """Return the error of a name of the protocol, of an exception's class, or of a client's name for it; None if unknown."""
    return _by_key().get(error_key(name))


def error_numbered(code: int) -> ProtocolError | None:
    """Return the error of a code: of the protocol, else the first client's that has it; None if there is none."""
    return next((error for error in protocol_errors() if error.code == code), None)


def described_in(text: str) -> Sequence[ProtocolError]:
    """Return the errors of librdkafka itself that a text describes in its words: `Local: Message timed out`."""
    own = [error for error in protocol_errors() if error.program is not None]
    return [error for error in own if any(name.startswith(_DESCRIBED) and name in text for name in error.names)]
