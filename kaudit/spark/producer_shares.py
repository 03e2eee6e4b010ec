"""Producer ids listed in Spark's tasks: what partitions know of them is shuffled by id, and each share is joined, filtered, counted.

A share has all rows of its ids, the findings about them and their transactional ids, so that the functions of the local engine do
the rest. The driver gets figures, the first ids by their order, and the objects of those.
"""

import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.audits.coordinator.transaction_state_reader import names_of
from kaudit.listings.partition_join import ReplicaPlace, ReplicaRows, about_producers, by_producer, join
from kaudit.listings.producer_histories import PartitionHistory, TableWriter
from kaudit.listings.producer_listing import Chosen, Ids, Listing
from kaudit.listings.query import Query
from kaudit.listings.statistics import TimeSteps, creators, top_creators
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import Producer
from kaudit.reading.chunk_plan import OpenSource
from kaudit.report.machine.parquet import table_to_ipc
from kaudit.spark.table_target import KEY, PLACE, OutputBatches, names_piece, spark_schema
from kaudit.spark.task_findings import FindingsInTasks, replicas
from kaudit.spark.tasks import Batches, cells, packed, row, unpacked

SHARES_SCHEMA = "share int, kind int, number long, data binary"
_ROWS, _FINDINGS, _NAMES = range(3)
_MADE_AT_ONCE = 1000
"""Producers made to objects and rows at a time."""


