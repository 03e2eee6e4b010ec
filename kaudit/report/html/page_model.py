"""What a report page shows, as data: written into the page as JSON, read there by the scripts in `assets`.

Numbers of 64 bits (offsets, producer ids, timestamps, bytes) are decimal text, of type Int64: a browser's numbers are
exact up to 2**53 only. Timestamps are ms since the epoch. All text from a log went through `console.visible` already,
so it holds no control characters, no bidi marks and no lone surrogates. Fields that are not known are null.

Runs, markers, transactions and lanes are tables of packed columns (`columns.py` has the encoding): per partition replica
one `<script type="application/octet-stream" id="columns-N">`, unpacked when the partition is shown.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from msgspec import Struct

from kaudit.model.finding import Explanation
from kaudit.report.console import visible

Int64 = str
"""A number of 64 bits as decimal text, `-?[0-9]+`."""
SeverityName = Literal["error", "warning", "note"]
Kind = Literal["scan", "timeline", "producers", "diff"]

SCHEMA = "kaudit.page/1"
DATA_ID = "page"
"""The id of the script element that holds the model."""


def columns_id(index: int) -> str:
    """The id of the script element that holds the packed columns of partition replica `index`."""
    return f"columns-{index}"


class LeftOut(Struct, frozen=True):
    """Something that the page does not show: `what` in the plural (`runs`), how many, and the command that shows it.

    `count` is None where it is not known.
    """

    what: str
    count: int | None
    how_to_see: str


class IncidentRow(Struct, frozen=True):
    """Findings of one cause; `findings` are indexes into the page's findings, the most severe first.

    `codes` are of all of its findings, of which `count` are distinct; more than `findings` has where some are left out.
    `title` names the check of the first, and the cause in words, or its own message where it stands alone; `extent` where and when.
    """

    id: str | None
    severity: SeverityName
    codes: Sequence[str]
    title: str
    cost: str
    extent: str
    count: int
    findings: Sequence[int]
    next: Sequence[str]


class CheckCount(Struct, frozen=True):
    """How many findings one check has, at its worst severity, and what they cost together."""

    code: str
    name: str
    severity: SeverityName
    count: int
    cost: str


class Counts(Struct, frozen=True):
    """All findings counted, those left out of the page too: (severity, count) from error to note, and by check."""

    severities: Sequence[tuple[SeverityName, int]]
    checks: Sequence[CheckCount]


class HeatCell(Struct, frozen=True):
    """One partition replica in the heat map: its worst severity (None: no findings) and how many findings.

    `index` is its place in the page's partitions, None where it is left out.
    """

    partition: int
    replica: str
    severity: SeverityName | None
    findings: int
    index: int | None


class HeatRow(Struct, frozen=True):
    """A topic; cells by partition, then replica."""

    topic: str
    cells: Sequence[HeatCell]


class Series(Struct, frozen=True):
    """What was written over time: bucket i covers `bucket_ms` from `start_ms + i * bucket_ms` on.

    `bytes` are those of the batches of producers, spread evenly over each run; `producers` how many producer ids were
    between their first and their last batch (in each partition replica: one that writes to two counts twice).
    """

    start_ms: Int64
    bucket_ms: int
    bytes: Sequence[int]
    producers: Sequence[int]


class NotAuditedRow(Struct, frozen=True):
    """A path, or an aspect of one, that no check covered, and why. `unreadable`: it could not be read at all."""

    path: str
    reason: str
    unreadable: bool


class Overview(Struct, frozen=True):
    """The first part of the page. `verdict` has one to three lines.

    `severity` is the worst of the new findings; the costliest `incidents` come first.
    """

    verdict: Sequence[str]
    severity: SeverityName | None
    facts: Sequence[tuple[str, str]]
    incidents: Sequence[IncidentRow]
    counts: Counts
    heat: Sequence[HeatRow]
    series: Series | None
    not_audited: Sequence[NotAuditedRow]
    left_out: Sequence[LeftOut]


class Table(Struct, frozen=True):
    """A small table as it is shown. `marked` is the row in question, `faulty` the column whose value breaks the rule."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: int | None = None
    faulty: int | None = None


class FindingRow(Struct, frozen=True):
    """One finding. `partition` is its index in the page's partitions, None for one of no partition or one left out.

    `place` says in words where it is; `timestamp` is of the batch in question; `evidence` the batches before, at and after
    it, or the copies of an offset; `lost`: records of its offsets are or may be lost; `facts` what else was observed. `state_before` and `state_after` are the producer's, as
    (name, value): what a broker that loads the log holds before and after the batch in question. `doc` says in one line what
    the check is about; `kaudit explain CODE` shows its page. `incident` is an index into the overview's incidents.
    """

    fingerprint: str
    code: str
    name: str
    severity: SeverityName
    confidence: str
    status: str
    suppression: str | None
    partition: int | None
    place: str
    incident: int | None
    producer_id: Int64 | None
    producer_epoch: int | None
    offset: Int64 | None
    last_offset: Int64 | None
    timestamp: Int64 | None
    message: str
    impact: str
    lost: bool
    rule: str | None
    broker: str | None
    evidence: Table | None
    facts: Sequence[tuple[str, str]]
    state_before: Sequence[tuple[str, str]]
    state_after: Sequence[tuple[str, str]]
    explanations: Sequence[Explanation]
    next: Sequence[str]
    doc: str


