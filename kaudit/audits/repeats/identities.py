"""By what the records of a topic are known again: as asked, or as those who wrote them plainly made them unique."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from kaudit.formats.log.records import Header
from kaudit.formats.payloads.json_values import PayloadError, value_at
from kaudit.model.batch_fields import CONTROL_FLAG
from kaudit.reading.batch_stream import stream_batches
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.content_rows import decodable_records
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import Of, Part, parse_identity
from kaudit.reading.identity.parts import AnyRecord, PartReader, decode_payload, headers_of, position_of
from kaudit.reading.segment import ByteRange
from kaudit.source.layout import PartitionDirectory

CONTENT = "key,value,headers"
"""What a record says. Not its timestamp, which many clients set anew when they send it again: whether that is equal is told."""
_OUTBOX = "key,value,header:id"
"""Tracing headers may differ. An id that others may have chosen proves nothing alone."""
_DEBEZIUM, _CLOUD_EVENTS = "debezium", "cloudevents"
_SAMPLE = 64
_SAMPLE_BYTES = 1 << 20
_MIN_IDS = 8
"""With fewer records, different `id` headers may be chance."""
MOST_DIFFERENCES = 5


class Content(NamedTuple):
    """What a record of any magic says."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class TopicIdentities:
    """Chooses the identity of each topic by the first records that are found of it, unless one is given.

    `reader` has the schemas by which keys and values are read.
    """

    def __init__(self, given: str | None, open_source: OpenSource, reader: IdentityReader | None = None) -> None:
        """Raises UsageError for an identity that there is not."""
        if given is not None:
            parse_identity(given)
        self._given = given
        self._open = open_source
        self._reader = IdentityReader() if reader is None else reader
        self._topics: dict[str, str] = {}

    def of(self, directory: PartitionDirectory) -> str:
        """Return the identity of the records of a partition, as `--identity` names it."""
        if self._given is not None:
            return self._given
        if directory.topic not in self._topics:
            sample = list(islice(_first_records(directory, self._open), _SAMPLE))
            if not sample:
                return CONTENT
            self._topics[directory.topic] = plain_identity(sample)
        return self._topics[directory.topic]

    def reader(self, directory: PartitionDirectory) -> IdentityReader:
        """Return what reads the identities of a partition."""
        return replace(self._reader, identity=parse_identity(self.of(directory)))


def plain_identity(sample: Sequence[AnyRecord]) -> str:
    """Return the identity that these records, one at least, plainly have."""
    values = [record for record in sample if record.value is not None]
    for identity in (_DEBEZIUM, _CLOUD_EVENTS):
        reader = PartReader(parse_identity(identity))
        if values and all(reader.read(record) is not None for record in values):
            return identity
    ids = {_header(record, b"id") for record in sample}
    events = {(_header(record, b"id"), record.key, record.value) for record in sample}
    if (
        None not in ids and len(ids) >= _MIN_IDS and len(ids) == len(events)
    ):  # an id of another kind has several contents
        return _OUTBOX
    return CONTENT


def is_content(identity: str) -> bool:
    """Whether what a record says is compared, and nothing that its writer made unique."""
    found = parse_identity(identity)
    return found.is_whole and all(Part(Of.VALUE) in choice for choice in found.choices)


def identifying(identity: str, record: Content) -> str | None:
    """Return what in a record its writer made unique; None where only its content is compared."""
    if identity == _DEBEZIUM:
        if record.key is None:
            return None  # one statement may write equal rows of a table without a key, at one place of the log
        for path in (("payload", "source"), ("source",)):
            found = position_of(value_at(_decoded(record.value), path))
            if isinstance(found, dict):
                return ", ".join(".".join((*path, str(name))) for name in found)
        return None
    return None if is_content(identity) else _NAMES.get(identity, identity)


_NAMES = {_OUTBOX: "header id", "outbox": "header id", _CLOUD_EVENTS: "id and source of the CloudEvent"}


def is_of_snapshot(record: Content) -> bool:
    """Whether it is a change event that Debezium wrote while it took a snapshot."""
    value = _decoded(record.value)
    return "r" in (value_at(value, ("op",)), value_at(value, ("payload", "op")))


def differences(record: Content, other: Content) -> list[str]:
    """Return which parts of two records are not the same, as `--identity` would name them: the first MOST_DIFFERENCES."""
    found = ["key"] if record.key != other.key else []
    if record.value != other.value:
        try:
            found += islice(_different("value:", (), _decoded(record.value), _decoded(other.value)), MOST_DIFFERENCES)
        except RecursionError:
            found.append("value")  # nested too deeply
    own, others = record.headers, other.headers
    if own != others:
        names = {header.key for header in set(own) ^ set(others)} or {header.key for header in own}
        found += sorted(f"header:{name.decode('utf-8', 'replace')}" for name in names)
    return found[:MOST_DIFFERENCES]


def _different(kind: str, path: tuple[str, ...], one: Any, other: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if not (isinstance(one, dict) and isinstance(other, dict)):
        if one is None or one != other:
            yield kind + ".".join(path) if path else kind.rstrip(":")
        return
    for name in sorted(one.keys() | other.keys()):
        mine, theirs = value_at(one, (name,)), value_at(other, (name,))
        if mine != theirs:
            yield from _different(kind, (*path, name), mine, theirs)


def _decoded(content: bytes | None) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value, None where there is none."""
    try:
        return None if content is None else decode_payload(content)
    except PayloadError:
        return None


def _header(record: AnyRecord, name: bytes) -> bytes | None:
    return next((header.value for header in headers_of(record) if header.key == name), None)


def _first_records(directory: PartitionDirectory, open_source: OpenSource) -> Iterator[AnyRecord]:
    for segment in directory.segments:
        if segment.text is not None or not segment.size:
            continue
        try:
            with closing(open_source(segment)) as source:
                stop = min(segment.size, _SAMPLE_BYTES)
                for piece in stream_batches(source, ByteRange(0, stop, segment.size), expected_offset=None):
                    is_data = piece.batches["attributes"] & CONTROL_FLAG == 0
                    yield from decodable_records(source, piece.batches[is_data])
        except OSError:
            return  # reported by the audit itself
