"""The list of producer ids: the partitions' activity joined by id, filtered, sorted, and made objects when it is shown.

A million ids stay columns; the objects of an id are made when it is shown. A share of the ids can be listed alone, if it has
all rows and findings of each id.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.broker.producer_ids.allocation_rules import Coverage, Step
from kaudit.listings.activity import ActivityRows
from kaudit.listings.partition_join import (
    AboutProducer,
    Joined,
    ReplicaRows,
    about_producers,
    by_producer,
    join,
    producer_partition,
    replica_places,
)
from kaudit.listings.producer_histories import EngineTables
from kaudit.listings.query import Query, SortKey
from kaudit.listings.statistics import Creator, IdFigures, block_summary, creators, pattern_of, top_creators
from kaudit.model.coordinator import ExpiredTransactionalId
from kaudit.model.producer_ids import BlockEntry, EntryKind
from kaudit.model.producer_listing import GrantedBlock, Producer, ProducersResult
from kaudit.model.result import Changed, ScanResult
from kaudit.scanning.audit import Audit
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.versions import newest_profile


class Ids(Struct, frozen=True):
    """Producer ids, all or a share: joined, the findings about each in their order, the transactional ids known."""

    joined: Joined
    findings: Mapping[int, Sequence[AboutProducer]]
    names: Mapping[int, str]


class Chosen(Struct, frozen=True):
    """The ids to list, in order: their numbers among those joined, and their sort keys, ascending."""

    numbers: NDArray[np.int64]
    keys: NDArray[np.int64]


class Listing(Struct, frozen=True):
    """Makes the list of ids from filters and order, the clock (ms), the clusters' blocks, and what brokers remember."""

    query: Query
    producer_ids: Sequence[int]
    since_ms: int | None
    until_ms: int | None
    now_ms: int
    blocks: Sequence[Sequence[Step]]
    remembers_markers: bool

    @classmethod
    def of(cls, audit: Audit, query: Query, scan: ScanResult) -> "Listing":
        """Take the audit's options, clock and blocks."""
        options: ScanOptions = audit.options
        blocks = [book.steps for book in audit.histories.clusters]
        assert scan.clock is not None
        times = options.since_ms, options.until_ms, scan.clock.latest_ms
        return cls(
            query, options.producer_ids, *times, blocks, newest_profile(scan.broker_version).marker_sets_timestamp
        )

    def choose(self, ids: Ids) -> Chosen:  # noqa: C901 - one filter per option
        """Return which ids to list, in order."""
        joined, query = ids.joined, self.query
        wanted = np.ones(len(joined.ids), dtype=bool)
        if self.producer_ids:
            wanted &= np.isin(joined.ids, np.array(self.producer_ids, dtype=np.int64))
        if self.since_ms is not None:
            wanted &= joined.last_timestamp >= self.since_ms
        if self.until_ms is not None:
            wanted &= joined.first_timestamp <= self.until_ms
        age = self.now_ms - joined.last_timestamp
        for values, least, most in (
            (joined.batches, query.min_batches, query.max_batches),
            (joined.epochs, query.min_epochs, None),
            (age, query.min_age_ms, query.max_age_ms),
        ):
            if least is not None:
                wanted &= values >= least
            if most is not None:
                wanted &= values <= most
        found = np.zeros(len(joined.ids), dtype=np.int32)
        for producer_id, own in ids.findings.items():
            if joined.holds(producer_id):
                found[np.searchsorted(joined.ids, producer_id)] = len(own)
        if query.with_findings:
            wanted &= found > 0
        chosen = np.flatnonzero(wanted)
        keys: dict[SortKey, NDArray[np.int64] | NDArray[np.int32]] = {
            SortKey.ID: joined.ids,
            SortKey.FIRST: joined.first_timestamp,
            SortKey.LAST: joined.last_timestamp,
            SortKey.BATCHES: joined.batches,
            SortKey.RECORDS: joined.records,
            SortKey.EPOCHS: joined.epochs,
            SortKey.PARTITIONS: joined.partitions,
            SortKey.FINDINGS: found,
        }
        key = keys[query.sort][chosen].astype(np.int64)
        if query.sort.descends != query.reverse:
            key = -key
        order = np.argsort(key, kind="stable")
        return Chosen(chosen[order], key[order])

    def figures(self, ids: Ids, chosen: Chosen) -> IdFigures:
        """Return the figures of the chosen ids."""
        return IdFigures.of(ids.joined, chosen.numbers, self.now_ms)

    def first_seen(self, ids: Ids, chosen: Chosen) -> NDArray[np.int64]:
        """Return when the chosen ids were seen first, ms, where a time is known."""
        first = ids.joined.first_timestamp[chosen.numbers]
        return first[first >= 0]

    def producers(self, ids: Ids, numbers: NDArray[np.int64]) -> Changed:
        """Return the objects of ids by their numbers among those joined, made whenever they are read."""
        coverages = [Coverage(steps) for steps in self.blocks]
        return Changed(numbers, lambda number: self._producer(ids, int(number), coverages))

    def _producer(self, ids: Ids, number: int, coverages: Sequence[Coverage]) -> Producer:
        joined = ids.joined
        producer_id = int(joined.ids[number])
        own = ids.findings.get(producer_id, ())
        name = ids.names.get(producer_id)
        entries = list(joined.entries(number))
        clusters = (place.blocks for place, _ in entries if place.blocks is not None)
        coverage = next((coverages[cluster] for cluster in clusters), None)
        return Producer(
            producer_id=producer_id,
            transactional_id=name,
            pattern=pattern_of(joined, number, name),
            grants=() if coverage is None else tuple(map(_granted, coverage.holders(producer_id))),
            partitions=[
                producer_partition(place.key, row, own, remembers_markers=self.remembers_markers)
                for place, row in entries
            ],
            first_timestamp=int(joined.first_timestamp[number]),
            last_timestamp=int(joined.last_timestamp[number]),
            batches=int(joined.batches[number]),
            records=int(joined.records[number]),
            epochs=int(joined.epochs[number]),
            findings=tuple(finding.code for finding in own),
        )


