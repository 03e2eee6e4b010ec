"""The transactions of an audit: what each had of its inputs, what it wrote, and how it ended.

A transaction's markers lie in all partitions that it wrote to, those of __consumer_offsets among them. A producer's transactions
follow one another, so its markers are taken in the order of their times, and a partition that comes again begins the next one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from kaudit.audits.transactions.outputs import TransactionOutputs
from kaudit.model.batch_fields import COMMIT_MARKER
from kaudit.model.exactly_once import GroupInputs, InputRange, InputTransaction, Outcome, OutputRange
from kaudit.model.finding import Finding
from kaudit.model.internal_topics import GROUPS
from kaudit.model.json_record import JsonRecord
from kaudit.model.result import Changed, NotAudited, ScanResult
from kaudit.partition.audit import PartitionAudit
from kaudit.scanning.audit import Audit
from kaudit.scanning.group_logs import GroupLog
from kaudit.source.layout import INTERNAL_TOPICS

NAMES = ("inputs-processed-twice", "inputs-skipped", "offsets-outside-transactions", "outputs-without-inputs")
"""The names of the checks that hold transactions against their inputs."""
MOST_INPUTS = 200_000
"""Transactions whose inputs are remembered, of all partitions of __consumer_offsets together: the newest ones (some 100 MB)."""
_APART_MS = 1000
"""Markers of one producer that lie further apart are of two transactions."""


class Transaction(JsonRecord, frozen=True, rename={"began_ms": "began_timestamp", "ended_ms": "ended_timestamp"}):
    """One transaction; times in ms, None where they are not known. Its epoch is that of its markers.

    `read_committed`: whether consumers with this isolation level are given all that it wrote, as far as the logs go.
    """

    transactional_id: str | None
    producer_id: int
    producer_epoch: int
    outcome: Outcome
    began_ms: int | None
    ended_ms: int | None
    inputs: Sequence[InputRange]
    outputs: Sequence[OutputRange]
    read_committed: bool

    @property
    def records(self) -> int:
        """Records that it wrote."""
        return sum(each.records for each in self.outputs)


class TransactionTotals(JsonRecord, frozen=True):
    """Counts of transactions and of the records that they wrote; exact, however many are listed."""

    transactions: int
    committed: int
    aborted: int
    open: int
    records_committed: int
    records_aborted: int
    records_open: int
    without_inputs: int
    """Committed ones that wrote records and hold no commits of a group."""

    @property
    def aborted_share(self) -> float:
        """The share of the records written, 0 to 1, that were aborted."""
        decided = self.records_committed + self.records_aborted
        return self.records_aborted / decided if decided else 0.0


NO_TOTALS = TransactionTotals(0, 0, 0, 0, 0, 0, 0, 0)


class Query(Struct, frozen=True):
    """Which transactions are listed: of groups, of transactional ids; all without any; the last `limit` of them, None: all."""

    groups: Collection[str] = ()
    transactional_ids: Collection[str] = ()
    limit: int | None = None

    def concerns(self, finding: Finding) -> bool:
        """Whether a finding of NAMES is about what is listed."""
        evidence = finding.evidence.to_dict()
        parts = [evidence, *(part for part in evidence.values() if isinstance(part, Mapping))]
        ids = {part.get("transactional_id") for part in parts}
        return (not self.groups or evidence.get("group_id") in self.groups) and (
            not self.transactional_ids or not ids.isdisjoint(self.transactional_ids)
        )


class TransactionListing(Struct, frozen=True):
    """The transactions of an audit, made while they are asked for, in the order of their ends, open ones last.

    `scan` has the findings of NAMES about them. `omitted` came before those that are listed; `inputs_not_remembered`: so many have inputs that are counted alone.
    `has_groups`: __consumer_offsets is among the inputs.
    """

    scan: ScanResult
    totals: TransactionTotals
    transactions: Changed | Sequence[Transaction]
    omitted: int = 0
    inputs_not_remembered: int = 0
    has_groups: bool = False


def transaction_listing(audit: Audit, result: ScanResult, query: Query) -> TransactionListing:
    """List the transactions of an audit, and of its result, whose groups' logs were read with a list of transactions."""
    logs = [log for log in audit.group_logs if log.directory.topic == GROUPS]
    runs = [_Joined(audit, run, [log for log in logs if log.directory.log_dir in run]) for run in audit.runs]
    of_runs = [run.choose(query) for run in runs]
    totals = [run.totals(own) for run, own in zip(runs, of_runs, strict=True)]
    ends = np.concatenate([run.ends(own) for run, own in zip(runs, of_runs, strict=True)])
    places = np.repeat(np.arange(len(runs)), [len(own) for own in of_runs])
    chosen = np.column_stack((places, np.concatenate(of_runs)))[np.argsort(ends, kind="stable")]
    listed = chosen if query.limit is None else chosen[max(len(chosen) - query.limit, 0) :]
    unknown = [
        NotAudited(
            f"{part.directory.topic}-{part.directory.partition}",
            f"{part.counts.markers:,} markers, too many to be kept, or in a damaged log: what transactions wrote there is not listed",
        )
        for part in audit.partitions
        if part.markers is None and part.counts.markers
    ]
    return TransactionListing(
        replace(
            result,
            findings=[finding for finding in result.findings if finding.name in NAMES and query.concerns(finding)],
            not_audited=[*result.not_audited, *unknown],
        ),
        TransactionTotals(*map(sum, zip(*map(astuple, totals), strict=True))),
        Changed(listed.tolist(), lambda place: runs[place[0]].transaction(place[1])),
        len(chosen) - len(listed),
        sum(log.inputs.unlisted for log in logs),
        bool(logs),
    )


