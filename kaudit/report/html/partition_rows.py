"""The partition replicas of a page: what the scan says of them, and what their histories add."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kaudit.model.result import PartitionSummary
from kaudit.report.html.finding_rows import int64
from kaudit.report.html.histories import Histories, key_of
from kaudit.report.html.page_model import LeftOut, PartitionRow, columns_id


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
    """Yield what the pictures of the partitions do not show, and the command that does."""
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