class LeaderEpochRow(Struct, frozen=True):
    """From which offset on the batches carry this leader epoch."""

    epoch: int
    start_offset: Int64


class MissingRow(Struct, frozen=True):
    """Offsets, both inclusive, that are not in the log, and why: a value of `model.damage.MissingCause`."""

    first_offset: Int64
    last_offset: Int64
    cause: str


class Field(Struct, frozen=True):
    """One packed column: `encoding` is one of columns.py's, `width` bytes a value (0: every value is the prediction)."""

    name: str
    encoding: Literal["plain", "delta", "follows", "from", "continues", "spans"]
    width: int


class PackedTable(Struct, frozen=True):
    """A table of packed columns: `fields` in the order they lie in the bytes."""

    rows: int
    fields: Sequence[Field]


class PackedColumns(Struct, frozen=True):
    """The packed columns of one partition replica: script element `id`, base64 of `bytes` bytes of zlib ('deflate').

    The tables lie one after the other in the order given. Offsets are relative to `offset_origin`, timestamps to
    `timestamp_origin`, producer ids to `producer_id_origin`. `names` are the transactional ids that lanes refer to.
    The tables may have less than the log: `runs_merged` of its `runs` are shown only as part of coarser bars, and the
    other counts are lanes, committed transactions and markers that are not shown at all.
    """

    id: str
    bytes: int
    offset_origin: Int64
    timestamp_origin: Int64
    producer_id_origin: Int64
    names: Sequence[str]
    tables: dict[str, PackedTable]
    runs: int
    lanes: int
    runs_merged: int = 0
    lanes_left_out: int = 0
    transactions_left_out: int = 0
    markers_left_out: int = 0


class PartitionRow(Struct, frozen=True):
    """One partition replica. Offsets named `end`, `high_watermark` and `last_stable_offset` are exclusive.

    `missing` are the widest gaps, in offset order; `more_missing` and `more_leader_epochs` count those not listed.
    `columns` is None where the page has no runs of it (`overview.left_out` says why).
    """

    topic: str
    partition: int
    replica: str
    compacted: bool
    log_start_offset: Int64 | None
    log_end_offset: Int64 | None
    high_watermark: Int64 | None
    last_stable_offset: Int64 | None
    min_timestamp: Int64 | None
    max_timestamp: Int64 | None
    batches: int
    records: int
    bytes: Int64
    producers: int
    runs: int
    leader_epochs: Sequence[LeaderEpochRow]
    missing: Sequence[MissingRow]
    more_leader_epochs: int
    more_missing: int
    columns: PackedColumns | None
    offsets: str | None
    """How many offsets there are of each class, None where they were not accounted for."""


class ProducerRow(Struct, frozen=True):
    """A producer id in one partition replica, as `kaudit producers` lists it. `partition` is an index, None: not shown.

    `pattern` says what kind of client it looks like, `block` which block it was allocated from; `state` is what a broker
    that loads the log holds of it, as (name, value); `findings` are codes.
    """

    producer_id: Int64
    transactional_id: str | None
    pattern: str
    block: str
    partition: int | None
    place: str
    replica: str
    epochs: str
    first_offset: Int64 | None
    last_offset: Int64 | None
    first_timestamp: Int64 | None
    last_timestamp: Int64 | None
    batches: int
    records: int
    state: Sequence[tuple[str, str]]
    findings: Sequence[str]


class PageModel(Struct, frozen=True):
    """Everything on the page.

    `command` made it; `inputs` are what it read, each quoted for a shell, as arguments of a command that shows more; `run`
    is host and time, empty with --reproducible.

    `findings` are in the order of `Finding.sort_key`; `producers` is empty except for kind `producers`; `differences` (kind
    `diff`) has a row for each partition that was compared.
    """

    schema: str
    kind: Kind
    title: str
    command: str
    inputs: Sequence[str]
    made_by: str
    run: Sequence[tuple[str, str]]
    overview: Overview
    findings: Sequence[FindingRow]
    partitions: Sequence[PartitionRow]
    producers: Sequence[ProducerRow]
    differences: Table | None


_T = TypeVar("_T")


def json_for_script(value: object) -> str:
    """Return JSON that may stand in a script element: no `<`, `>` or `&`, all text made visible."""
    text = json.dumps(made_visible(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def made_visible(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return plain values with characters spelled out that a reader would not see, lone surrogates too."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Struct):
        return {name: made_visible(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {visible(str(name)): made_visible(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [made_visible(item) for item in value]
    return value


def json_size(value: object) -> int:
    """Return the bytes a value takes in the page, a comma with it."""
    return len(json_for_script(value).encode()) + 1


def within(rows: Iterable[_T], most_bytes: int) -> list[_T]:
    """Return the first rows, as many as take at most `most_bytes` bytes in the page."""
    kept: list[_T] = []
    for row in rows:
        most_bytes -= json_size(row)
        if most_bytes < 0:
            break
        kept.append(row)
    return kept
