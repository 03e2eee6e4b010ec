"""The rules by which findings have one cause, and how checks take part in them.

A rule names the subject of a finding: two findings with the same subject are one incident. Doubtful cases stay apart.
A check declares the rules in which it takes part; incident_groups.py builds the incidents.
"""

import enum
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from kaudit.model.coordinator import TransactionStanding
from kaudit.model.evidence_parts import BatchEvidence
from kaudit.model.finding import Finding
from kaudit.model.grouping import grouped
from kaudit.model.transactional_ids import application_of

_Subject = Hashable
"""The subject of a finding: equal where two findings are about the same thing, or a Near."""
_Subjects = Iterable[tuple[Finding, _Subject]]

REQUEST_TIMEOUT_MS = 30_000
"""request.timeout.ms: producers that a leader change interrupts have turned to the new leader by then."""
TRANSACTION_TIMEOUT_MS = 60_000
"""transaction.timeout.ms of the Java producer: what one transaction wrote lies within it."""


class Part(enum.Enum):
    """The role of a check's findings in incidents of a rule."""

    MEMBER = "findings that the rule compares by their subjects"
    INDEX = "an index of the segment that is damaged"
    COPY = "a comparison of replicas at damaged offsets"
    LACKING = "sequences that producers lack at damaged offsets of the same replica"
    SYMPTOM = "what a trouble of a producer leaves, and what single accidents leave as well"


_Parts = Mapping[str, Part]
"""The role of each check in a rule, by code."""


class Rule(Struct, frozen=True, eq=False):
    """One kind of cause: `title` names it for people, `subjects` yields the subjects of findings whose checks take part.

    `across`: findings of other topic partitions may have the same subject, unless it is a Near.
    """

    cause: str
    title: str
    subjects: Callable[[Sequence[Finding], _Parts], _Subjects]
    across: bool = False

    def as_part(self, part: Part) -> "Membership":
        """Return the declaration of a check that takes a role other than MEMBER."""
        return Membership(self, part)


class Membership(Struct, frozen=True, eq=False):
    """The role of a check in incidents of one rule."""

    rule: Rule
    part: Part = Part.MEMBER


class Near(Struct, frozen=True):
    """A time in ms as a subject: times with one key that lie at most `span_ms` after the first are the same subject."""

    key: Hashable
    span_ms: int
    at_ms: int


def windows(times: Iterable[Near]) -> dict[Near, int]:
    """Return, for each time, the first time of its window: times in one window are the same subject."""
    starts: dict[Near, int] = {}
    latest: dict[tuple[Hashable, int], int] = {}
    for time in sorted(set(times), key=lambda time: time.at_ms):
        key = time.key, time.span_ms
        start = latest.get(key)
        if start is None or time.at_ms - start > time.span_ms:
            start = latest[key] = time.at_ms
        starts[time] = start
    return starts


def _each(subject: Callable[[Finding], _Subject]) -> Callable[[Sequence[Finding], _Parts], _Subjects]:
    """Make `subjects` of a function of one finding, which returns None where there is no subject."""

    def subjects(findings: Sequence[Finding], _: _Parts) -> _Subjects:
        return ((finding, about) for finding in findings if (about := subject(finding)) is not None)

    return subjects


def _copies(findings: Sequence[Finding], _: _Parts) -> _Subjects:
    """Findings with one fingerprint on several replicas; one replica has no finding twice."""
    if len({(finding.replica, finding.log_dir) for finding in findings}) > 1:
        yield from ((finding, finding.fingerprint) for finding in findings)


def _epoch(finding: Finding) -> _Subject:
    return None if finding.producer_id is None else (finding.producer_id, finding.producer_epoch)


def _producer(finding: Finding) -> _Subject:
    return finding.producer_id


def _batch(finding: Finding) -> _Subject:
    """The batch or marker that does not fit the producer's state; None where a finding is only about a silence."""
    if finding.producer_id is None or finding.offset is None:
        return None
    if finding.evidence.kind in ("idle", "went-on"):
        return None
    return finding.topic, finding.partition, finding.producer_id, finding.offset


def _topic(finding: Finding) -> _Subject:
    return finding.topic


def _hole_in_history(finding: Finding) -> _Subject:
    """The blocks of the history on both sides of an id that is in no block."""
    evidence = finding.evidence
    around = [None if block is None else block.start for block in (evidence.block_below, evidence.next_block)]
    return evidence.kind, *around


def _logged(finding: Finding) -> _Subject:
    """The producer or replica that lines of logs are about."""
    return finding.evidence.subject


