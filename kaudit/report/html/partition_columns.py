"""The partition replicas of a page: rows from the scan, and packed columns made where each history is, on either engine."""

import base64
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.listings.activity import ActivityOverTime, activity_over_time
from kaudit.listings.merged_runs import MERGED_RUN
from kaudit.listings.producer_histories import PartitionHistory, Piece
from kaudit.listings.timeline import in_order
from kaudit.model.columns import Columns, no_rows
from kaudit.model.finding import Finding
from kaudit.model.result import PartitionSummary, ScanResult
from kaudit.partition.audit import PartitionAudit
from kaudit.partition.replay import KeptRows
from kaudit.reading.rows import MARKER, Rows
from kaudit.report.html.columns import Origins, fitted
from kaudit.report.html.finding_rows import int64
from kaudit.report.html.page_model import (
    LeaderEpochRow,
    LeftOut,
    MissingRow,
    PackedColumns,
    PartitionRow,
    columns_id,
    json_size,
)
from kaudit.report.lanes import Column, Lanes, lanes_of
from kaudit.report.render_options import RenderOptions

TABLE = "page"
_LISTED_SHARE = 400
"""Bytes of room for each gap and leader epoch that is listed: together they take about a third of it at most."""
_BASE64 = 3 / 4

Key = tuple[str, int, str]
"""Topic, partition and replica."""


class PartitionPage(Struct, frozen=True):
    """What the page shows of a partition replica; `columns.id` is empty, and `text` what its script element holds."""

    topic: str
    partition: int
    replica: str
    min_timestamp: int | None
    max_timestamp: int | None
    leader_epochs: Sequence[LeaderEpochRow]
    missing: Sequence[MissingRow]
    more_leader_epochs: int
    more_missing: int
    activity: ActivityOverTime | None
    columns: PackedColumns | None
    text: str

    def to_bytes(self) -> bytes:
        """Return it as JSON, which holds names of files that are not UTF-8 too."""
        return json.dumps(msgspec.to_builtins(self)).encode()

    @classmethod
    def of_bytes(cls, data: bytes) -> "PartitionPage":
        """Return what `to_bytes` has written."""
        return msgspec.convert(json.loads(data), cls)


