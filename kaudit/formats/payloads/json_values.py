"""JSON values (RFC 8259) of keys and values, and one spelling for all texts of one value.

Numbers are equal if they have the same value: 1, 1.0 and 1e0. The order of an object's names does not matter, and of a name
that an object has twice the last value counts, as in the readers of Java and Python.
"""

from collections.abc import Sequence
from decimal import Decimal, DecimalException
from typing import Any

import msgspec

MISSING = object()
"""No value: a path that leads nowhere. null is a value."""
_NOT_JSON = (msgspec.DecodeError, DecimalException, RecursionError, ValueError)


class PayloadError(ValueError):
    """A key or a value that cannot be read as what it is said to be."""


def _decimal(text: str) -> Decimal:
    return Decimal(text)


_DECODER = msgspec.json.Decoder(float_hook=_decimal)


def decode_json(text: bytes | memoryview) -> Any:  # noqa: ANN401 - any JSON value; numbers with a fraction are Decimal
    """Return the value of a JSON text. Raises PayloadError where it is none."""
    try:
        return _DECODER.decode(text)
    except _NOT_JSON as error:
        raise PayloadError(f"no JSON: {error}") from error


def value_at(value: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 - as above
    """Return what lies at a path of names, and of numbers in arrays; MISSING where there is nothing."""
    for name in path:
        if isinstance(value, dict):
            value = value.get(name, MISSING)
        elif isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def canonical(value: Any) -> bytes:  # noqa: ANN401 - as above
    """Return the same bytes for equal values, and others for all others. Raises PayloadError where it is nested too deeply."""
    try:
        parts: list[bytes] = []
        _spell(value, parts)
        return b"".join(parts)
    except RecursionError as error:
        raise PayloadError("nested too deeply") from error


def _spell(value: Any, parts: list[bytes]) -> None:  # noqa: ANN401 - as above
    if isinstance(value, str):
        parts.append(_sized(b"s", value.encode("utf-8", "surrogatepass")))
    elif value is None or isinstance(value, bool):
        parts.append({None: b"n", True: b"t", False: b"f"}[value])
    elif isinstance(value, int | Decimal | float):
        parts.append(_sized(b"d", _number(value)))
    elif isinstance(value, bytes):
        parts.append(_sized(b"b", value))
    elif isinstance(value, dict):
        parts.append(b"o%d:" % len(value))
        for name in sorted(value):
            _spell(name, parts)
            _spell(value[name], parts)
    else:
        parts.append(b"a%d:" % len(value))
        for each in value:
            _spell(each, parts)


def _sized(kind: bytes, content: bytes) -> bytes:
    return b"%b%d:%b" % (kind, len(content), content)


def _number(value: float | Decimal) -> bytes:
    """Digits without zeros at the end, and the exponent: never written out, which 1e999999999 would not survive."""
    if isinstance(value, int) and value % 10:
        return b"%de0" % value  # no reader makes one of more digits than Python writes
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        return str(value).encode()  # Avro's NaN and infinities
    text = "".join(map(str, digits))
    kept = text.rstrip("0")
    if not kept:
        return b"0"
    return f"{'-' * sign}{kept}e{exponent + len(text) - len(kept)}".encode()