def _distress(findings: Sequence[Finding], parts: _Parts) -> _Subjects:
    """A producer whose sends fail again and again, and all that was found of it, in any of its epochs."""
    members = [finding for finding in findings if parts[finding.code] is Part.MEMBER]
    leads = {producer_id: finding.producer_id for finding in members for producer_id in _ids_of(finding)}
    for finding in findings:
        if finding.producer_id in leads:
            yield finding, leads[finding.producer_id]


def _ids_of(finding: Finding) -> Iterable[int | None]:
    return finding.evidence.producer_ids or (finding.producer_id,)


def _shared_ids(findings: Sequence[Finding], _: _Parts) -> _Subjects:
    for finding in findings:
        granted_twice = finding.evidence.seen_ids
        ids = (finding.producer_id,) if granted_twice is None else granted_twice
        yield from ((finding, producer_id) for producer_id in ids if producer_id is not None)


def _transactions(findings: Sequence[Finding], _: _Parts) -> _Subjects:
    """A transaction in its partitions: of one producer and epoch, begun within a transaction's timeout.

    In one partition it is known by its first offset. Ongoing transactions of one application, as the numbering of their
    transactional ids shows it, are left open together when it fails: their last batches lie within a transaction's timeout.
    """
    for finding in findings:
        evidence = finding.evidence
        state = evidence.remembered
        open_since = None if state is None else state.current_txn_start_offset
        at = finding.offset if open_since is None else open_since
        yield finding, (finding.topic, finding.partition, _epoch(finding), at)
        at_ms = _begun(evidence.offending)[1] if evidence.first_timestamp is None else evidence.first_timestamp
        if at_ms >= 0:
            yield finding, Near(_epoch(finding), TRANSACTION_TIMEOUT_MS, at_ms)
        if evidence.coordinator == TransactionStanding.ONGOING.value:
            name, last_ms = evidence.transactional_id, evidence.last_timestamp
            application = None if name is None else application_of(name)
            if application is not None and last_ms is not None:
                yield finding, Near(application, TRANSACTION_TIMEOUT_MS, last_ms)


def _decisions(finding: Finding) -> _Subject:
    """The decision of a coordinator: its offset in __transaction_state."""
    evidence = finding.evidence
    at = evidence.decided_at_offset
    return None if at is None else (evidence.transactional_id, at)


def _leader_changes(findings: Sequence[Finding], _: _Parts) -> _Subjects:
    """A change of leaders: partitions and producers that continued under a new leader epoch at the same time."""
    moved = [(finding, began) for finding in findings if (began := _new_leader_epoch(finding)) is not None]
    for finding, began in moved:
        if began.at_ms >= 0:
            yield finding, Near(None, REQUEST_TIMEOUT_MS, began.at_ms)
        # a check that knows the change itself has said who was part of it, however late
        if began.at_ms < 0 or finding.evidence.leader_epoch is not None:
            yield finding, (finding.topic, finding.partition, began.leader_epoch)


class _Began(Struct, frozen=True):
    """A batch under a newer leader epoch than the one before it, or than the batch another replica has in its place."""

    leader_epoch: int
    at_ms: int


def _new_leader_epoch(finding: Finding) -> _Began | None:
    evidence = finding.evidence
    copies = evidence.copies
    if copies is not None:
        by_epoch = sorted(map(_begun, copies.values()))
    else:
        by_epoch = [_begun(evidence.previous), _begun(evidence.offending)]
    if not by_epoch:
        return None
    (before, _), newest = by_epoch[0], max(by_epoch)
    return _Began(*newest) if 0 <= before < newest[0] else None


def _begun(batch: BatchEvidence | None) -> tuple[int, int]:
    """Return the batch's leader epoch and time, -1 where one of them is not known."""
    if batch is None:
        return -1, -1
    return -1 if batch.leader_epoch is None else batch.leader_epoch, -1 if batch.timestamp is None else batch.timestamp


def _damages(findings: Sequence[Finding], parts: _Parts) -> _Subjects:
    """Damaged or missing bytes: adjacent offsets in one log, the sequences missing there, and the segment's indexes."""
    for key, held in grouped((finding.partition_key, finding) for finding in findings).items():
        ranges = _ranges([finding for finding in held if parts[finding.code] is Part.MEMBER])
        yield from ((finding, (key, found.replica, found.first)) for found in ranges for finding in found.findings)
        segments: dict[object, list[_Range]] = {}
        for found in ranges:
            for segment in {finding.segment for finding in found.findings if finding.segment is not None}:
                segments.setdefault((found.replica, segment), []).append(found)
        by_replica = {replica: list(same) for replica, same in groupby(ranges, key=lambda found: found.replica)}
        for finding in held:
            hit: Iterable[_Range] = ()
            part = parts[finding.code]
            if part is Part.INDEX:
                same = segments.get((finding.replica or "", finding.segment), ())
                hit = same if len(same) == 1 else ()
            elif part is not Part.MEMBER:
                replicas = by_replica if part is Part.COPY else [finding.replica or ""]
                hit = filter(None, (_range_at(by_replica.get(replica, ()), finding) for replica in replicas))
            yield from ((finding, (key, found.replica, found.first)) for found in hit)


