"""Schemas of the DataFrames, from the table of columns: as Arrow and as Spark have them, and rows in them."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import fields
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.model.evidence import JSON_NAMES, evidence_attributes
from kaudit.model.impact import Impact
from kaudit.model.table_columns import DATAFRAME_TABLES, NEVER_NULL, dataframe_column

_OURS = {error.__name__: error for error in (UsageError, NothingToAuditError, UnreadableInputError)}
_LINE = re.compile(rf"kaudit\.errors\.({'|'.join(_OURS)}): (.*)")
LAST_TIMESTAMP_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: Spark and Python know no later one."""
WHOLE_EVIDENCE = "json"
"""The field of evidence that has all of it."""
_TIMESTAMP = pa.timestamp("us", tz="UTC")


def _type_of(hint: Any, name: str = "") -> pa.DataType:  # noqa: ANN401 - a type
    """Return the Arrow type of values of a Python type; numbers whose names end in `timestamp` are times."""
    kind = next((each for each in get_args(hint) if each is not NoneType), hint) if NoneType in get_args(hint) else hint
    if (holder := get_origin(kind)) is Sequence:
        return pa.list_(_type_of(get_args(kind)[0], name))
    if holder is Mapping:
        return pa.map_(pa.string(), _type_of(get_args(kind)[1], name))
    if issubclass(kind, Struct):
        return pa.struct([(each.encode_name, _type_of(each.type, each.encode_name)) for each in fields(kind)])
    if kind is int:
        return _TIMESTAMP if name.endswith("timestamp") else pa.int64()
    return {bool: pa.bool_(), float: pa.float64()}.get(kind, pa.string())


class _EvidenceStruct(NamedTuple):
    """The Arrow type of evidence, and the attribute of `FindingEvidence` for each of its fields."""

    type: pa.DataType
    attributes: Mapping[str, str]


def _evidence() -> _EvidenceStruct:
    hints = dict(evidence_attributes())
    attributes = {JSON_NAMES.get(name, name): name for name in hints}
    own = [(key, _type_of(hints[name], key)) for key, name in attributes.items()]
    return _EvidenceStruct(pa.struct([*own, (WHOLE_EVIDENCE, pa.string())]), attributes)


EVIDENCE = _evidence()
IMPACT = _type_of(Impact)
_TYPES: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "evidence": EVIDENCE.type,
    "impact": IMPACT,
    "timestamp": _TIMESTAMP,
    "record_headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


def arrow_schema(table: str) -> pa.Schema:
    """Return the Arrow schema of a DataFrame's rows."""
    return pa.schema([_field(table, name) for name in DATAFRAME_TABLES[table]])


def _field(table: str, name: str) -> pa.Field:
    kind = dataframe_column(table, name).type
    return pa.field(name, _TYPES.get(kind) or getattr(pa, kind)(), nullable=name not in NEVER_NULL[table])


def spark_schema(table: str, origin: str | None = None) -> "StructType":
    """Return the schema of a DataFrame. The metadata of a column `origin` names the log too: it may have no row."""
    fields = list(from_arrow_schema(arrow_schema(table)))
    for number, field in enumerate(fields):
        about: dict[str, Any] = {"comment": dataframe_column(table, field.name).meaning}
        if field.name == "origin":
            about["kaudit"] = origin
        fields[number] = StructField(field.name, field.dataType, field.nullable, about)
    return StructType(fields)


def to_batch(table: str, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Make rows of numpy columns, masked where null; columns of timestamps are ms since 1970, others may be Arrow arrays.

    A column left out is null in every row.
    """
    schema = arrow_schema(table)
    count = max(map(len, columns.values()))
    arrays = [_array(columns.get(field.name), field.type, count) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: Any, kind: pa.DataType, count: int) -> pa.Array:  # noqa: ANN401 - numpy or Arrow
    if values is None:
        return pa.nulls(count, kind)
    if isinstance(values, pa.Array):
        return values
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    data = np.ma.getdata(values)
    if pa.types.is_timestamp(kind):
        unknown = (data < 0) | (data > LAST_TIMESTAMP_MS)
        mask = unknown if mask is None else mask | unknown
        return pa.array(np.where(mask, 0, data) * 1000, pa.int64(), mask=mask).cast(kind)
    if data.dtype.kind == "U":  # Arrow takes text of numpy one by one
        return _texts(data, mask).cast(kind)
    return pa.array(data, mask=mask).cast(kind)


def _texts(data: Any, mask: Any) -> pa.Array:  # noqa: ANN401 - numpy
    values, codes = np.unique(data, return_inverse=True)
    return pa.array(values.tolist(), pa.string()).take(pa.array(codes, mask=mask))


def to_batches(table: str, rows: Iterable[Mapping[str, object]], most_rows: int = 20_000) -> Iterator[pa.RecordBatch]:
    """Make record batches of rows of Python values; timestamps are ms since 1970."""
    schema = arrow_schema(table)
    held: list[Mapping[str, object]] = []
    for row in rows:
        held.append(row)
        if len(held) >= most_rows:
            yield _of_rows(schema, held)
            held = []
    if held:
        yield _of_rows(schema, held)


def _of_rows(schema: pa.Schema, rows: Sequence[Mapping[str, object]]) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        if pa.types.is_timestamp(field.type):
            arrays.append(pa.array([microseconds(value) for value in values], pa.int64()).cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def microseconds(value: object) -> int | None:
    """Return a time in ms as Spark takes it, None for one that it does not know."""
    return value * 1000 if isinstance(value, int) and 0 <= value <= LAST_TIMESTAMP_MS else None


def milliseconds(column: pa.Array) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Return a column of timestamps as ms since 1970, -1 where it is null."""
    whole = pc.fill_null(column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()), -1000)
    numbers: np.ndarray[Any, np.dtype[np.int64]] = whole.to_numpy(zero_copy_only=False)
    return numbers // 1000


def raise_own_errors() -> None:
    """Let actions of Spark raise what kaudit raised in their tasks: Spark brings it to the driver as the text of a traceback."""
    for name in ("pyspark.errors.exceptions.captured", "pyspark.sql.connect.client.core"):
        module: Any = sys.modules.get(name)  # a session has loaded its own
        if module is not None and not isinstance(module.convert_exception, _Converted):
            module.convert_exception = _Converted(module.convert_exception)


class _Converted(Struct, frozen=True):
    """Spark's function that makes an exception of what the JVM or the server says, but for what is kaudit's own."""

    spark: Callable[..., Exception]

    def __call__(self, *given: object, **named: object) -> Exception:
        error = self.spark(*given, **named)
        found = _LINE.findall(str(error))
        return _OURS[found[-1][0]](found[-1][1]) if found else error


def unplanned(*place: object) -> UsageError:
    """Return the error that rows are of none of the logs that were planned."""
    where = " ".join(str(part) for part in place)
    return UsageError(
        f"{where}: these rows are of no segment of the logs that they name, or it has changed since they were read"
    )