class ListedProducers(Struct, frozen=True):
    """A list of producer ids, and the engine's tables of all chosen ids where it lists only some."""

    result: ProducersResult
    tables: EngineTables | None = None


def list_producers(audit: Audit, kept: Sequence[ActivityRows], query: Query) -> ProducersResult:
    """List the producer ids that `query` and the audit's own filters choose; `kept` are the partitions' rows, in order."""
    scan = audit.result()
    held = [
        ReplicaRows(number, part.producer_ids, own.rows)
        for number, (part, own) in enumerate(zip(audit.partitions, kept, strict=True))
    ]
    joined = join(replica_places(audit.partitions, audit.histories), held)
    transactional = joined.ids[joined.is_transactional]
    names = audit.transactional_ids(transactional.tolist()) if len(transactional) else {}
    ids = Ids(joined, by_producer(about_producers(scan.findings, query)), names)
    listing = Listing.of(audit, query, scan)
    chosen = listing.choose(ids)
    figures = listing.figures(ids, chosen)
    first_seen = figures.steps.counts(listing.first_seen(ids, chosen)) if figures.steps else np.empty(0, dtype=np.int64)
    listed = chosen.numbers[:0] if query.summary_only else chosen.numbers[: query.limit]
    kinds = top_creators(creators(joined, chosen.numbers, names))
    return producers_result(audit, scan, figures, first_seen, kinds, query, listing.producers(ids, listed))


def producers_result(  # noqa: PLR0913, PLR0917 - the parts of the result
    audit: Audit,
    scan: ScanResult,
    figures: IdFigures,
    first_seen: NDArray[np.int64],
    kinds: Sequence[Creator],
    query: Query,
    listed: Changed | Sequence[Producer],
    omitted: int = 0,
) -> ProducersResult:
    """Put the result together; `omitted` ids were chosen and are only counted."""
    clusters = audit.histories.clusters
    expired = _expired(audit)
    return ProducersResult(
        scan,
        listed,
        found=figures.found,
        listed=len(listed),
        blocks=[_granted(entry) for book in clusters for entry in book.history.entries if _is_grant(entry)],
        summary={
            **scan.summary.to_dict(),
            "ids": figures.summary(figures.steps, first_seen),
            "blocks": [block_summary(book) for book in clusters],
            "creators": [creator.to_dict() for creator in kinds],
            "expired_transactional_ids": len(expired) + (0 if audit.options.producer_ids else audit.expired.omitted),
        },
        limit=query.limit,
        detailed=bool(audit.options.producer_ids),
        omitted=omitted,
        expired=() if query.summary_only else expired,
    )


def _expired(audit: Audit) -> list[ExpiredTransactionalId]:
    """Return the expired transactional ids; where producer ids are asked for, those that had one of them."""
    wanted = set(audit.options.producer_ids)
    return [
        entry
        for entry in audit.expired.newest()
        if not wanted or entry.producer_id in wanted or entry.next_producer_id in wanted
    ]


def _is_grant(entry: BlockEntry) -> bool:
    return entry.kind is EntryKind.GRANTED and entry.start is not None and entry.end is not None


def _granted(entry: BlockEntry) -> GrantedBlock:
    assert entry.start is not None
    assert entry.end is not None
    return GrantedBlock(entry.start, entry.end, entry.broker, entry.version, entry.at_ms, entry.source)