def _shared(shares: int, ids: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each share that has some of these ids, and their places."""
    share = ids % shares
    order = np.argsort(share, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(share[order])) + 1) if len(order) else ():
        yield int(share[places[0]]), places


def _row(share: int, kind: int, number: int, value: object) -> pa.RecordBatch:
    return row(SHARES_SCHEMA, share, kind, number, packed(value))


def share_rows(rows: Batches, in_tasks: FindingsInTasks, query: Query, shares: int) -> Batches:
    """Give each share its ids' rows and the findings about them."""
    for partition in in_tasks.topic_partitions(rows):
        for number, kept in enumerate(partition.kept, partition.job_index):
            for share, places in _shared(shares, kept.producer_ids):
                own = ReplicaRows(number, kept.producer_ids[places], kept.activity[places])
                yield _row(share, _ROWS, number, own)
        yield from sharing_findings(partition.found, query, shares, partition.job_index)


def sharing_findings(findings: Sequence[Finding], query: Query, shares: int, number: int) -> Batches:
    """Yield the rows of findings about producer ids, `number` being their partition's among all."""
    found = list(about_producers(findings, query))
    for share, places in _shared(shares, np.array([finding.producer_id for finding in found], dtype=np.int64)):
        yield _row(share, _FINDINGS, number, [found[at] for at in places.tolist()])


def share_ids(rows: Batches, shares: int) -> Batches:
    """Give each share the producer ids of partitions alone."""
    for number, _, kept in replicas(rows, PartitionHistory):
        for share, places in _shared(shares, kept.producer_ids):
            yield _row(share, _ROWS, number, (number, kept.producer_ids[places]))


def name_jobs(rows: Batches, output_batches: OutputBatches) -> Batches:
    """Give each job the names of its producer ids, from shares of ids and names."""
    for _, held in _held(rows):
        names = {producer_id: name for some in held[_NAMES] for producer_id, name in some.items()}
        for job_index, ids in held[_ROWS] if names else ():
            own = {producer_id: names[producer_id] for producer_id in ids.tolist() if producer_id in names}
            if own:
                yield names_piece(output_batches, job_index, own)


def share_names(tasks: Batches, shares: int, open_source: OpenSource) -> Batches:
    """Read partitions of __transaction_state, each with its number among all, and give each share its ids' names."""
    for (work,) in cells(tasks, "work"):
        number, directory = unpacked(work)
        names = names_of(open_source)([directory], None)
        ids, texts = np.fromiter(names, dtype=np.int64, count=len(names)), list(names.values())
        for share, places in _shared(shares, ids):
            own = zip(ids[places].tolist(), (texts[at] for at in places.tolist()), strict=True)
            yield _row(share, _NAMES, number, dict(own))


def _held(rows: Batches) -> Iterator[tuple[int, list[list[Any]]]]:
    """Yield each share's number and what it holds of each kind, from rows sorted by share, kind and number."""
    for number, own in groupby(cells(rows, "share", "kind", "data"), key=itemgetter(0)):
        held: list[list[Any]] = [[], [], []]
        for _, kind, data in own:
            held[kind].append(unpacked(data))
        yield number, held


class Sharing(Struct, frozen=True):
    """What shares are put together with: all replicas, in order, and what makes the list."""

    places: Sequence[ReplicaPlace]
    listing: Listing

    def shares(self, rows: Batches) -> Iterator[tuple[int, Ids, Chosen]]:
        """Yield the number, the ids, and those that the list is to have, of each share of rows sorted by share, kind and number."""
        for number, held in _held(rows):
            joined = join(self.places, held[_ROWS])
            transactional = set(joined.ids[joined.is_transactional].tolist())
            names = {
                producer_id: name
                for some in held[_NAMES]
                for producer_id, name in some.items()
                if producer_id in transactional
            }
            ids = Ids(joined, by_producer(finding for some in held[_FINDINGS] for finding in some), names)
            yield number, ids, self.listing.choose(ids)


def figure(rows: Batches, sharing: Sharing) -> Batches:
    """Give the figures of each share."""
    for share, ids, chosen in sharing.shares(rows):
        yield _row(0, 0, share, sharing.listing.figures(ids, chosen))


def group_creators(rows: Batches, sharing: Sharing, shares: int) -> Batches:
    """Group the ids of each share by kind of client, each kind in a share that its key gives."""
    for share, ids, chosen in sharing.shares(rows):
        found = creators(ids.joined, chosen.numbers, ids.names)
        keys = [zlib.crc32(repr(creator.key).encode("utf-8", "replace")) for creator in found]
        for number, places in _shared(shares, np.array(keys, dtype=np.int64)):
            yield _row(number, 0, share, [found[at] for at in places.tolist()])


def largest_creators(rows: Batches) -> Batches:
    """Give the largest kinds of all these: each kind is in one task."""
    found = (creator for (data,) in cells(rows, "data") for creator in unpacked(data))
    yield _row(0, 0, 0, top_creators(found))


class FirstIds(Struct, frozen=True):
    """The first ids of the list, in order: `keys` is what they are sorted by, `replicas` in how many each is.

    `first_seen`: how many of all chosen ids appeared in each step of time.
    """

    keys: NDArray[np.int64]
    ids: NDArray[np.int64]
    replicas: NDArray[np.int64]
    first_seen: NDArray[np.int64]

    def with_more(self, other: "FirstIds", most: int) -> "FirstIds":
        """Return the first `most` of both."""
        keys, ids = np.concatenate([self.keys, other.keys]), np.concatenate([self.ids, other.ids])
        replicas = np.concatenate([self.replicas, other.replicas])
        order = np.lexsort((ids, keys))[:most]
        return FirstIds(keys[order], ids[order], replicas[order], self.first_seen + other.first_seen)


def find_first(rows: Batches, sharing: Sharing, steps: TimeSteps | None, most: int) -> Batches:
    """Give the first `most` ids of each share."""
    for share, ids, chosen in sharing.shares(rows):
        numbers, seen = chosen.numbers[:most], sharing.listing.first_seen(ids, chosen)
        counts = np.zeros(0, dtype=np.int64) if steps is None else steps.counts(seen)
        first = FirstIds(chosen.keys[:most], ids.joined.ids[numbers], ids.joined.replicas[numbers], counts)
        yield _row(0, 0, share, first)


def merge_first(rows: Batches, most: int) -> Batches:
    """Give the first `most` ids of all shares, in one task."""
    first: FirstIds | None = None
    for (data,) in cells(rows, "data"):
        more = unpacked(data)
        first = more if first is None else first.with_more(more, most)
    if first is not None:
        yield _row(0, 0, 0, first)


def make_producers(rows: Batches, sharing: Sharing, wanted: NDArray[np.int64]) -> Batches:
    """Make the producers with these ids, ascending."""
    for share, ids, _ in sharing.shares(rows):
        numbers = np.flatnonzero(np.isin(ids.joined.ids, wanted, assume_unique=True))
        for number, made in enumerate(_some_at_once(sharing.listing, ids, numbers)):
            yield _row(share, 0, number, made)


def _some_at_once(listing: Listing, ids: Ids, numbers: NDArray[np.int64]) -> Iterator[list[Producer]]:
    producers = iter(listing.producers(ids, numbers))
    while made := list(islice(producers, _MADE_AT_ONCE)):
        yield made


def row_schema(writer: TableWriter) -> pa.Schema:
    """Return the columns of the table `producers` as Spark has them, and those that they are sorted by."""
    return (
        spark_schema(writer.schema("producers")).append(pa.field(KEY, pa.int64())).append(pa.field(PLACE, pa.int32()))
    )


def make_rows(rows: Batches, sharing: Sharing, writer: TableWriter, last: tuple[int, int] | None) -> Batches:
    """Make the rows of the table; `last` is key and id of the last one that belongs, None for all."""
    for _, ids, chosen in sharing.shares(rows):
        numbers, keys = chosen.numbers, chosen.keys
        if last is not None:
            own = ids.joined.ids[numbers]
            among = (keys < last[0]) | ((keys == last[0]) & (own <= last[1]))
            numbers, keys = numbers[among], keys[among]
        start = 0
        for made in _some_at_once(sharing.listing, ids, numbers):
            yield from _sorted_rows(made, keys[start : start + len(made)], writer)
            start += len(made)


def _sorted_rows(producers: Sequence[Producer], keys: NDArray[np.int64], writer: TableWriter) -> Batches:
    """Yield the rows of these producers, with what they are sorted by: their keys, and the number of a row among its own."""
    schema = row_schema(writer)
    counts = np.array([len(producer.partitions) for producer in producers], dtype=np.int64)
    by = np.repeat(keys, counts)
    places = np.arange(len(by)) - np.repeat(np.cumsum(counts) - counts, counts)
    done = 0
    for _, data in writer.of_producers(producers):
        table = pa.ipc.open_stream(data).read_all()
        here = slice(done, done + table.num_rows)
        done += table.num_rows
        columns = [*table.columns, pa.array(by[here], pa.int64()), pa.array(places[here], pa.int32())]
        yield from pa.table(columns, names=[*table.column_names, KEY, PLACE]).cast(schema).to_batches()


def pack_rows(rows: Batches, schema: pa.Schema) -> Batches:
    """Pack rows of Spark's as pieces of the table with this Arrow schema."""
    for batch in rows:
        yield row("data binary", table_to_ipc(pa.Table.from_batches([batch]).select(schema.names).cast(schema)))