class PageWriter(Struct, frozen=True):
    """Makes a PartitionPage of a history: a HistoryWriter.

    `room` is how many bytes each partition replica may take in the page; one that is not shown has none. Lanes of
    `producer_ids` are shown, None: of all. `names` are transactional ids by producer id.
    """

    room: Mapping[Key, int]
    producer_ids: frozenset[int] | None = None
    names: Mapping[int, str] = field(default_factory=dict)

    def __call__(
        self,
        history: PartitionHistory,
        findings: Sequence[Finding],
        newest: Profile,  # noqa: ARG002 - a HistoryWriter
    ) -> Iterator[Piece]:
        """Yield the partition as one piece."""
        yield TABLE, self._page(history, findings).to_bytes()

    def _page(self, history: PartitionHistory, findings: Sequence[Finding]) -> PartitionPage:
        partition = history.partition
        runs, markers = self._rows(history)
        history.rows.clear()  # a million runs are 150 MB; nothing needs them any more
        first, last = _times(runs, markers)
        activity, lanes, count = activity_over_time(runs), lanes_of(runs, markers), len(runs)
        del runs, markers
        room = self.room.get(history.key, 0)
        leader_epochs, missing = _newest_leader_epochs(partition, room), _widest_gaps(partition, room)
        listed = sum(json_size(row) for rows in (leader_epochs, missing) for row in rows)
        columns, text = self._columns(room - listed, lanes, count, findings)
        topic, number, replica = history.key
        return PartitionPage(
            topic=topic,
            partition=number,
            replica=replica,
            min_timestamp=first,
            max_timestamp=last,
            leader_epochs=leader_epochs,
            missing=missing,
            more_leader_epochs=len(_known_leader_epochs(partition)) - len(leader_epochs),
            more_missing=len(partition.missing) - len(missing),
            activity=activity,
            columns=columns,
            text=text,
        )

    def _rows(self, history: PartitionHistory) -> tuple[Columns, Columns]:
        rows = history.rows
        if not rows.runs:
            return no_rows(MERGED_RUN), no_rows(MARKER)
        if self.producer_ids is not None:
            chosen = np.array(sorted(self.producer_ids), dtype=np.int64)
            kept = (
                [part[np.isin(part["producer_id"], chosen)] for part in parts] for parts in (rows.runs, rows.markers)
            )
            rows = KeptRows(self.producer_ids, *kept)
        return in_order(rows)

    def _columns(
        self, room: int, lanes: Lanes, runs: int, findings: Sequence[Finding]
    ) -> tuple[PackedColumns | None, str]:
        if room <= 0 or not len(lanes.tables["lanes"]["name"]):
            return None, ""
        names = self._name(lanes.tables["lanes"], findings, room // 2)
        origins = Origins.of(lanes.tables)
        offsets = [offset for found in findings for offset in (found.offset, found.last_offset) if offset is not None]
        tables, data, left_out = fitted(
            lanes,
            origins,
            int((room - sum(map(json_size, names))) * _BASE64),
            np.array(sorted(offsets), dtype=np.int64),
            np.array([found.producer_id for found in findings if found.producer_id is not None], dtype=np.int64),
        )
        columns = PackedColumns(
            id="",
            bytes=len(data),
            offset_origin=str(origins.offset),
            timestamp_origin=str(origins.timestamp),
            producer_id_origin=str(origins.producer_id),
            names=names,
            tables=tables,
            runs=runs,
            lanes=len(lanes.tables["lanes"]["name"]),
            **left_out,
        )
        return columns, base64.b64encode(data).decode("ascii")

    def _name(self, lanes: dict[str, Column], findings: Sequence[Finding], room: int) -> list[str]:
        """Fill in the lanes' names; return the names, as many as fit into `room` bytes."""
        known = {found.producer_id: found.evidence.transactional_id for found in findings} | dict(self.names)
        names: dict[str, int] = {}
        for row, producer_id in enumerate(lanes["producer_id"].tolist() if known else ()):
            name = known.get(producer_id)
            if isinstance(name, str) and (name in names or room > 0):
                room -= 0 if name in names else json_size(name)
                lanes["name"][row] = names.setdefault(name, len(names))
        return list(names)


def _times(runs: Columns, markers: Columns) -> tuple[int | None, int | None]:
    """Return the first and the last valid timestamp."""
    times = np.concatenate([runs["min_timestamp"], runs["max_timestamp"], markers["timestamp"]])
    times = times[times >= 0]
    return (int(times.min()), int(times.max())) if len(times) else (None, None)


def _known_leader_epochs(partition: PartitionAudit) -> Rows:
    rows = partition.leader_epochs
    return rows[rows["leader_epoch"] >= 0]


def _newest_leader_epochs(partition: PartitionAudit, room: int) -> list[LeaderEpochRow]:
    rows = _known_leader_epochs(partition)
    newest = rows[max(len(rows) - room // _LISTED_SHARE, 0) :]
    return [LeaderEpochRow(int(row["leader_epoch"]), str(int(row["base_offset"]))) for row in newest]


def _widest_gaps(partition: PartitionAudit, room: int) -> list[MissingRow]:
    """Return the widest gaps, in offset order."""
    widest = sorted(partition.missing, key=lambda gap: -gap.count)[: room // _LISTED_SHARE]
    return [
        MissingRow(str(gap.first_offset), str(gap.last_offset), gap.cause.value)
        for gap in sorted(widest, key=lambda gap: gap.first_offset)
    ]


_DESCRIPTION = 1_500
"""Bytes that the JSON beside a partition's packed columns takes: its fields, and names of files."""


class Histories(Struct, frozen=True):
    """The partition replicas' histories as the page shows them, and their high watermarks where known."""

    pages: Mapping[Key, PartitionPage] = field(default_factory=dict)
    high_watermarks: Mapping[Key, int] = field(default_factory=dict)


def histories_of(result: ScanResult, options: RenderOptions, shown: Collection[Key], most_bytes: int) -> Histories:
    """Read the recorded histories; those of the partitions `shown` take at most `most_bytes` in the page together."""
    rooms = _rooms([entry for entry in result.partitions if key_of(entry) in shown], most_bytes)
    pages: dict[Key, PartitionPage] = {}
    marks: dict[Key, int] = {}
    for name, recorded in options.recorded.items():
        named = {key_of(entry): _named(key_of(entry), name) for entry in recorded.result.partitions}
        writer = PageWriter(
            room={own: rooms[key] for own, key in named.items() if key in rooms},
            producer_ids=options.producer_ids,
            names=recorded.transactional_ids(options.producer_ids),
        )
        for _, piece in recorded.write_histories(writer, _own(result.findings, named)):
            page = PartitionPage.of_bytes(piece)
            pages[_named((page.topic, page.partition, page.replica), name)] = page
        marks |= {_named(key, name): offset for key, offset in recorded.high_watermarks().items()}
    return Histories(pages, marks)


def key_of(partition: PartitionSummary) -> Key:
    """Return which partition replica it is."""
    return partition.topic, partition.partition, partition.replica


def _named(key: Key, name: str | None) -> Key:
    """Return the key with the replica's name in the report, where it was recorded by itself."""
    return key if name is None else (*key[:2], name)


def _own(findings: Sequence[Finding], named: Mapping[Key, Key]) -> list[Finding]:
    """Return the findings with their replicas named as where they were recorded."""
    recorded_as = {key: own for own, key in named.items()}
    own: list[Finding] = []
    for finding in findings:
        if finding.topic is None or finding.partition is None or finding.replica is None:
            continue
        key = recorded_as.get((finding.topic, finding.partition, finding.replica))
        if key is not None:
            own.append(finding if key[2] == finding.replica else replace(finding, replica=key[2]))
    return own


def _rooms(partitions: Sequence[PartitionSummary], most_bytes: int) -> dict[Key, int]:
    """Share out the bytes by how many runs and producer ids there are."""
    left = max(most_bytes - _DESCRIPTION * len(partitions), 0)
    weights = {key_of(entry): entry.runs + entry.producers + 50 for entry in partitions}
    total = sum(weights.values())
    return {key: left * weight // total for key, weight in weights.items()}


def partition_rows(
    partitions: Sequence[PartitionSummary], histories: Histories, offsets: Mapping[Key, str]
) -> tuple[list[PartitionRow], list[tuple[str, str]]]:
    """Return the rows, and the script elements with their packed columns; `offsets` say how many there are of each class."""
    rows: list[PartitionRow] = []
    elements: list[tuple[str, str]] = []
    for index, entry in enumerate(partitions):
        page = histories.pages.get(key_of(entry))
        columns = None
        if page is not None and page.columns is not None:
            columns = replace(page.columns, id=columns_id(index))
            elements.append((columns.id, page.text))
        rows.append(
            PartitionRow(
                topic=entry.topic,
                partition=entry.partition,
                replica=entry.replica,
                compacted=entry.compacted,
                log_start_offset=int64(entry.log_start_offset),
                log_end_offset=int64(entry.log_end_offset),
                high_watermark=int64(histories.high_watermarks.get(key_of(entry))),
                last_stable_offset=int64(entry.last_stable_offset),
                min_timestamp=None if page is None else int64(page.min_timestamp),
                max_timestamp=None if page is None else int64(page.max_timestamp),
                batches=entry.batches,
                records=entry.records,
                bytes=str(entry.bytes),
                producers=entry.producers,
                runs=entry.runs if columns is None else columns.runs,
                leader_epochs=[] if page is None else page.leader_epochs,
                missing=[] if page is None else page.missing,
                more_leader_epochs=0 if page is None else page.more_leader_epochs,
                more_missing=0 if page is None else page.more_missing,
                columns=columns,
                offsets=offsets.get(key_of(entry)),
            )
        )
    return rows, elements


def left_out_of(rows: Iterable[PartitionRow], paths: str) -> Iterator[LeftOut]:
    """Yield the counts that the pictures of the partitions leave out, each with the command that shows them."""
    rows = list(rows)
    packed = [row.columns for row in rows if row.columns is not None]
    timeline = f"kaudit timeline {paths} --topic TOPIC --partition PARTITION"
    counts = {
        "runs that are only part of a coarser bar": (sum(entry.runs_merged for entry in packed), timeline),
        "lanes (a producer id and epoch each) without findings": (
            sum(entry.lanes_left_out for entry in packed),
            f"{timeline} --producer-id ID --output-format html",
        ),
        "committed transactions": (sum(entry.transactions_left_out for entry in packed), timeline),
        "end markers": (sum(entry.markers_left_out for entry in packed), timeline),
        "narrow gaps": (sum(row.more_missing for row in rows), timeline),
        "leader epochs": (sum(row.more_leader_epochs for row in rows), f"kaudit inspect {paths}"),
    }
    for what, (count, command) in counts.items():
        if count:
            yield LeftOut(what, count, command)
