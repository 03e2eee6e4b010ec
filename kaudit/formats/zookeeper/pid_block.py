"""Values of znodes that kaudit reads: the block of producer ids granted last, and the cluster's id.

The value of ZooKeeper's `/latest_producer_id_block`: the block of producer ids granted last.

    {"version":1,"broker":35,"block_start":"1000","block_end":"1999"}      both ends inclusive, longs as strings

Source: ProducerIdManager.generateProducerIdBlockJson, ProducerIdBlockZNode. Brokers read broker and both ends and
never read `version` (recorded: a value of version 2 is continued by 1.1.1, 2.0.1 and 2.8.2).

Blocks of producer ids as people save them: one JSON object a line, or what `zkCli get -s` prints.

{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}            a znode's value
{"data":"{...}","version":2,"mzxid":46,"mtime":1795241297869}               what a watch or client saw
{"at_ms":1795241303375,"znode":{...the line above...}}                       the same with the time it was read
{"producer_id_start":5000,"producer_id_len":1000,"broker":1,"at_ms":...}     an answer to AllocateProducerIds
mZxid = 0x2e                                                                 zkCli's stat of the value above it

The value of ZooKeeper's `/cluster/id`: which Kafka cluster uses the ensemble (ClusterIdZNode, 0.10.1 and later).

{"version":"1","id":"kLc5ZrOkSuWQ3Jc6ek4IvA"}
"""

import json
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.zookeeper.transaction_log import MAX_KEPT_VALUE

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
        # brokers insist on a string and fail; the meaning is clear enough to go on
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
    # 2^63 has 19 digits; leading zeros are legal in Java too
    return digits.isdecimal() and len(digits) <= 64


CLUSTER_ID_ZNODE = "/cluster/id"


def parse_cluster_id(data: bytes | None) -> str | None:
    """Return the cluster's id, None where the value has none. Never raises: it only helps to match files."""
    try:
        fields = json.loads(data or b"")
    except (ValueError, RecursionError):
        return None
    found = fields.get("id") if isinstance(fields, dict) else None
    return found if isinstance(found, str) and found else None


_STAT = re.compile(
    r"(cZxid|ctime|mZxid|mtime|pZxid|cversion|dataVersion|aclVersion|ephemeralOwner|dataLength|numChildren)"
    r" = (.{1,100})"
)
_HEXADECIMAL = re.compile(r"0x[0-9a-f]{1,16}")
_DECIMAL = re.compile(r"[0-9]{1,18}")
_START_FIELDS = ("producer_id_start", "producerIdStart")
_LENGTH_FIELDS = ("producer_id_len", "producerIdLen")
_MS_PER_SECOND = 1000


class ZnodeLine(Struct, frozen=True):
    """A znode's value (None: the znode held none) on line `number` (from 1), and what is known about it.

    `version` is the znode's, `mzxid` the transaction that wrote it, `at_ms` its mtime, else when it was seen,
    `read_ms` when a client read it.
    """

    number: int
    data: bytes | None
    version: int | None = None
    mzxid: int | None = None
    at_ms: int | None = None
    read_ms: int | None = None

    @property
    def seen_ms(self) -> int | None:
        """The latest time (ms since 1970) at which the value is known to have been current, None without any time."""
        return max((time for time in (self.at_ms, self.read_ms) if time is not None), default=None)


class AnswerLine(Struct, frozen=True):
    """An answer to AllocateProducerIds on line `number`: ids `start`..`start + length - 1` for `broker`."""

    number: int
    start: int
    length: int
    broker: int | None = None
    at_ms: int | None = None

    @property
    def seen_ms(self) -> int | None:
        """The latest time (ms since 1970) at which the block is known to have been the newest, None without any time."""
        return self.at_ms


class BadLine(Struct, frozen=True):
    """Line `number` is none of the known forms."""

    number: int
    reason: str


PidBlockLine = ZnodeLine | AnswerLine | BadLine


def parse_pid_block_lines(lines: Iterable[str]) -> Iterator[PidBlockLine]:
    """Parse lines in order. Never raises: a line of no known form becomes a BadLine and the next ones are read."""
    pending: ZnodeLine | None = None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        stat = _STAT.fullmatch(text)
        if stat and pending:
            pending = _with_stat(pending, stat[1], stat[2])
            continue
        if not text or stat:
            continue
        parsed = _parse(number, text)
        if pending:
            yield pending
            pending = None
        if isinstance(parsed, ZnodeLine):
            pending = parsed
        elif parsed is not None:
            yield parsed
    if pending:
        yield pending


def _with_stat(line: ZnodeLine, name: str, value: str) -> ZnodeLine:
    if name == "dataVersion" and _DECIMAL.fullmatch(value):
        return replace(line, version=int(value))
    if name == "mZxid" and _HEXADECIMAL.fullmatch(value):
        return replace(line, mzxid=int(value, 16))
    return line


def _parse(number: int, text: str) -> PidBlockLine | None:
    """Parse a line of JSON; None for a znode that was not there."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return BadLine(number, "neither JSON nor a line of zkCli's stat")
    if not isinstance(fields, dict):
        return BadLine(number, "not a JSON object")
    znode = fields.get("znode")
    if not isinstance(znode, dict):
        return _parse_object(number, fields, text, _time(fields))
    if "missing" in znode:
        return None
    at, read = _time(znode), _time(fields)
    line = _parse_object(number, znode, json.dumps(znode), read if at is None else at)
    return replace(line, read_ms=read) if isinstance(line, ZnodeLine) else line


def _parse_object(number: int, fields: dict[str, object], text: str, at: int | None) -> PidBlockLine:
    """Parse the fields of a line, or of the znode in it, whose JSON is `text`."""
    if "block_start" in fields or "block_end" in fields:
        return ZnodeLine(number, text.encode(), at_ms=at)
    if "data" in fields:
        return _znode_line(number, fields, at)
    start = next((fields[name] for name in _START_FIELDS if name in fields), None)
    length = next((fields[name] for name in _LENGTH_FIELDS if name in fields), None)
    if type(start) is int and type(length) is int:
        return AnswerLine(number, start, length, _integer(fields, "broker"), at)
    return BadLine(number, "neither a znode's value nor an answer to AllocateProducerIds")


def _znode_line(number: int, fields: dict[str, object], at: int | None) -> PidBlockLine:
    data = fields["data"]
    if data is not None and not isinstance(data, str):
        return BadLine(number, "data is neither a string nor null")
    raw = None if data is None else data.encode("utf-8", "replace")
    return ZnodeLine(number, raw, _integer(fields, "version"), _integer(fields, "mzxid"), at)


def _integer(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    return value if type(value) is int else None


def _time(fields: dict[str, object]) -> int | None:
    """Take the time of a line in ms: mtime and at_ms are ms, t is seconds as a watch stamps them."""
    for name in ("mtime", "at_ms", "at"):
        value = fields.get(name)
        if type(value) is int:
            return value
    seconds = fields.get("t")
    if isinstance(seconds, int | float) and abs(seconds) < 2**53:
        return int(seconds * _MS_PER_SECOND)
    return None
