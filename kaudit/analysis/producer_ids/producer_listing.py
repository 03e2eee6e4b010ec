"""From what every partition's producer ids did to the list of them: joined by id, filtered, sorted, made one by one when they are shown.

A million ids stay columns; the objects for one id are made when it is its turn to be shown.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kaudit.analysis.producer_ids.activity import ActivityRows
from kaudit.analysis.producer_ids.block_histories import BlockHistories
from kaudit.analysis.producer_ids.client_patterns import pattern_of, top_creators
from kaudit.analysis.producer_ids.partition_join import Joined, join
from kaudit.analysis.producer_ids.query import Query, SortKey
from kaudit.analysis.producer_ids.statistics import block_summary, id_summary
from kaudit.analysis.scan.audit import Audit
from kaudit.analysis.scan.partition_audit import PartitionAudit
from kaudit.analysis.scan.rows import Rows
from kaudit.broker.releases.profile import profile_for
from kaudit.model.batch_fields import NO_SEQUENCE, NO_TIMESTAMP
from kaudit.model.finding import Finding
from kaudit.model.producer_ids import BlockEntry, EntryKind
from kaudit.model.producer_listing import GrantedBlock, Producer, ProducerPartition, ProducersResult, ProducerState
from kaudit.model.result import ScanResult
from kaudit.source.layout import PartitionDirectory


def list_producers(audit: Audit, kept: Sequence[ActivityRows], query: Query) -> ProducersResult:
    """List the producer ids that `query` and the audit's own filters choose; `kept` are the partitions' rows, in order."""
    scan = audit.result()
    joined = join(audit.partitions, kept)
    findings = _by_producer([finding for finding in scan.findings if query.includes(finding.code)])
    names = audit.transactional_ids(joined.ids) if joined.is_transactional.any() else {}
    chosen = _choose(joined, findings, audit, query)
    lister = _Lister(audit, joined, findings, names, remembers_markers(scan))
    blocks = [
        _granted(entry) for book in audit.histories.clusters for entry in book.history.entries if _is_grant(entry)
    ]
    summary = {
        **scan.summary.to_dict(),
        "ids": id_summary(joined, chosen, audit.now()),
        "blocks": [block_summary(book) for book in audit.histories.clusters],
        "creators": top_creators(joined, chosen, names),
    }
    listed = chosen[:0] if query.summary_only else chosen[: query.limit]
    return ProducersResult(
        scan,
        _Listing(lister, listed),
        found=len(joined.ids),
        listed=len(listed),
        blocks=blocks,
        summary=summary,
        limit=query.limit,
        detailed=bool(audit.options.producer_ids),
    )


def remembers_markers(scan: ScanResult) -> bool:
    """Tell whether a marker renews a producer's timestamp on the brokers the log may come from (2.4.1 and later)."""
    newest = scan.broker_version.at_most
    return newest is None or profile_for(newest).marker_sets_timestamp


class _Listing(Struct, frozen=True):
    """Producers made while iterating, any number of times."""

    lister: "_Lister"
    chosen: NDArray[np.int64]

    def __iter__(self) -> Iterator[Producer]:
        return map(self.lister.producer, self.chosen.tolist())


class _Lister(Struct, frozen=True):
    """Makes the objects of one id from the columns of all."""

    audit: Audit
    joined: Joined
    findings: Mapping[int, Sequence[Finding]]
    names: Mapping[int, str]
    remembers_markers: bool

    def producer(self, number: int) -> Producer:
        """Make the `number`-th id of the joined columns."""
        joined = self.joined
        producer_id = int(joined.ids[number])
        own = self.findings.get(producer_id, ())
        partitions = [
            self._partition(self.audit.partitions[place], joined.rows(place, row), own)
            for place, row in joined.entries(number)
        ]
        places = [self.audit.partitions[place].directory.log_dir for place, _ in joined.entries(number)]
        return Producer(
            producer_id=producer_id,
            transactional_id=self.names.get(producer_id),
            pattern=pattern_of(joined, number, self.names.get(producer_id)),
            grants=grants_of(self.audit.histories, places, producer_id),
            partitions=partitions,
            first_timestamp=int(joined.first_timestamp[number]),
            last_timestamp=int(joined.last_timestamp[number]),
            batches=int(joined.batches[number]),
            records=int(joined.records[number]),
            epochs=int(joined.epochs[number]),
            findings=tuple(finding.code for finding in own),
        )

    def _partition(self, part: PartitionAudit, row: Rows, findings: Sequence[Finding]) -> ProducerPartition:
        return producer_partition(part.directory, row, findings, remembers_markers=self.remembers_markers)


