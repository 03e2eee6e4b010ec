"""A fingerprint as a JSON document, kaudit.fingerprint/1: one line a partition, so that it is read by eye too."""

import json
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from kaudit.model.digests import ALGORITHM
from kaudit.model.fingerprint import Fingerprint, PartitionFingerprint
from kaudit.model.json_record import document_head
from kaudit.model.result import NotAudited


class FingerprintError(Exception):
    """The text is not a fingerprint; the message says what is wrong with it."""


class _Head(Struct):
    schema: str


class _Document(Struct):
    schema: str
    inputs: Sequence[str]
    incomplete: bool
    not_audited: Sequence[NotAudited]
    partitions: Sequence[PartitionFingerprint]


def write_fingerprint(fingerprint: Fingerprint) -> Iterator[str]:
    """Yield the document piece by piece."""
    head = {
        **document_head(ALGORITHM),
        "inputs": list(fingerprint.inputs),
        "incomplete": fingerprint.incomplete,
        "not_audited": [item.to_dict() for item in fingerprint.not_audited],
    }
    yield json.dumps(head, indent=2)[:-2] + ',\n  "partitions": ['
    for number, partition in enumerate(fingerprint.partitions):
        yield ("\n    " if not number else ",\n    ") + msgspec.json.encode(partition).decode()
    yield "\n  ]\n}\n"


def schema_of(text: str) -> str | None:
    """Return the schema that a JSON document names, None where it names none."""
    try:
        return msgspec.json.decode(text, type=_Head).schema
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def read_fingerprint_document(text: str) -> Fingerprint:
    """Read the document.

    Raises:
        FingerprintError: it is not a kaudit.fingerprint/1 document, or a damaged one.

    """
    schema = schema_of(text)
    if schema not in (None, ALGORITHM):
        raise FingerprintError(f"a {schema} document, not {ALGORITHM}")
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise FingerprintError(f"not a fingerprint, which 'kaudit diff --fingerprint DIR' writes: {error}") from None
    keys = [partition.key for partition in document.partitions]
    if len(set(keys)) < len(keys):
        raise FingerprintError("damaged: a partition is there twice")
    return Fingerprint(document.inputs, document.partitions, document.not_audited, document.incomplete)
