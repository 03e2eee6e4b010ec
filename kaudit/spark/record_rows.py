"""Records of batches as rows of the DataFrame `records`."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from kaudit.formats.errors import WireError
from kaudit.formats.log.batch_header import CURRENT_MAGIC
from kaudit.formats.log.legacy import parse_message, read_legacy_records
from kaudit.formats.log.records import read_records
from kaudit.model.batch import Batches
from kaudit.model.batch_fields import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG
from kaudit.model.columns import Row
from kaudit.model.limits import BATCH_BYTES, UNPACKED_BYTES
from kaudit.partition.batch_export import SegmentTask
from kaudit.source.bytes import ByteSource
from kaudit.spark.options import ReadOptions
from kaudit.spark.schemas import to_batches

_MOST_BYTES = 8 << 20
"""Keys, values and headers of a record batch of Arrow, about."""
_MOST_RECORDS = 20_000
_Fields = dict[str, object]


def record_rows(
    task: SegmentTask, source: ByteSource, batches: Batches, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """Yield the records of data batches, those that are asked for; a batch that cannot be decoded gives one row, with its `error`."""
    place: _Fields = {
        "topic": task.topic, "partition": task.partition, "replica": task.replica, "segment": task.spec.file.name,
    }  # fmt: skip
    held: list[_Fields] = []
    filled = 0
    for batch in batches[batches["attributes"] & CONTROL_FLAG == 0]:
        for row in _records(source, batch):
            if "error" in row or _is_wanted(row, options):
                held.append({**place, **row})
                filled += int(str(row.get("size") or 0))
            if filled >= _MOST_BYTES or len(held) >= _MOST_RECORDS:
                yield from to_batches("records", held)
                held, filled = [], 0
    yield from to_batches("records", held)


def _is_wanted(row: Mapping[str, object], options: ReadOptions) -> bool:
    offset, timestamp = row["offset"], row["timestamp"]
    assert isinstance(offset, int)
    in_offsets = (options.first_offset is None or offset >= options.first_offset) and (
        options.last_offset is None or offset <= options.last_offset
    )
    if options.since is None and options.until is None:
        return in_offsets
    if not isinstance(timestamp, int):
        return False
    return (
        in_offsets
        and (options.since is None or timestamp >= options.since)
        and (options.until is None or timestamp <= options.until)
    )


def _records(source: ByteSource, batch: Row) -> Iterator[_Fields]:
    size, position = int(batch["size"]), int(batch["position"])
    common: _Fields = {"position": position, **_producer(batch)}
    try:
        if size > BATCH_BYTES:
            yield common | {"error": f"{size} bytes, more than the {BATCH_BYTES} of which records are decoded"}
            return
        buffer = bytearray(size)
        raw = bytes(buffer[: source.read_into(position, memoryview(buffer))])
        for row in _of_bytes(raw, batch):
            yield common | row
    except WireError as error:
        yield common | {"error": str(error)}


def _producer(batch: Row) -> _Fields:
    attributes, producer_id = int(batch["attributes"]), int(batch["producer_id"])
    magic, has_producer = int(batch["magic"]), producer_id >= 0
    log_append_time = bool(attributes & LOG_APPEND_TIME_FLAG)
    return {
        "timestamp_type": None if magic == 0 else "LogAppendTime" if log_append_time else "CreateTime",
        "producer_id": producer_id if has_producer else None,
        "producer_epoch": int(batch["producer_epoch"]) if has_producer else None,
        "leader_epoch": int(batch["leader_epoch"]) if magic == CURRENT_MAGIC else None,
        "is_transactional": bool(attributes & TRANSACTIONAL_FLAG) and magic == CURRENT_MAGIC,
    }


def _of_bytes(raw: bytes, batch: Row) -> Iterator[_Fields]:
    if int(batch["magic"]) < CURRENT_MAGIC:
        for legacy in read_legacy_records(parse_message(raw), UNPACKED_BYTES):
            yield {name: getattr(legacy, name) for name in ("offset", "timestamp", "key", "value", "size")} | {
                "headers": []
            }
        return
    for record in read_records(raw, UNPACKED_BYTES):
        headers = [
            {"key": header.key.decode("utf-8", "backslashreplace"), "value": header.value} for header in record.headers
        ]
        fields = {name: getattr(record, name) for name in ("offset", "timestamp", "key", "value", "size", "sequence")}
        yield fields | {"headers": headers}