def producer_partition(
    directory: PartitionDirectory, row: Rows, findings: Sequence[Finding], *, remembers_markers: bool
) -> ProducerPartition:
    """Make the entry of one id in one partition from its row of ACTIVITY; of `findings`, those in this partition."""
    place = (directory.topic, directory.partition, directory.replica)
    timestamp = int(row["state_timestamp"] if remembers_markers else row["state_data_timestamp"])
    if not remembers_markers and row["state_sequence"] == NO_SEQUENCE:
        timestamp = NO_TIMESTAMP  # forgotten at the next expiry check or restart (KAFKA-9144)
    return ProducerPartition(
        topic=directory.topic,
        partition=directory.partition,
        replica=directory.replica,
        first_offset=int(row["first_offset"]),
        last_offset=int(row["last_offset"]),
        first_timestamp=int(row["first_timestamp"]),
        last_timestamp=int(row["last_timestamp"]),
        first_epoch=int(row["first_epoch"]),
        last_epoch=int(row["highest_epoch"]),
        epochs=int(row["epochs"]),
        batches=int(row["batches"]),
        records=int(row["records"]),
        state=ProducerState(
            producer_epoch=int(row["state_epoch"]),
            last_sequence=int(row["state_sequence"]),
            last_offset=int(row["state_offset"]),
            last_timestamp=timestamp,
            coordinator_epoch=int(row["state_coordinator_epoch"]),
            current_txn_start_offset=int(row["state_txn_offset"]),
        ),
        findings=tuple(
            finding.fingerprint for finding in findings if (finding.topic, finding.partition, finding.replica) == place
        ),
    )


def grants_of(histories: BlockHistories, log_dirs: Sequence[str], producer_id: int) -> tuple[GrantedBlock, ...]:
    """Return the blocks that hold an id seen in these log directories, oldest first."""
    for log_dir in log_dirs:
        blocks = histories.of(log_dir)
        if blocks is not None:
            return tuple(_granted(entry) for entry in blocks.coverage.holders(producer_id))
    return ()


def _is_grant(entry: BlockEntry) -> bool:
    return entry.kind is EntryKind.GRANTED and entry.start is not None and entry.end is not None


def _granted(entry: BlockEntry) -> GrantedBlock:
    assert entry.start is not None
    assert entry.end is not None
    return GrantedBlock(entry.start, entry.end, entry.broker, entry.version, entry.at_ms, entry.source)


def _by_producer(findings: Sequence[Finding]) -> dict[int, list[Finding]]:
    grouped: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.producer_id is not None:
            grouped.setdefault(finding.producer_id, []).append(finding)
    return grouped


def _choose(joined: Joined, findings: Mapping[int, Sequence[Finding]], audit: Audit, query: Query) -> NDArray[np.int64]:  # noqa: C901 - one filter per option
    """Return the numbers of the ids to list, in order."""
    options, now = audit.options, audit.now()
    wanted = np.ones(len(joined.ids), dtype=bool)
    if options.producer_ids:
        wanted &= np.isin(joined.ids, np.array(options.producer_ids, dtype=np.int64))
    if options.since_ms is not None:
        wanted &= joined.last_timestamp >= options.since_ms
    if options.until_ms is not None:
        wanted &= joined.first_timestamp <= options.until_ms
    age = now - joined.last_timestamp
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
    for producer_id, own in findings.items():
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
    key = keys[query.sort][chosen]
    if query.sort.descends != query.reverse:
        key = -key
    ordered: NDArray[np.int64] = chosen[np.argsort(key, kind="stable")]
    return ordered
