"""Which records the ends of logs held that brokers cut off, and how many of them nobody has any more."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec import Struct, field

from kaudit.model.batch import Batches
from kaudit.model.batch_fields import LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from kaudit.model.evidence_parts import EventEvidence, ShownEvents
from kaudit.model.leader_epochs import NO_LEADER, log_end_of, unheard
from kaudit.model.record_loss import CutBy, CutRecords, LeaderHistory, LeaderStart, LogCut, RefusedSequence
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.log_tail import batches_from, producers_records
from kaudit.source.layout import INTERNAL_TOPICS, PartitionDirectory

MAX_READ: Final = 1 << 18
"""Most batches that are searched after a cut: what is sent again comes soon after the new leader began."""
_LINES_SHOWN: Final = 5
_CLOCKS_DIFFER_MS: Final = 1000
_RETRIED_FOR_MS: Final = 120_000
"""delivery.timeout.ms: what was made before the new leader began comes until then."""


class KnownLog(Struct, frozen=True):
    """The partition's log, in the copy that followed the newest leader: where its leader epochs begin, and what is in it.

    `starts` has (offset, leader epoch) of each change in offset order, `others_records` counts batches of producers without id,
    `bumps` has by leader epoch how many producers raised their own epochs at its beginning, `leaders` by leader epoch which broker led, as
    far as __cluster_metadata is given.
    """

    directory: PartitionDirectory
    log_start: int
    log_end: int
    starts: Sequence[tuple[int, int]]
    others_batches: int
    bumps: Mapping[int, int]
    leaders: Mapping[int, int] = {}


class _Since(Struct):
    """What producers sent since the change: records that may be those cut off again, one batch of each producer id and those of producers without one.

    `refused` are records that were acknowledged before it: they were missing in front of batches that their producers then sent
    again under another epoch. `events` are the lines that refuse them.
    """

    idempotent: int = 0
    others: int = 0
    refused: int = 0
    events: list[EventEvidence] = field(default_factory=list)


def cut_records(history: LeaderHistory, log: KnownLog | None, open_source: OpenSource) -> list[CutRecords]:
    """Return for each leader epoch that began without records of other replicas what is lost, in offset order.

    What a replica cut off and the newest leader's log holds under the older leader epoch was fetched again, and is not lost.

    Raises:
        OSError: a segment of the log cannot be read.

    """
    lost: dict[tuple[int, int | None], list[LogCut]] = {}
    for cut in history.cuts:
        start = _lost_from(cut, history, log)
        if start is not None and start[0] < _end_at_most(cut):
            lost.setdefault(start, []).append(cut)
    for start in _elected_uncleanly(history, log, {epoch for _, epoch in lost}):
        lost[start] = []
    return [
        _cut(first, epoch, cuts, history, log, open_source) for (first, epoch), cuts in sorted(lost.items(), key=_at)
    ]


def _elected_uncleanly(
    history: LeaderHistory, log: KnownLog | None, known: Container[int | None]
) -> Iterator[tuple[int, int]]:
    """Yield where a leader began that was not in sync, and its epoch, where no line shows how much more the one before had."""
    if None in known or has_one_replica(history):
        return
    starts = {leader.leader_epoch: leader.offset for leader in history.leaders}
    starts |= {} if log is None else {epoch: offset for offset, epoch in log.starts}
    harmless = {*changes_without_loss(history)}
    for epoch in dict.fromkeys(history.unclean):
        if epoch and epoch in starts and epoch not in known and epoch not in harmless:
            yield starts[epoch], epoch


def _end_at_most(cut: LogCut) -> float:
    """Return where at most what a cut took away ended, as far as it can be told from what the newest leader's log holds."""
    if cut.end_offset is not None:
        return cut.end_offset
    # a follower that recovers up to damaged bytes fetches the rest again: only a leader begins there without it
    return cut.offset + 1 if cut.by is CutBy.LOADED and cut.at_least is None else math.inf


def changes_without_loss(history: LeaderHistory) -> Iterator[int]:
    """Yield the leader epochs at whose beginning the leader before had no more than the new one, as both say of the logs they had then."""
    starts = sorted(history.leaders, key=lambda leader: leader.leader_epoch)
    for before, after in pairwise(starts):
        ends = [
            follower.end_offset
            for follower in history.followers
            if follower.broker == before.broker and follower.leader_epoch == after.leader_epoch and not follower.anew
        ]
        if before.broker == after.broker or (ends and ends[0] <= after.offset):
            yield after.leader_epoch


