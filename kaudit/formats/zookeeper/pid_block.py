"""The value of ZooKeeper's `/latest_producer_id_block`: the block of producer ids granted last.

    {"version":1,"broker":35,"block_start":"1000","block_end":"1999"}      both ends inclusive, longs as strings

Source: ProducerIdManager.generateProducerIdBlockJson, ProducerIdBlockZNode. Brokers read broker and both ends and
never read `version` (recorded: a value of version 2 is continued by 1.1.1, 2.0.1 and 2.8.2).
"""

import json

from msgspec import Struct

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.zookeeper.znode import MAX_KEPT_VALUE

PRODUCER_ID_BLOCK_ZNODE = "/latest_producer_id_block"
VALUE_VERSION = 1

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_MIN_INT32, _MAX_INT32 = -(2**31), 2**31 - 1


class PidBlockValue(Struct, frozen=True):
    """A block as written in the znode: ids `start`..`end` inclusive (int64), handed to `broker` (int32).

    `value_version` is the JSON's own version, None when it has none. `oddities` are sentences about what a broker
    would never have written, although it reads it.
    """

    broker: int
    start: int
    end: int
    value_version: int | None
    oddities: tuple[str, ...] = ()


def parse_pid_block(data: bytes) -> PidBlockValue:
    """Parse a znode's value. Raises WireError, at byte 0, when a broker could not continue from it either."""
    if len(data) > MAX_KEPT_VALUE:
        raise WireError(0, Reason.LIMIT, f"a value of more than {MAX_KEPT_VALUE} bytes")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise WireError(0, Reason.TEXT, "the value is not JSON") from error
    if not isinstance(fields, dict):
        raise WireError(0, Reason.VALUE, "the value is not a JSON object")
    return pid_block_of(fields)


def pid_block_of(fields: dict[str, object]) -> PidBlockValue:
    """Take a block from a decoded JSON object. Raises WireError as parse_pid_block does."""
    oddities: list[str] = []
    version = fields.get("version")
    if type(version) is not int:
        oddities.append("the value has no integer field version")
        version = None
    elif version != VALUE_VERSION:
        oddities.append(f"the value has version {version}, brokers write {VALUE_VERSION}")
    broker = fields.get("broker")
    if type(broker) is not int or not _MIN_INT32 <= broker <= _MAX_INT32:
        raise WireError(0, Reason.VALUE, "the value has no 32-bit integer field broker")
    start, end = _end_of(fields, "block_start", oddities), _end_of(fields, "block_end", oddities)
    return PidBlockValue(broker, start, end, version, tuple(oddities))


def _end_of(fields: dict[str, object], name: str, oddities: list[str]) -> int:
    raw = fields.get(name)
    if type(raw) is int:
        # Brokers insist on a string and fail; the meaning is plain enough to go on with.
        oddities.append(f"{name} is a number, brokers read and write a string")
        value = raw
    elif isinstance(raw, str) and raw.isascii() and _is_long(raw):
        value = int(raw)
    else:
        raise WireError(0, Reason.VALUE, f"the value has no field {name} holding a 64-bit integer")
    if not _MIN_INT64 <= value <= _MAX_INT64:
        raise WireError(0, Reason.VALUE, f"{name} {value} is not a 64-bit integer")
    return value


def _is_long(text: str) -> bool:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    # 2^63 has 19 digits; leading zeros are legal in Java too, a megabyte of them is not worth reading.
    return digits.isdecimal() and len(digits) <= 64
