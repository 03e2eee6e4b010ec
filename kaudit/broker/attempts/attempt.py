"""Reading attempts: one JSON object a line (CONTRACT.md section 4), checked before anything is answered."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

Attempt = dict[str, Any]
"""A checked attempt: the fields its op needs are there, with the right types and ranges."""

_INT16 = (-(2**15), 2**15 - 1)
_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_OFFSET = (0, 2**63 - 1)
_OFFSET_OF_BATCH = (0, 2**62)
"""Leaves room for what follows."""
_NO_OFFSET_OR_OFFSET = (-1, 2**63 - 1)
_DURATION = (0, 2**63 - 1)
_VERSION = (0, 2**15 - 1)

LEADER_CHANGES = ("clean", "kill9", "unclean", "paused")


class AttemptError(ValueError):
    """A line that is no attempt: `line` counts from 1, `expected` says what should have been there."""

    def __init__(self, line: int, expected: str) -> None:
        self.line = line
        self.expected = expected
        super().__init__(f"line {line}: expected {expected}")


class _MismatchError(ValueError):
    """What was expected, raised inside one line."""


class _Field(NamedTuple):
    name: str
    check: Callable[[str, Any], None]
    required: bool = False
    nullable: bool = False


def _integer(low: int, high: int) -> Callable[[str, Any], None]:
    def check(name: str, value: object) -> None:
        if type(value) is not int or not low <= value <= high:
            raise _MismatchError(f"{name} to be an integer from {low} to {high}, not {_shown(value)}")

    return check


def _boolean(name: str, value: object) -> None:
    if type(value) is not bool:
        raise _MismatchError(f"{name} to be true or false, not {_shown(value)}")


def _string(name: str, value: object) -> None:
    if type(value) is not str:
        raise _MismatchError(f"{name} to be a string, not {_shown(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _MismatchError(f"{name} to be a string without half a surrogate pair, not {_shown(value)}") from None


def _hex(name: str, value: object) -> None:
    _string(name, value)
    try:
        bytes.fromhex(str(value))
    except ValueError:
        raise _MismatchError(f"{name} to be hexadecimal digits, two a byte, not {_shown(value)}") from None


def _mapping(name: str, value: object) -> None:
    if type(value) is not dict:
        raise _MismatchError(f"{name} to be an object, not {_shown(value)}")


def _one_of(*names: str) -> Callable[[str, Any], None]:
    def check(name: str, value: object) -> None:
        if value not in names:
            raise _MismatchError(f"{name} to be one of {', '.join(names)}, not {_shown(value)}")

    return check


def _strings(name: str, value: object) -> None:
    if type(value) is not list or not all(type(item) is str for item in value):
        raise _MismatchError(f"{name} to be a list of strings, not {_shown(value)}")


def _objects(fields: tuple[_Field, ...]) -> Callable[[str, Any], None]:
    def check(name: str, value: object) -> None:
        if type(value) is not list:
            raise _MismatchError(f"{name} to be a list of objects, not {_shown(value)}")
        for number, item in enumerate(value):
            _mapping(f"{name}[{number}]", item)
            _check(item, fields, f"{name}[{number}].")

    return check


def _object(fields: tuple[_Field, ...]) -> Callable[[str, Any], None]:
    def check(name: str, value: object) -> None:
        _mapping(name, value)
        _check(value, fields, f"{name}.")  # type: ignore[arg-type]

    return check


_SHOWN = 60


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_PARTITION = (
    _Field("topic", _string, required=True),
    _Field("partition", _integer(0, _INT32[1]), required=True),
    _Field("at", _integer(*_INT64), nullable=True),
)
_PRODUCER = (
    _Field("producer_id", _integer(*_INT64), required=True),
    _Field("producer_epoch", _integer(*_INT16), required=True),
)
_API = _Field("api_version", _integer(*_VERSION))
_BATCH_FIELDS = (
    *_PRODUCER,
    _Field("base_sequence", _integer(*_INT32), required=True),
    _Field("record_count", _integer(*_INT32), required=True),
)
_REQUEST_FIELDS = (
    _Field("is_transactional", _boolean),
    _Field("transactional_id", _string, nullable=True),
    _Field("acks", _integer(*_INT16)),
    _API,
    _Field("timestamp", _integer(*_INT64), nullable=True),
)
_SENT = (_Field("records_hex", _hex),)
_OPTIONAL_BATCH_FIELDS = tuple(field._replace(required=False, nullable=True) for field in _BATCH_FIELDS)
_PRODUCE_BYTES = (*_PARTITION, *_OPTIONAL_BATCH_FIELDS, *_REQUEST_FIELDS, *_SENT)
_PRODUCE_FIELDS = (*_PARTITION, *_BATCH_FIELDS, *_REQUEST_FIELDS)
_SUB_BATCH_BYTES = (*_OPTIONAL_BATCH_FIELDS, *_REQUEST_FIELDS, *_SENT)
_SUB_BATCH_FIELDS = (*_BATCH_FIELDS, *_REQUEST_FIELDS)
_FOUND = _objects(
    (
        _Field("base_offset", _integer(*_OFFSET_OF_BATCH), required=True),
        *_PRODUCER,
        _Field("base_sequence", _integer(*_INT32)),
        _Field("record_count", _integer(1, _INT32[1])),
        _Field("is_transactional", _boolean),
        _Field("timestamp", _integer(*_INT64), nullable=True),
        _Field("commit", _boolean),
        _Field("coordinator_epoch", _integer(*_INT32)),
    )
)
_TAMPER = _object(
    (
        _Field("truncated_to_offset", _integer(*_OFFSET), nullable=True),
        _Field("corrupted_batch_offset", _integer(*_OFFSET), nullable=True),
        _Field("deleted", _strings),
        _Field("corrupted", _strings),
    )
)
_FIELDS: dict[str, tuple[_Field, ...]] = {
    "broker": (_Field("broker_version", _string, required=True), _Field("config", _mapping)),
    "topic": (*_PARTITION, _Field("config", _mapping)),
    "init_producer_id": (
        *_PARTITION,
        _Field("transactional_id", _string, nullable=True),
        _Field("producer_id", _integer(*_INT64), nullable=True),
        _Field("producer_epoch", _integer(*_INT16), nullable=True),
        _Field("timeout_ms", _integer(*_INT32)),
        _Field("granted_producer_id", _integer(*_INT64), nullable=True),
        _API,
    ),
    "add_partitions": (*_PARTITION, _Field("transactional_id", _string, required=True), *_PRODUCER, _API),
    "end_txn": (
        *_PARTITION,
        _Field("transactional_id", _string, required=True),
        *_PRODUCER,
        _Field("commit", _boolean, required=True),
        _Field("granted_producer_id", _integer(*_INT64), nullable=True),
        _API,
    ),
    "write_marker": (
        *_PARTITION,
        *_PRODUCER,
        _Field("commit", _boolean, required=True),
        _Field("coordinator_epoch", _integer(*_INT32), required=True),
        _Field("transaction_version", _integer(0, 127)),
        _API,
    ),
    "delete_records": (*_PARTITION, _Field("before_offset", _integer(*_NO_OFFSET_OR_OFFSET), required=True)),
    "restart": (
        *_PARTITION,
        _Field("clean", _boolean, required=True),
        _Field("found_on_disk", _FOUND),
        _Field("tamper", _TAMPER, nullable=True),
    ),
    "leader_change": (
        *_PARTITION,
        _Field("how", _one_of(*LEADER_CHANGES), required=True),
        _Field("lost_from_offset", _integer(*_OFFSET), nullable=True),
        _Field("old_leader", _integer(*_INT32), nullable=True),
        _Field("new_leader", _integer(*_INT32), nullable=True),
        _Field("via", _string, nullable=True),
    ),
    "follower_restart": (
        *_PARTITION,
        _Field("clean", _boolean),
        _Field("replica", _integer(*_INT32), nullable=True),
        _Field("log_end_offset", _integer(*_OFFSET), nullable=True),
    ),
    "wait": (*_PARTITION, _Field("ms", _integer(*_DURATION), required=True)),
    "describe": _PARTITION,
}
OPS = ("produce", *_FIELDS)
_check_index = _integer(0, _INT64[1])


def _check(item: Attempt, fields: tuple[_Field, ...], prefix: str = "") -> None:
    for name, check, required, nullable in fields:
        if name not in item:
            if required:
                raise _MismatchError(f"the field {prefix}{name}")
            continue
        value = item[name]
        if value is None:
            if not nullable:
                raise _MismatchError(f"{prefix}{name} not to be null")
            continue
        check(prefix + name, value)


def _check_produce(attempt: Attempt) -> None:
    if "batches" in attempt:
        _check(attempt, (*_PARTITION, *_REQUEST_FIELDS))
        batches = attempt["batches"]
        _objects(())("batches", batches)
        for number, batch in enumerate(batches):
            _check(batch, _SUB_BATCH_BYTES if "records_hex" in batch else _SUB_BATCH_FIELDS, f"batches[{number}].")
    else:
        _check(attempt, _PRODUCE_BYTES if "records_hex" in attempt else _PRODUCE_FIELDS)


def check_attempt(attempt: object) -> Attempt:
    """Return `attempt` if it is one; raises ValueError with what was expected."""
    if type(attempt) is not dict:
        raise _MismatchError("a JSON object")
    op = attempt.get("op")
    index = attempt.get("index", 0)
    if type(index) is not int or not 0 <= index <= _INT64[1]:
        _check_index("index", index)
    if op == "produce":
        _check_produce(attempt)
    elif type(op) is str and op in _FIELDS:
        _check(attempt, _FIELDS[op])
    else:
        raise _MismatchError(f"op to be one of {', '.join(OPS)}, not {_shown(op)}")
    return attempt


def parse_attempt(line: str | bytes, number: int) -> Attempt | None:
    """Return the attempt of one line, None if the line is empty; without an index of its own it gets `number`.

    Raises ValueError, saying what was expected.
    """
    try:
        attempt = check_attempt(_parse(line))
    except _MismatchError:
        raise
    except (ValueError, RecursionError) as error:
        if not line.strip():
            return None
        raise ValueError(f"one JSON object, {_problem(error)}") from None
    if "index" not in attempt:
        attempt["index"] = number
    return attempt


def read_attempts(lines: Iterable[str | bytes]) -> Iterator[Attempt]:
    """Yield the attempts of a file. Raises AttemptError for the first line that is not one."""
    number = 0
    for line_number, line in enumerate(lines, 1):
        try:
            attempt = parse_attempt(line, number)
        except ValueError as error:
            raise AttemptError(line_number, str(error)) from None
        if attempt is not None:
            number += 1
            yield attempt


_decode = msgspec.json.Decoder().decode


def _parse(line: str | bytes) -> object:
    """Parse one line, five times as fast as the standard library does; that is asked where this one is not content.

    It has words for what is wrong, in columns of characters, and takes a few values more.
    """
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeError):
        text = line if isinstance(line, str) else line.decode("utf-8")
        return json.loads(text.rstrip())


def _problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"which breaks at column {error.colno}: {error.msg}"
    if isinstance(error, UnicodeDecodeError):
        return f"which is not UTF-8 at byte {error.start}"
    return "which is nested too deep" if isinstance(error, RecursionError) else str(error)