def has_one_replica(history: LeaderHistory) -> bool:
    """Whether one broker made the log and never followed another, lost or removed its end: no leader epoch began without records.

    It follows nobody until it is elected again; after a crash that is an unclean election to brokers with KIP-966.
    """
    followed = any(follower.leader != NO_LEADER for follower in history.followers)
    changed = followed or history.cuts or history.removed
    return len(history.created_by) == 1 and history.seen_by == history.created_by and not changed


def lines_told(
    histories: Iterable[LeaderHistory], is_read: Callable[[str, int], bool]
) -> set[tuple[str | None, int | None]]:
    """Return the lines, by path and number, of cuts of which `cut_records` says what was lost."""
    return {
        (event.path, event.line)
        for history in histories
        for cut in history.cuts
        if is_read(history.topic, history.partition) or _lost_from(cut, history, None) is not None
        for event in cut.events
    }


def _at(entry: tuple[tuple[int, int | None], object]) -> int:
    return entry[0][0]


def _lost_from(cut: LogCut, history: LeaderHistory, log: KnownLog | None) -> tuple[int, int | None] | None:
    """Return where, from the cut on, a newer leader began, and its epoch; None where nothing shows that one did."""
    followed = _cut_further(cut, history)
    if followed is not None:
        return _lost_from(followed, history, log)
    if log is not None and log.log_start <= cut.offset:
        for offset, epoch in log.starts:
            if offset >= cut.offset and epoch > 0:  # a log that begins with leader epoch 0 was there before any change
                # what it cut off had other leader epochs than its leader's log, which no later leader could put back
                lacked = cut.by is CutBy.LEADER_EPOCH and cut.followed is not None and epoch <= cut.followed
                return cut.offset if lacked else offset, epoch
        return log.log_end, None
    others = (leader for leader in history.leaders if leader.broker != cut.broker and leader.leader_epoch > 0)
    leaders = [leader for leader in others if leader.offset >= cut.offset]
    if leaders:
        first = min(leaders, key=lambda leader: (leader.offset, leader.leader_epoch))
        return first.offset, first.leader_epoch
    return None if cut.by is CutBy.FOLLOWING else (cut.offset, None)


def _cut_further(cut: LogCut, history: LeaderHistory) -> LogCut | None:
    """Return the cut by which a broker that had found less when it started cut off still more to follow its leader; None where none did."""
    if cut.by is not CutBy.LOADED:
        return None
    later = (each for each in history.cuts[history.cuts.index(cut) + 1 :] if each.broker == cut.broker)
    return next((each for each in later if each.by is not CutBy.LOADED and each.offset < cut.offset), None)


def _cut(  # noqa: PLR0913, PLR0917 - independent inputs
    first: int,
    epoch: int | None,
    cuts: Sequence[LogCut],
    history: LeaderHistory,
    log: KnownLog | None,
    open_source: OpenSource,
) -> CutRecords:
    ends = [cut.end_offset for cut in cuts]
    end = None if None in ends else max(filter(None, ends), default=None)
    marks = [cut.at_least for cut in cuts if cut.at_least is not None]
    leaders = [leader for leader in history.leaders if leader.leader_epoch == epoch]
    began = _began(history, epoch)
    bumps = 0 if log is None or epoch is None else log.bumps.get(epoch, 0)
    unclean = any(own in (None, epoch) for own in history.unclean)
    count = None if end is None else end - first
    known = max([int(bool(cuts)), *(at - first for at in (*ends, *marks) if at is not None)])
    again = _Since() if log is None else _sent_since(log, (first, epoch), known, began, history.refused, open_source)
    shown = [*(leader.event for leader in leaders[:1]), *(event for cut in cuts for event in cut.events), *again.events]
    unacknowledged = (bool(cuts) and all(cut.nothing_committed for cut in cuts)) or (
        count is not None and again.idempotent >= count
    )
    nothing = not bumps and not unclean and _all_sent_again(history, leaders, cuts, log, unacknowledged=unacknowledged)
    least = 0 if log is None else max(known - again.idempotent - again.others, again.refused)
    others = _led_by_others(first, epoch, cuts, history, log)
    return CutRecords(
        topic=history.topic,
        partition=history.partition,
        first_offset=first,
        end_offset=end,
        leader_epoch=epoch,
        brokers=list(dict.fromkeys(cut.broker for cut in cuts)),
        high_watermark=max(marks, default=None),
        idempotent_sent_again=again.idempotent,
        others_sent_again=again.others,
        records_lost_at_least=0 if nothing else least,
        records_lost_at_most=0 if nothing else None if others else count,
        raised_epochs=bumps,
        unclean=unclean,
        partition_read=log is not None,
        back_with_less=list(dict.fromkeys(cut.broker for cut in cuts if cut.by is CutBy.LOADED)),
        began_ms=began,
        cut_ms=min((cut.at_ms for cut in cuts if cut.at_ms is not None), default=None),
        shown=ShownEvents(shown[:_LINES_SHOWN], len(shown)),
        unknown=[
            *_unknown(log, cuts, leaders, 0 if nothing else again.others),
            *([] if nothing else others[-1:]),
        ],
        has_followers=bool(_to_follow(history, epoch) - {cut.broker for cut in cuts}),
    )


