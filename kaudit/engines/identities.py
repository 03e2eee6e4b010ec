"""`--identity`, `--schema` and `--key-schema` as what reads the identities of records."""

from collections.abc import Iterable

from kaudit.errors import UsageError
from kaudit.formats.payloads.json_values import PayloadError
from kaudit.formats.payloads.schemas import Schema, Schemas, parse_schema
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import WHOLE, parse_identity
from kaudit.source.local import read_text


def identity_reader(identity: str | None, schemas: Iterable[str], key_schemas: Iterable[str]) -> IdentityReader:
    """Return what reads identities. Raises UsageError for an identity or a schema that is none."""
    parsed = WHOLE if identity is None else parse_identity(identity)
    keys, values = _schemas(key_schemas, "--key-schema"), _schemas(schemas, "--schema")
    return IdentityReader(parsed, keys.decode, values.decode)


def _schemas(texts: Iterable[str], option: str) -> Schemas:
    any_id: Schema | None = None
    by_id: dict[int, Schema] = {}
    for text in texts:
        number, equals, file = text.partition("=")
        if not (equals and number.isdecimal()):
            number, file = "", text
        try:
            schema = parse_schema(file, read_text(file))
        except PayloadError as error:
            raise UsageError(f"{option} {text}: {error}") from error
        if number:
            by_id[int(number)] = schema
        elif any_id is None:
            any_id = schema
        else:
            raise UsageError(f"{option} {text}: a second schema needs the id of its records: ID=FILE")
    return Schemas(any_id, by_id)
