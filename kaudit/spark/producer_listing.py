"""The list of producer ids on Spark, from the driver's side: jobs over shares of the ids, and what little they give it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray
from pyspark.sql.pandas.types import from_arrow_schema

from kaudit.listings.partition_join import join, replica_places
from kaudit.listings.producer_histories import Piece, TableWriter
from kaudit.listings.producer_listing import Ids, Listing, producers_result
from kaudit.listings.query import Query
from kaudit.listings.statistics import Creator, IdFigures, TimeSteps, top_creators
from kaudit.model.finding import Finding
from kaudit.model.limits import PRODUCER_REPLICAS, PRODUCERS
from kaudit.model.producer_listing import Producer, ProducersResult
from kaudit.model.result import ScanResult
from kaudit.scanning.audit import Audit
from kaudit.source.layout import PartitionDirectory
from kaudit.spark.jobs import collected, errors_in_one_line, from_here, named_job
from kaudit.spark.producer_shares import (
    SHARES_SCHEMA,
    FirstIds,
    Sharing,
    figure,
    find_first,
    group_creators,
    largest_creators,
    make_producers,
    make_rows,
    merge_first,
    name_jobs,
    pack_rows,
    row_schema,
    share_ids,
    share_names,
    share_rows,
    sharing_findings,
)
from kaudit.spark.releases import by_number, frame_of, work_frame
from kaudit.spark.table_target import PIECES_SCHEMA, SORTED_BY, OutputBatches
from kaudit.spark.task_findings import FindingsInTasks, audits_of
from kaudit.spark.tasks import Batches, packed, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARE_IDS = 250_000
"""Producer ids of partitions, each once a partition, that a task joins: some 100 bytes each."""
_SHARE_BYTES = 64 << 20
"""Of __transaction_state, whose names a task gets."""
_NOTHING: tuple[int, int] | None = (np.iinfo(np.int64).min, -1)
"""Before all ids."""
_MOST_GROUPS = 32
"""Tasks that group ids by kind of client: each gives the driver ten kinds at most."""


def _names(spark: "SparkSession", coordinator: Sequence[PartitionDirectory], shares: int) -> "DataFrame":
    """Describe the reading of __transaction_state: a task for each of its partitions."""
    return work_frame(spark, map(packed, enumerate(coordinator))).mapInArrow(
        partial(share_names, shares=shares, open_source=from_here()), SHARES_SCHEMA
    )


def _in_shares(rows: "DataFrame", shares: int) -> "DataFrame":
    return by_number(rows, shares, "share").sortWithinPartitions("share", "kind", "number")


def names_of_jobs(
    spark: "SparkSession",
    coordinator: Sequence[PartitionDirectory],
    shares: int,
    kept: "DataFrame",
    output_batches: OutputBatches,
) -> "DataFrame | None":
    """Bring transactional ids that __transaction_state names to the jobs that have their producer ids: rows like pieces.

    None where there is no such topic.
    """
    if not coordinator:
        return None
    rows = kept.mapInArrow(partial(share_ids, shares=shares), SHARES_SCHEMA)
    rows = _in_shares(rows.unionByName(_names(spark, coordinator, shares)), shares)
    return rows.mapInArrow(partial(name_jobs, output_batches=output_batches), PIECES_SCHEMA)


def shared_ids(  # noqa: PLR0913, PLR0917 - all that is known of an audit
    spark: "SparkSession",
    replayed: "DataFrame",
    audit: Audit,
    scan: ScanResult,
    in_tasks: FindingsInTasks,
    scan_wide: Sequence[Finding],
    query: Query,
) -> "SharedIds":
    """Describe the shares of the producer ids of an audit: rows of partitions, findings and __transaction_state, by share, kind and number."""
    shares = shares_of(audit, scan)
    share = partial(share_rows, in_tasks=in_tasks, query=query, shares=shares)
    rows = audits_of(replayed, "kept").mapInArrow(share, SHARES_SCHEMA)
    found = list(sharing_findings(scan_wide, query, shares, -1))
    if found:
        rows = rows.unionByName(frame_of(spark, pa.Table.from_batches(found)))
    if audit.coordinator_logs:
        rows = rows.unionByName(_names(spark, audit.coordinator_logs, shares))
    together = Sharing(replica_places(audit.partitions, audit.histories), Listing.of(audit, query, scan))
    return SharedIds(spark, _in_shares(rows, shares), shares, together)


def shares_of(audit: Audit, scan: ScanResult) -> int:
    """Return in how many shares the ids of all partitions and the names of the coordinator's log are joined."""
    ids = sum(partition.producers for partition in scan.partitions)
    size = sum(segment.size for directory in audit.coordinator_logs for segment in directory.segments)
    return max(-(-ids // _SHARE_IDS), -(-size // _SHARE_BYTES), 1)


class SharedIds(Struct, frozen=True):
    """The producer ids of an audit in shares; `sharing` says how these are put together."""

    session: "SparkSession"
    frame: "DataFrame"
    shares: int
    sharing: Sharing

    def figures(self) -> IdFigures:
        """Return the figures of all ids."""
        found = self._bring("count the producer ids", figure)
        if found:
            return IdFigures.together(found)
        nothing = Ids(join((), ()), {}, {})
        return self.sharing.listing.figures(nothing, self.sharing.listing.choose(nothing))

    def creators(self) -> list[Creator]:
        """Return the kinds of clients that opened the most ids."""
        groups = min(self.shares, _MOST_GROUPS)
        grouped = self._mapped(partial(group_creators, shares=groups))
        grouped = by_number(grouped, groups, "share")
        found = self._collect("group the producer ids by client", grouped.mapInArrow(largest_creators, SHARES_SCHEMA))
        return top_creators(creator for some in found for creator in some)

    def first(self, steps: TimeSteps | None, most: int) -> FirstIds:
        """Return the first `most` ids of the list, and when ids appeared."""
        first = self._mapped(partial(find_first, steps=steps, most=most))
        merged = by_number(first, 1, "share").mapInArrow(partial(merge_first, most=most), SHARES_SCHEMA)
        found = self._collect("find the first producer ids", merged)
        none = np.zeros(0, dtype=np.int64)
        return found[0] if found else FirstIds(none, none, none, none)

    def producers(self, ids: NDArray[np.int64]) -> list[Producer]:
        """Bring the producers with these ids, in their order."""
        if not len(ids):
            return []
        made = self._bring("bring the producer ids that are listed", partial(make_producers, wanted=np.sort(ids)))
        by_id = {producer.producer_id: producer for some in made for producer in some}
        return [by_id[producer_id] for producer_id in ids.tolist()]

    def _mapped(self, make: Callable[..., Batches]) -> "DataFrame":
        return self.frame.mapInArrow(partial(make, sharing=self.sharing), SHARES_SCHEMA)

    def _bring(self, what: str, make: Callable[..., Batches]) -> list[Any]:
        return self._collect(what, self._mapped(make))

    def _collect(self, what: str, frame: "DataFrame") -> list[Any]:
        table = collected(self.session, f"kaudit: {what}", frame)
        return [unpacked(data.as_py()) for data in table["data"]]


class RowsOfList(Struct, frozen=True):
    """The rows of the table `producers`: of all ids that were chosen, up to `last`, its key and id, where there is a limit."""

    ids: SharedIds
    last: tuple[int, int] | None

    def frame(self, writer: TableWriter) -> "DataFrame":
        """Describe the rows, with the columns that they are sorted by."""
        make = partial(make_rows, sharing=self.ids.sharing, writer=writer, last=self.last)
        return self.ids.frame.mapInArrow(make, from_arrow_schema(row_schema(writer)))

    def pieces(self, writer: TableWriter) -> Iterator[Piece]:
        """Bring the rows to the driver in order, the rows of one task in memory at a time."""
        ordered = self.frame(writer).orderBy(*SORTED_BY)
        packed = ordered.mapInArrow(partial(pack_rows, schema=writer.schema("producers")), "data binary")
        with errors_in_one_line(), named_job(self.ids.session, "kaudit: bring the table producers"):
            for row in packed.toLocalIterator(prefetchPartitions=True):
                yield "producers", bytes(row["data"])


def list_producers(ids: SharedIds, audit: Audit, scan: ScanResult) -> tuple[ProducersResult, RowsOfList]:
    """List the first ids that the query chooses; all of them, up to its limit, have rows."""
    query, asked_for = ids.sharing.listing.query, set(audit.options.producer_ids)
    figures = ids.figures()
    kinds = ids.creators()
    wanted = 0 if query.summary_only else figures.chosen if query.limit is None else min(query.limit, figures.chosen)
    bounded = query.limit is None and not asked_for
    first = ids.first(figures.steps, min(wanted, PRODUCERS) if bounded else wanted)
    listed = len(first.ids)
    if bounded:
        listed = max(int(np.searchsorted(np.cumsum(first.replicas), PRODUCER_REPLICAS, side="right")), 1)
    last = _NOTHING
    if wanted == figures.chosen:
        last = None
    elif wanted:
        last = int(first.keys[-1]), int(first.ids[-1])
    made = ids.producers(first.ids[:listed])
    result = producers_result(audit, scan, figures, first.first_seen, kinds, query, made, wanted - len(made))
    return result, RowsOfList(ids, last)