def _to_follow(history: LeaderHistory, epoch: int | None) -> set[str]:
    """Return the brokers that lines name as followers, or as leaders of followers, and that have not followed a leader of this leader epoch."""
    named = {f"broker {each.leader}" for each in history.followers if each.leader not in (None, NO_LEADER)}
    followed = {each.broker for each in history.followers if epoch is not None and each.leader_epoch >= epoch}
    return named.union(each.broker for each in history.followers) - followed


def _led_by_others(
    first: int, epoch: int | None, cuts: Sequence[LogCut], history: LeaderHistory, log: KnownLog | None
) -> list[str]:
    """Return what would show how long the logs of other leaders were: of those from the last leader epoch of the logs that were cut off to this one."""
    if epoch is None or any(cut.by is CutBy.LOADED and cut.end_offset is not None for cut in cuts):
        return []
    leaders = {leader.leader_epoch: leader.broker for leader in history.leaders}
    if log is not None:
        leaders |= {own: f"broker {leader}" for own, leader in log.leaders.items() if leader != NO_LEADER}
    brokers = {cut.broker for cut in cuts if cut.end_offset is not None}
    followed = [each.leader_epoch for each in history.followers if each.broker in brokers]
    led = [each.leader_epoch for each in history.leaders if each.broker in brokers]
    led += [own for own, leader in leaders.items() if leader in brokers]
    held = [] if log is None else [own for offset, own in log.starts if offset < first]
    known = max((own for own in (*followed, *led, *held) if own < epoch), default=0)
    if not cuts:
        return [log_end_of(known, leaders.get(known))]
    others = unheard(known, epoch, {} if log is None else log.leaders)
    if known in followed and known not in led:
        others.insert(0, known)
    return [log_end_of(own, leaders.get(own)) for own in others if leaders.get(own) not in brokers]


def _began(history: LeaderHistory, epoch: int | None) -> int | None:
    """Return when a leader epoch had begun, by the first line that names it."""
    leaders = [leader.at_ms for leader in history.leaders if leader.leader_epoch == epoch]
    followers = [follower.at_ms for follower in history.followers if follower.leader_epoch == epoch]
    return min((at for at in (*leaders, *followers) if at is not None), default=None)


def _all_sent_again(
    history: LeaderHistory,
    leaders: Sequence[LeaderStart],
    cuts: Sequence[LogCut],
    log: KnownLog | None,
    *,
    unacknowledged: bool,
) -> bool:
    """Whether all that was cut off had not been acknowledged: idempotent producers and coordinators wait for all replicas in sync.

    They send it again, with the same sequences. A leader that was in sync has all that was acknowledged to them, unless it lost
    the end of its own log since.
    `unacknowledged`: so shows the high watermark, or what they sent first after the change is no less than what was cut off.
    """
    short = {cut.broker for cut in cuts if cut.by is CutBy.LOADED}
    if any(leader.broker in short for leader in leaders):
        return False
    clean = any(leader.states_recovery for leader in leaders)
    if history.topic in INTERNAL_TOPICS:
        return clean or unacknowledged
    return log is not None and not log.others_batches and (clean or unacknowledged)


