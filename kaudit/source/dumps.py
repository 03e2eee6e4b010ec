"""Dumps of records: what consumers and connectors write has lost the producer ids, so no audit can use it."""

from collections.abc import Mapping

_WHAT_INSTEAD = (
    "records have lost their producer ids and sequences; give kaudit the segment files (.log) of the broker's log"
)
_SUFFIXES: Mapping[str, str] = {
    ".parquet": "a Parquet file of records",
    ".avro": "an Avro file of records",
    ".orc": "an ORC file of records",
    ".json": "a JSON dump of records",
    ".jsonl": "a JSON dump of records",
    ".ndjson": "a JSON dump of records",
    ".csv": "a CSV dump of records",
}
_MAGICS: Mapping[bytes, str] = {
    b"PAR1": "a Parquet file of records",
    b"Obj\x01": "an Avro file of records",
    b"ORC": "an ORC file of records",
    b"{": "a JSON dump of records",
    b"[": "a JSON dump of records",
}
_COMPRESSIONS = (".gz", ".zst", ".bz2", ".snappy")


def describe_dump(name: str, prefix: bytes) -> str | None:
    """Say in one sentence why a file is of no use if its name or its first bytes are a dump of records', else None."""
    plain = name.lower()
    for compression in _COMPRESSIONS:
        plain = plain.removesuffix(compression)
    for suffix, kind in _SUFFIXES.items():
        if plain.endswith(suffix):
            return f"{kind}: {_WHAT_INSTEAD}"
    for magic, kind in _MAGICS.items():
        if prefix.startswith(magic):
            return f"{kind}: {_WHAT_INSTEAD}"
    return None
