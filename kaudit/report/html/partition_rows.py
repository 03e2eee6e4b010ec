"""The partition replicas of a page: rows from the scan, and pictures from their histories."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.model.finding import Finding
from kaudit.model.result import PartitionSummary, ScanResult
from kaudit.reading.shuffle_codec import unpack
from kaudit.report.html.finding_rows import int64
from kaudit.report.html.page_model import LeftOut, PartitionRow, columns_id
from kaudit.report.html.partition_columns import Key, PageWriter, PartitionPage
from kaudit.report.render_options import RenderOptions

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
            page = unpack(piece, PartitionPage)
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
    partitions: Sequence[PartitionSummary], histories: Histories
) -> tuple[list[PartitionRow], list[tuple[str, str]]]:
    """Return the rows, and the script elements with their packed columns."""
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