def _unknown(
    log: KnownLog | None, cuts: Sequence[LogCut], leaders: Sequence[LeaderStart], others_sent_again: int
) -> Iterator[str]:
    """Yield what to fetch and, after a colon, what it would show."""
    if log is None:
        yield "the partition's directory of its leader: which of these records were sent again"
    for broker in dict.fromkeys(cut.broker for cut in cuts if cut.end_offset is None):
        yield f"server.log of {broker} from before: where its log ended until it was cut off"
    if not leaders:
        yield "server.log of the new leader: when it began, and whether it had been in sync"
    if others_sent_again:
        yield "the logs of producers without producer ids: which of these records they sent again"


def _sent_since(  # noqa: PLR0913, PLR0917 - independent inputs
    log: KnownLog,
    change: tuple[int, int | None],
    most: int,
    began_ms: int | None,
    refusals: Sequence[RefusedSequence],
    open_source: OpenSource,
) -> _Since:
    """Count the records that may be among those cut off, up to `most`, from the beginning of a leader epoch on: retries keep their timestamps.

    `change` is the first offset that was cut off, and that epoch.

    The old leader read the next request of a connection only once it had answered the one before (SocketServer mutes it), so it
    held at most one batch of each idempotent producer that the replicas in sync did not have. Producers without id
    may have sent all again that they made before the new leader began.
    """
    cut, epoch = change
    first = max([cut, *(offset for offset, own in log.starts if own == epoch)])
    latest = None if began_ms is None else began_ms + _CLOCKS_DIFFER_MS
    missing = _missing(refusals, began_ms)
    found = _Since()
    seen: set[int] = set()
    read = 0
    last_before = 0
    for batches in batches_from(log.directory, open_source, max(first - 1, 0)):
        counts = producers_records(batches)
        own = batches["base_offset"] >= first
        last_before = max([last_before, *batches["max_timestamp"][~own].tolist()])
        old = own & (counts > 0) & _made_before(batches, latest)
        ids = batches["producer_id"]
        found.others += int(counts[old & (ids < 0)].sum())
        for place in np.flatnonzero(own & (counts > 0) & (ids >= 0)).tolist():
            producer_id = int(ids[place])
            if producer_id in seen:
                continue
            seen.add(producer_id)
            refusal = missing.get(producer_id)
            if refusal is not None and batches["base_sequence"][place] == 0 and _nothing_given_up(refusal, last_before):
                found.refused += refusal.missing
                found.events.append(refusal.event)
            elif old[place]:
                found.idempotent += int(counts[place])
        read += len(batches)
        if read > MAX_READ or (found.idempotent + found.others >= most and missing.keys() <= seen):
            break
        if latest is not None and (batches["base_timestamp"] > latest + _RETRIED_FOR_MS).all():
            break
    return found


def _missing(refusals: Iterable[RefusedSequence], began_ms: int | None) -> Mapping[int, RefusedSequence]:
    """Return of each producer id the refusal since then in front of which the least was missing: later batches in flight are refused too."""
    since = (each for each in refusals if began_ms is None or each.at_ms is None or each.at_ms >= began_ms)
    return {each.producer_id: each for each in sorted(since, key=lambda each: -each.missing)}


def _nothing_given_up(refusal: RefusedSequence, last_before: int) -> bool:
    """Whether what is missing was acknowledged: a producer that sends again under another epoch what is refused had an answer for all before.

    Unless it gave them up, which takes it delivery.timeout.ms (TransactionManager.canRetry, Sender.sendProducerData).
    """
    return refusal.at_ms is not None and refusal.at_ms <= last_before + _RETRIED_FOR_MS


def _made_before(batches: Batches, latest: int | None) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whether the first record of each batch may have been made by then; the broker's own timestamps do not say."""
    if latest is None:
        return np.ones(len(batches), dtype=bool)
    by_broker = batches["attributes"] & LOG_APPEND_TIME_FLAG != 0
    times = batches["base_timestamp"]
    unknown = by_broker | (times <= NO_TIMESTAMP)
    made: np.ndarray[tuple[int], np.dtype[np.bool_]] = unknown | (times <= latest)
    return made