class _Range(Struct):
    """Offsets of one replica that neighbouring findings are about, both ends inclusive."""

    replica: str
    first: int
    last: int
    findings: list[Finding]


def _ranges(findings: Sequence[Finding]) -> list[_Range]:
    ranges: list[_Range] = []
    placed = [finding for finding in findings if finding.offset is not None]
    for finding in sorted(placed, key=lambda found: (found.replica or "", *_offsets(found))):
        first, last = _offsets(finding)
        before = ranges[-1] if ranges else None
        if before is not None and before.replica == (finding.replica or "") and first <= before.last + 1:
            before.last = max(before.last, last)
            before.findings.append(finding)
        else:
            ranges.append(_Range(finding.replica or "", first, last, [finding]))
    return ranges


def _range_at(ranges: Sequence[_Range], finding: Finding) -> _Range | None:
    if finding.offset is None:
        return None
    first, last = _offsets(finding)
    place = bisect_right(ranges, last, key=lambda found: found.first) - 1
    return ranges[place] if place >= 0 and ranges[place].last >= first else None


def _offsets(finding: Finding) -> tuple[int, int]:
    first = finding.offset
    assert first is not None
    return first, first if finding.last_offset is None else max(first, finding.last_offset)


def _divergences(findings: Sequence[Finding], _: _Parts) -> _Subjects:
    """Places where replicas of a partition differ: findings about adjacent offsets."""
    for key, held in grouped((finding.partition_key, finding) for finding in findings).items():
        ranges = _ranges([replace(finding, replica=None) for finding in held])
        for finding in held:
            found = _range_at(ranges, finding)
            if found is not None:
                yield finding, (key, found.first)


DAMAGE = Rule("damage", "damaged or missing bytes", _damages)
INDEX_OF_DAMAGE = DAMAGE.as_part(Part.INDEX)
COPY_OF_DAMAGE = DAMAGE.as_part(Part.COPY)
LACKING_BY_DAMAGE = DAMAGE.as_part(Part.LACKING)
DIVERGENCE = Rule("divergence", "replicas that differ", _divergences)
LEADER_CHANGE = Rule("leader-change", "a change of leaders", _leader_changes)
EPOCH_BUMP = Rule("epoch-bump", "a producer raised its epoch", _each(_epoch), across=True)
ZOMBIE = Rule("zombie", "a fenced producer writes on", _each(_epoch), across=True)
TRANSACTION = Rule("transaction", "transactions without an end", _transactions)
DECISION = Rule("decision", "markers other than their coordinator decided", _each(_decisions), across=True)
SHARED_PRODUCER_ID = Rule("shared-producer-id", "one producer id for two producers", _shared_ids, across=True)
UNALLOCATED_IDS = Rule(
    "unallocated-ids", "producer ids that were never allocated", _each(_hole_in_history), across=True
)
CLIENT_SEQUENCES = Rule("client-sequences", "a client that counts sequences its own way", _each(_producer), across=True)
EPOCHS_USED_UP = Rule("epochs-used-up", "a producer id with few epochs left", _each(_producer), across=True)
SESSION = Rule("session", "a session repeats another's records", _each(_epoch), across=True)
RETRIES = Rule("retries", "retries without idempotence", _each(_topic), across=True)
PRODUCER_STATE = Rule("producer-state", "a producer's state that the broker had lost or never had", _each(_batch))
DISTRESS = Rule("distress", "a producer that fails again and again", _distress, across=True)
OF_DISTRESS = DISTRESS.as_part(Part.SYMPTOM)
LOGGED = Rule("logged", "what logs say of one producer", _each(_logged), across=True)
REPLICAS = Rule("replicas", "one fault on several replicas", _copies)
"""The rule for every finding: no check declares it."""

RULES: Sequence[Rule] = (
    DAMAGE,
    DIVERGENCE,
    LEADER_CHANGE,
    DISTRESS,
    EPOCH_BUMP,
    ZOMBIE,
    TRANSACTION,
    DECISION,
    SHARED_PRODUCER_ID,
    UNALLOCATED_IDS,
    CLIENT_SEQUENCES,
    EPOCHS_USED_UP,
    SESSION,
    RETRIES,
    PRODUCER_STATE,
    LOGGED,
    REPLICAS,
)
"""The order decides which rule names an incident."""
