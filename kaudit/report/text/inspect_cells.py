"""Cells of the tables of `kaudit inspect`: a row's fields as text."""

from collections.abc import Callable, Mapping

from kaudit.report.console import visible
from kaudit.report.text.formatting import date_and_clock, span

Row = Mapping[str, object]
_HEX_CHARACTERS = 23


def text_cell(name: str) -> Callable[[Row], str]:
    """Return the cell of a field, by its name."""
    return lambda row: shown(name, row.get(name))


def shown(name: str, value: object) -> str:
    """Return a value as text: times in UTC, lists and mappings in a line; `-` where there is none."""
    if value is None:
        return "-"
    if name.endswith("timestamp") and isinstance(value, int):
        return " ".join(date_and_clock(value)).strip()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return visible(", ".join(map(str, value))) or "-"
    if isinstance(value, Mapping):
        return visible(", ".join(f"{key}={item}" for key, item in value.items())) or "-"
    return visible(str(value))


def offsets_cell(row: Row) -> str:
    """Return the offsets of a batch, as `3..7`."""
    first, last = row.get("base_offset"), row.get("last_offset")
    return f"..{last}" if first is None and last is not None else span(first, last)


def lost_cell(row: Row) -> str:
    """Return the offsets that are missing where damage is."""
    first, last = row.get("first_missing_offset"), row.get("last_missing_offset")
    return f"{first}.." if first is not None and last is None else span(first, last)


def kind_cell(row: Row) -> str:
    """Return whether a batch is a marker, another control batch, or transactional."""
    control = row.get("control_type")
    if row.get("is_control"):
        if control in ("COMMIT", "ABORT"):
            return f"{control} marker"
        # a dump text without records does not show the type
        return str(control or ("emptied marker" if row.get("record_count") == 0 else "control"))
    return "txn" if row.get("is_transactional") else "-"


def crc_cell(row: Row) -> str:
    """Return the CRC in hex, and whether it is wrong."""
    crc = row.get("crc")
    text = f"{crc:08x}" if isinstance(crc, int) else "-"
    return f"{text} BAD" if row.get("crc_valid") is False else text


def bytes_cell(name: str) -> Callable[[Row], str]:
    """Return the cell of a field that holds bytes."""
    return lambda row: _bytes_text(row.get(name))


def control_value_cell(row: Row) -> str:
    """Return the fields of a control record; where they are not known, as they are printed, or its bytes."""
    if row.get("content") is not None:
        return fields_cell("content")(row)
    return value_cell(row) if row.get("control") is None else text_cell("control")(row)


def value_cell(row: Row) -> str:
    """Return a record's value, and why it was not decoded, if its topic is an internal one."""
    text = _bytes_text(row.get("value"))
    return text if row.get("error") is None else f"{text} ({visible(str(row['error']))})"


def _bytes_text(shown: object) -> str:
    if not isinstance(shown, Mapping):
        return "null"
    size = shown["size"]
    if shown["text"] is None:
        return f"({size} bytes)"
    text = visible(str(shown["text"]))
    if shown["encoding"] == "hex":
        text = f"0x{text}"
    return f"{text}… ({size} bytes)" if shown["truncated"] else text or "''"


def headers_cell(row: Row) -> str:
    """Return a record's headers, as `key=value`."""
    headers = row.get("headers")
    if not isinstance(headers, list) or not headers:
        return "-"
    return ", ".join(f"{visible(str(header['key']))}={_bytes_text(header['value'])}" for header in headers)


def partitions_cell(row: Row) -> str:
    """Topics with their partitions, as `orders-0,3`."""
    entries = row.get("partitions")
    if not isinstance(entries, list) or not entries:
        return "-"
    return visible(" ".join(f"{entry['topic']}-{','.join(map(str, entry['partitions']))}" for entry in entries))


def metadata_cell(row: Row) -> str:
    """Return what kaudit decodes of a metadata record: feature levels and blocks of producer ids."""
    if row.get("feature") is not None:
        return visible(f"{row['feature']} {row['feature_level']}")
    if row.get("next_producer_id") is not None:
        return f"broker {row['broker_id']}: ids up to {row['next_producer_id']}, exclusive"
    if row.get("error") is not None:
        return visible(str(row["error"]))
    return fields_cell("content")(row)


def fields_cell(name: str) -> Callable[[Row], str]:
    """Return a cell of a record's fields: `startOffset=3 stateBatches=[0..2 ACKNOWLEDGED x1]`."""

    def cell(row: Row) -> str:
        if row.get("tombstone") and name == "content":
            return "tombstone"
        fields = row.get(name)
        return visible(_fields_text(fields)) if isinstance(fields, dict) else "-"

    return cell


def _fields_text(fields: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_field_text(value)}" for name, value in fields.items())


def _field_text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_field_text, value))}]"
    if not isinstance(value, dict):
        return "-" if value is None else str(value)
    if set(value) == _STATE_BATCH:
        return "{firstOffset}..{lastOffset} {deliveryState} x{deliveryCount}".format(**value)
    return _bytes_text(value) if set(value) == _SHOWN_BYTES else f"{{{_fields_text(value)}}}"


_STATE_BATCH = {"firstOffset", "lastOffset", "deliveryState", "deliveryCount"}
_SHOWN_BYTES = {"text", "encoding", "size", "truncated"}


def hex_cell(row: Row) -> str:
    """Return the bytes of a field, of a long one the first eight."""
    text = str(row.get("hex"))
    return text if len(text) <= _HEX_CHARACTERS else text[:_HEX_CHARACTERS] + "…"


def producer_cell(prefix: str) -> Callable[[Row], str]:
    """Producer id and epoch, as `4000/0`."""

    def cell(row: Row) -> str:
        producer_id = row.get(f"{prefix}producer_id")
        return "-" if producer_id is None else f"{producer_id}/{row.get(f'{prefix}producer_epoch')}"

    return cell


def dropped_cell(name: str) -> Callable[[Row], str]:
    """Return a cell that says what a consumer that deduplicates does with the duplicate."""

    def cell(row: Row) -> str:
        if not row.get(name):
            return "?" if row.get(name) is None else "twice"
        return "dropped" if row.get("repeats") else "LOST"

    return cell
