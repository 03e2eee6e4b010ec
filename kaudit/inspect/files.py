"""One row per file: its kind, size, status, and the offsets it covers."""

from kaudit.inspect.file_kinds import FileKind, LogFile
from kaudit.inspect.rows import Row, fields_of
from kaudit.inspect.segment import SegmentReader
from kaudit.inspect.side_files import side_rows
from kaudit.model.batch import last_offsets
from kaudit.model.damage import DamageKind
from kaudit.model.table_columns import INSPECT_TABLES
from kaudit.source.schemes import filesystem


def file_row(file: LogFile, name: str) -> Row:
    """Return the row of one file, called `name`; a file that cannot be read has status `unreadable`.

    `status` is ok, empty, zero-tail (zeros to the end: preallocated), damaged, unreadable or unknown; `detail` describes
    the first damage; `entries` counts batches or rows.
    """
    row: Row = {"row": "file"} | dict.fromkeys(INSPECT_TABLES["file"])
    row |= fields_of(file, ("leftover", "topic", "partition", "replica"))
    row |= {"file": name, "kind": file.kind.value, "status": "ok"}
    try:
        row["size"] = filesystem(file.path).status(file.path).size
        if file.kind.holds_batches:
            row |= _batches(file)
        elif file.kind in (FileKind.UNKNOWN, FileKind.DUMP):
            row["status"] = "unknown" if file.kind is FileKind.UNKNOWN else "ok"
        else:
            row |= _rows(file)
    except OSError as error:
        return row | {"status": "unreadable", "detail": error.strerror or type(error).__name__}
    if row["size"] == 0 and row["status"] == "ok":
        row["status"] = "empty"
    return row


def _batches(file: LogFile) -> Row:
    first: int | None = None
    last: int | None = None
    entries = 0
    kinds: list[DamageKind] = []
    detail: str | None = None
    with SegmentReader(file) as segment:
        for piece in segment.pieces():
            if len(piece.batches):
                first = int(piece.batches["base_offset"][0]) if first is None else first
                last = int(last_offsets(piece.batches)[-1])
                entries += len(piece.batches)
            for damage in piece.damages:
                zeros_to_end = damage.kind is DamageKind.ZEROS and damage.end == segment.size
                kinds += [] if zeros_to_end else [damage.kind]
                detail = detail or f"byte {damage.position}: {damage.detail}"
    status = "damaged" if kinds else "zero-tail" if detail else "ok"
    return {"first_offset": first, "last_offset": last, "entries": entries, "status": status, "detail": detail}


def _rows(file: LogFile) -> Row:
    first: int | None = None
    last: int | None = None
    entries = 0
    detail: str | None = None
    for row in side_rows(file):
        if row["row"] == "damage":
            detail = detail or f"byte {row['position']}: {row['detail']}"
            continue
        entries += 1
        if file.kind is FileKind.CHECKPOINT:
            continue  # its offsets belong to many partitions
        low, high = row.get("first_offset", row.get("offset")), row.get("last_offset", row.get("offset"))
        if isinstance(low, int) and isinstance(high, int):
            first = low if first is None else min(first, low)
            last = high if last is None else max(last, high)
    status = "damaged" if detail else "ok"
    return {"first_offset": first, "last_offset": last, "entries": entries, "status": status, "detail": detail}