class _Joined:
    """Markers of one cluster put together to transactions, numbered in the order of their ends; open ones have the last numbers."""

    def __init__(self, audit: Audit, run: Collection[str], logs: Sequence[GroupLog]) -> None:
        places = {(GROUPS, log.directory.partition): log.inputs for log in logs}
        parts = [audit.partitions[number] for number in audit.of_run(run)]
        markers = [part.markers for part in parts if part.markers is not None]
        self._outputs = TransactionOutputs(markers)
        rows = self._outputs.rows
        starts = np.array(starts_of(rows, self._outputs.place), dtype=np.int64)
        ends = np.append(starts[1:], len(rows))
        order = np.argsort(rows["timestamp"][starts], kind="stable") if len(starts) else starts
        self._first, self._stop = starts[order], ends[order]
        self._inputs = [
            {each.end.marker_offset: each for each in places[place].listed if each.end is not None}
            if (place := (directory.topic, directory.partition)) in places
            else {}
            for directory in self._outputs.places
        ]
        self._held_back = {
            (part.directory.topic, part.directory.partition): min(each.stable_offset for each in part.opened)
            for part in parts
            if part.opened
        }
        still_open = list(_open(parts, places))
        self._groups: dict[int, set[str]] = {}
        for own in places.values():
            for producer_id, groups in own.producers.items():
                self._groups.setdefault(producer_id, set()).update(groups)
        ids = {int(each) for each in np.unique(rows["producer_id"])} | {each.producer_id for each in still_open}
        self._names = audit.transactional_ids(ids, run) if ids else {}
        self._open = [replace(each, transactional_id=self._names.get(each.producer_id)) for each in still_open]

    def choose(self, query: Query) -> NDArray[np.int64]:
        """Return the numbers of the transactions that are asked for: of the producers of groups, whether they have commits or not."""
        open_ids = [each.producer_id for each in self._open]
        ids = np.concatenate((self._outputs.rows["producer_id"][self._first], np.array(open_ids, dtype=np.int64)))
        wanted = np.ones(len(ids), dtype=np.bool_)
        if query.groups:
            wanted &= np.isin(ids, [key for key, groups in self._groups.items() if not groups.isdisjoint(query.groups)])
        if query.transactional_ids:
            wanted &= np.isin(ids, [key for key, name in self._names.items() if name in query.transactional_ids])
        return np.flatnonzero(wanted)

    def ends(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return when transactions ended by their first marker, ms; of open ones what comes after all times."""
        times = self._outputs.rows["timestamp"][self._first]
        return np.append(times, np.full(len(self._open), np.iinfo(np.int64).max))[chosen]

    def transaction(self, number: int) -> Transaction:
        """Make one."""
        if number >= len(self._first):
            return self._open[number - len(self._first)]
        first, stop = int(self._first[number]), int(self._stop[number])
        rows, place = self._outputs.rows[first:stop], self._outputs.place[first:stop]
        inputs: list[InputRange] = []
        began = [int(each) for each in rows["begun_timestamp"].tolist() if each >= 0]
        for at, marker in zip(place.tolist(), rows["marker_offset"].tolist(), strict=True):
            known = self._inputs[at].get(marker)
            if known is not None:
                inputs += known.inputs
        written = np.arange(first, stop)[self._outputs.is_output(slice(first, stop))]
        outputs = self._outputs.ranges(written)
        producer_id = int(rows["producer_id"][0])
        committed = int(rows["type"][0]) == COMMIT_MARKER
        return Transaction(
            self._names.get(producer_id),
            producer_id,
            int(rows["producer_epoch"][0]),
            Outcome.COMMITTED if committed else Outcome.ABORTED,
            min(began, default=None),
            int(rows["timestamp"].max()),
            inputs,
            outputs,
            committed and all(self._is_stable(each) for each in outputs),
        )

    def _is_stable(self, output: OutputRange) -> bool:
        held_back = self._held_back.get((output.topic, output.partition))
        return held_back is None or output.last_offset < held_back

    def totals(self, chosen: NDArray[np.int64]) -> TransactionTotals:
        """Count the chosen transactions."""
        ended = chosen[chosen < len(self._first)]
        first, stop = self._first[ended], self._stop[ended]
        output = self._outputs.is_output(slice(None))
        records = np.append(0, np.cumsum(np.where(output, self._outputs.rows["records"], 0)))
        groups = np.append(0, np.cumsum(self._outputs.is_input(slice(None))))
        written = records[stop] - records[first]
        committed = self._outputs.rows["type"][first] == COMMIT_MARKER
        alone = committed & (written > 0) & (groups[stop] == groups[first])
        still_open = [self._open[number - len(self._first)] for number in chosen[chosen >= len(self._first)].tolist()]
        return TransactionTotals(
            len(chosen),
            int(np.count_nonzero(committed)),
            int(np.count_nonzero(~committed)),
            len(still_open),
            int(written[committed].sum()),
            int(written[~committed].sum()),
            sum(each.records for each in still_open),
            int(np.count_nonzero(alone)),
        )


def starts_of(rows: NDArray[np.void], place: NDArray[np.int32]) -> list[int]:
    """Return the rows with which transactions begin, of rows by producer id and time."""
    starts: list[int] = []
    seen: dict[int, int] = {}
    before: tuple[int, int, int] | None = None
    times = rows["timestamp"].tolist()
    columns = (rows["producer_id"].tolist(), rows["producer_epoch"].tolist(), rows["type"].tolist(), place.tolist())
    for number, (producer_id, epoch, kind, at) in enumerate(zip(*columns, strict=True)):
        same = before == (producer_id, epoch, kind) and times[number] - times[number - 1] <= _APART_MS
        if not same:
            starts.append(number)
            seen = {}
        elif at in seen:
            # the widest step since the partition came last is between the two transactions
            last = seen[at]
            step = max(range(last + 1, number + 1), key=lambda row: times[row] - times[row - 1])
            starts.append(step)
            seen = {where: row for where, row in seen.items() if row >= step}
        seen[at] = number
        before = producer_id, epoch, kind
    return starts


def _open(parts: Sequence[PartitionAudit], places: Mapping[tuple[str, int], GroupInputs]) -> Iterator[Transaction]:
    """Yield the transactions that no marker ends, one for each producer id and epoch."""
    inputs: dict[tuple[int, int], list[InputTransaction]] = {}
    outputs: dict[tuple[int, int], list[OutputRange]] = {}
    began: dict[tuple[int, int], int] = {}
    done: set[tuple[str, int]] = set()
    for own in places.values():
        for each in own.listed:
            if each.end is None:
                key = each.producer_id, each.producer_epoch
                inputs.setdefault(key, []).append(each)
                began[key] = min(each.begun_ms, began.get(key, each.begun_ms))
    for part in parts:
        directory = part.directory
        if directory.topic in INTERNAL_TOPICS or (directory.topic, directory.partition) in done:
            continue
        done.add((directory.topic, directory.partition))
        for found in part.opened:
            key = found.producer_id, found.producer_epoch
            end = part.log_end_offset or found.first_offset + 1
            written = OutputRange(directory.topic, directory.partition, found.first_offset, end - 1, found.records)
            outputs.setdefault(key, []).append(written)
            if found.first_timestamp >= 0:
                began[key] = min(found.first_timestamp, began.get(key, found.first_timestamp))
    for key in sorted({*inputs, *outputs}, key=lambda one: (began.get(one, -1), one)):
        ranges = [each for found in inputs.get(key, ()) for each in found.inputs]
        yield Transaction(None, *key, Outcome.OPEN, began.get(key), None, ranges, outputs.get(key, ()), False)
