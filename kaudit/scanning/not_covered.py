"""What a scan did not audit: inputs, topics and producer ids that are not there, and parts of partitions, one line per reason."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kaudit.checks.texts import counted, first_of
from kaudit.errors import suggestion
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.audit_clock import AuditClock
from kaudit.model.coordinator import CoordinatorView, TransactionStanding
from kaudit.model.coverage import Coverage, OffsetClass
from kaudit.model.damage import DamageKind
from kaudit.model.internal_topics import REMOTE_LOG
from kaudit.model.result import CoverageGap, NotAudited
from kaudit.model.transactions import OpenTransaction
from kaudit.partition.audit import PartitionAudit
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory
from kaudit.source.uri import Uri
from kaudit.source.zookeeper import find_zookeeper_files


def partitions_not_audited(
    parts: Sequence[PartitionAudit],
    *,
    log_start_given: bool,
    without_coordinator: Sequence[Sequence[PartitionAudit]],
    other_coordinators: bool,
) -> Iterator[NotAudited]:
    """Yield what could not be checked in the partitions.

    `log_start_given`: the user passed --log-start-offset. `without_coordinator`: partitions without a __transaction_state beside
    them, in groups of one cluster copied at one time; `other_coordinators`: another group has one.
    """
    users = [part for part in parts if part.directory.topic not in INTERNAL_TOPICS]
    yield from _reason(
        (part for part in users if not part.directory.has_checkpoints and not log_start_given),
        "the log start offset is not known: no checkpoint beside the partition (pass --log-start-offset)",
    )
    yield from _reason(
        (part for part in parts if part.counts.legacy_batches),
        "magic 0 and 1: no producer ids, sequences are not checkable",
    )
    yield from _reason(
        (part for part in users if part.compacted),
        "compacted: offsets that the log cleaner can have removed, and the sequences they held, are not reported",
    )
    yield from _reason((part for part in parts if part.still_growing), "the last batch was still being written")
    for part in parts:
        if part.removed:
            yield NotAudited(first_of([each.path for each in part.removed]), part.removed[0].reason)
    yield from _reason(
        (part for part in users if part.restarts_compared),
        "producers that begin after others ended: compared with the last records of those (KA701; --depth records compares with all)",
    )
    yield from _reason(
        (part for part in users if part.restarts_not_exhausted),
        "producers that begin after others ended: compared with the 256 MiB before them (KA701; kaudit dedup compares more)",
    )
    for kind in CoverageGap:
        yield from _reason((part for part in parts if kind in part.coverage_gaps), kind.value)
    for part in parts:
        yield from _left_out(part)
        if part.text_lines.unknown_facts:
            yield NotAudited(part.directory.name, part.text_lines.reason, unreadable=True)
    for together in without_coordinator:
        there = _log_directories(together) if other_coordinators or len(without_coordinator) > 1 else "among the inputs"
        yield from _reason(
            (part for part in together if part.opened),
            f"open transactions could not be compared with their coordinator: no __transaction_state {there}",
        )


def transactions_without_clock(
    parts: Sequence[PartitionAudit], coordinator: CoordinatorView, clock: AuditClock
) -> Iterator[NotAudited]:
    """Yield the partitions with transactions that are idle for too long by timestamps of clients only."""

    def is_doubtful(part: PartitionAudit, transaction: OpenTransaction) -> bool:
        place = part.directory.topic, part.directory.partition
        answer = coordinator.standing(transaction.producer_id, transaction.producer_epoch, *place)
        return answer.standing is TransactionStanding.UNKNOWN and clock.idleness(transaction).seems_too_long

    yield from _reason(
        (part for part in parts if any(is_doubtful(part, transaction) for transaction in part.opened)),
        "open transactions are past any timeout by timestamps of clients alone: times that brokers wrote do not show it "
        "(pass --now if the log's time is known)",
    )


def without_digest(parts: Iterable[PartitionAudit]) -> Iterator[NotAudited]:
    """Yield the partitions whose batches no digest names, though that was asked for."""
    missing = [part for part in parts if part.digest is None]
    unread = [part for part in missing if part.unreadable]
    yield from _reason(unread, "no digest: not all of it could be read")
    of_text = [part for part in missing if not part.unreadable]
    yield from _reason(of_text, "no digest: a text of kafka-dump-log is not the bytes of a log")


def anomalies_not_listed(parts: Iterable[PartitionAudit]) -> Iterator[NotAudited]:
    """Yield the partitions with more anomalies than are kept."""
    for part in parts:
        more = part.unlisted + part.dropped_observations
        if more:
            yield NotAudited(part.directory.name, f"{more:,} more anomalies are counted here, not listed")
        if part.snapshots_not_compared:
            reason = f"older producer snapshots were not compared with the log: {part.snapshots_not_compared:,}"
            yield NotAudited(part.directory.name, reason)
        if part.bumps_not_compared:
            reason = f"{part.bumps_not_compared:,} more epoch bumps were not searched for repeated records (KA704)"
            yield NotAudited(part.directory.name, reason)
        if part.restarts_not_compared:
            reason = f"{part.restarts_not_compared:,} more producers were not compared with those before them (KA701)"
            yield NotAudited(part.directory.name, reason)


def _log_directories(parts: Iterable[PartitionAudit]) -> str:
    """Say in which log directories these partitions are."""
    return "in " + first_of(list(dict.fromkeys(part.directory.log_dir or part.directory.directory for part in parts)))


def _left_out(part: PartitionAudit) -> Iterator[NotAudited]:
    """What a text in place of the segments leaves out."""
    found = [placed for placed in part.damages if placed.damage.kind is DamageKind.LEFT_OUT]
    if found:
        first = found[0]
        more = f", and {len(found) - 1} more such places" if len(found) > 1 else ""
        segment = part.directory.segments[first.segment].name
        reason = f"{segment}: {first.damage.detail}: what lies there is not checked{more}"
        yield NotAudited(part.directory.name, reason)


def offsets_not_checked(parts: Sequence[PartitionAudit], events: Iterable[LogEvent] = ()) -> Iterator[NotAudited]:
    """Yield the offsets in remote storage, and those of which nothing says what became of them: the audit is not complete then.

    `events` of logs say how far brokers had copied. What was read there with one replica of a partition was read for all of them.
    """
    completed = {part.directory.name for part in parts if part.directory.remote_segments}
    copies = [event for event in events if event.event is LogEventKind.REMOTE_COPIED and event.offset is not None]
    for part in parts:
        if part.coverage is None:
            continue
        unconfirmed = part.coverage.offsets.get(OffsetClass.UNCONFIRMED.value, 0)
        if unconfirmed:
            yield NotAudited(
                part.directory.name, _unconfirmed(part, part.coverage, unconfirmed) + _copied(part, copies)
            )
        elif part.coverage.offsets.get(OffsetClass.REMOTE.value) and part.directory.name not in completed:
            yield NotAudited(part.directory.name, _in_remote_storage(part, part.coverage))
        ranges = [found for found in part.coverage.ranges if found.incomplete]
        for reason, same in groupby(ranges, key=lambda found: found.reason):
            found, *others = same
            last = " on" if found.last_offset is None else f"..{found.last_offset}"
            more = f" and {len(others)} more ranges" if others else ""
            text = f"offsets {found.first_offset}{last}{more} are not accounted for: {reason}"
            yield NotAudited(part.directory.name, text, unreadable=True)


def _not_read(part: PartitionAudit, local_start: int) -> str:
    """Say what is known of the records in remote storage, before those from `local_start` on."""
    if part.continued_from is None:
        return "which was not read (--remote LOCATION reads it), nor what producers and transactions did there"
    known = f"is not known: there is no valid producer snapshot at {local_start}"
    if part.continued_from:
        known = f"is known by {part.continued_from} alone: the state in which they left each producer"
    return f"which was not read (--remote LOCATION reads it); what producers and transactions did there {known}"


def _unconfirmed(part: PartitionAudit, account: Coverage, offsets: int) -> str:
    """Say which offsets are in remote storage or lost, as no record says which."""
    first, start = account.log_start_offset, account.log_start_offset + offsets
    place = "and there is no segment with them" if part.directory.remote_segments else _not_read(part, start)
    return (
        f"offsets {first}..{start - 1} are not on this disk: by {account.log_start_source} they are in remote storage, {place}; "
        f"no record of {REMOTE_LOG} names them, so whether all of them are there is not known"
    )


def _copied(part: PartitionAudit, copies: Iterable[LogEvent]) -> str:
    """Say how far brokers had copied by their logs, which know nothing of what was deleted since."""
    place = part.directory.topic, part.directory.partition
    own = [(event.offset or 0, event) for event in copies if (event.topic, event.partition) == place]
    if not own:
        return ""
    offset, event = max(own, key=itemgetter(0))
    return f" (copies had reached offset {offset} by {event.line_name})"


def _in_remote_storage(part: PartitionAudit, account: Coverage) -> str:
    """Say which offsets were not read, and what is known of the segments that have them."""
    first, remote = account.log_start_offset, account.remote
    assert remote is not None, "records of __remote_log_metadata confirm them"
    holes = (
        f", but for {counted(remote.holes, 'offset')} that {'is' if remote.holes == 1 else 'are'} in neither"
        if remote.holes
        else ""
    )
    both = (
        f"; {counted(remote.also_local, 'offset')} from {remote.local_start_offset} on are in both"
        if remote.also_local
        else ""
    )
    meet = f"{counted(remote.segments, 'segment')} up to {remote.last_offset} meet the log here at {remote.local_start_offset}"
    return (
        f"offsets {first}..{remote.local_start_offset - 1} are not on this disk: by {REMOTE_LOG} they are in remote storage "
        f"({meet}{holes}{both}), {_not_read(part, remote.local_start_offset)}"
    )


def _reason(parts: Iterable[PartitionAudit], reason: str) -> Iterator[NotAudited]:
    names = [part.directory.name for part in parts]
    if names:
        yield NotAudited(first_of(names), reason)


_NEAREST = 3
_LISTED = 10


def empty_inputs(layout: Layout) -> Iterator[NotAudited]:
    """Yield the inputs that held nothing to audit, and no blocks of producer ids either."""
    for entry in layout.empty_inputs:
        uri = Uri.parse(entry.path)
        files = find_zookeeper_files(Path(uri.path)) if uri.is_local and Path(uri.path).is_dir() else None
        if files is None or not (files.logs or files.snapshots):
            yield NotAudited(entry.path, entry.reason, asked_for=True)


def missing_from_inputs(options: ScanOptions, layout: Layout) -> Iterator[NotAudited]:
    """Yield the inputs that held nothing, and what was asked for and none of them holds."""
    yield from empty_inputs(layout)
    yield from missing_partitions(options, layout.everything)


def inputs_without_choice(
    options: ScanOptions, chosen: Sequence[PartitionDirectory], others: Sequence[PartitionDirectory]
) -> Iterator[NotAudited]:
    """Yield the inputs from which the filters chose no partition: they hold only `others`."""
    for path in options.paths:
        place = Uri.parse(path)
        if _any_in(place, others) and not _any_in(place, chosen):
            yield NotAudited(path, "holds no partition that was asked for", asked_for=True)


def _any_in(place: Uri, partitions: Sequence[PartitionDirectory]) -> bool:
    ends = (segment for entry in partitions for segment in (*entry.segments[:1], *entry.segments[-1:]))
    return any(Uri.parse(segment.path).lies_in(place) for segment in ends)


def missing_partitions(options: ScanOptions, found: Sequence[PartitionDirectory]) -> Iterator[NotAudited]:
    """Yield the topics and partitions asked for that are not among those found."""
    topics = sorted({directory.topic for directory in found})
    for topic in options.topics:
        if topic not in topics:
            near = suggestion(topic, topics) or f"; topics there: {_listed(topics)}"
            yield NotAudited(f"--topic {topic}", f"no such topic{near}", asked_for=True)
    of_topics = [entry for entry in found if not options.topics or entry.topic in options.topics]
    numbers = sorted({directory.partition for directory in of_topics})
    for number in options.partitions if of_topics else ():
        if number not in numbers:
            there = f"no such partition; there: {_listed(map(str, numbers))}"
            yield NotAudited(f"--partition {number}", there, asked_for=True)


def missing_producers(
    options: ScanOptions, ids_of: Iterable[NDArray[np.int64]], known: Iterable[int | None]
) -> Iterator[NotAudited]:
    """Yield the producer ids asked for that are neither in the logs nor `known` from elsewhere.

    `ids_of` are the ids of each partition.
    """
    if not options.producer_ids:
        return
    there = np.unique(np.concatenate([*ids_of, np.empty(0, dtype=np.int64)]))
    for producer_id in sorted(set(options.producer_ids) - set(known)):
        at = int(np.searchsorted(there, producer_id))
        if at == len(there) or there[at] != producer_id:
            yield NotAudited(missing_producer(producer_id), _near(producer_id, there), asked_for=True)


def missing_producer(producer_id: int) -> str:
    """Return how the result names a producer id that was asked for."""
    return f"--producer-id {producer_id}"


def _near(producer_id: int, there: NDArray[np.int64]) -> str:
    if not len(there):
        return "no such producer id: there are none in these logs"
    nearest = np.sort(there[np.argsort(np.abs(there - producer_id), kind="stable")[:_NEAREST]]).tolist()
    if len(there) <= _NEAREST:
        return f"no such producer id; there: {_listed(map(str, nearest))}"
    return f"no such producer id; nearest: {_listed(map(str, nearest))} ({len(there):,} ids from {there[0]} to {there[-1]})"


def _listed(names: Iterable[str]) -> str:
    all_names = list(names)
    more = len(all_names) - _LISTED
    return ", ".join(all_names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
