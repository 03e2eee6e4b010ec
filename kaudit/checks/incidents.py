"""Which findings have one cause: the rules, and the ids of the incidents they make.

A rule names what a finding is about: two findings about the same thing are one incident. What is in doubt stays apart.
Findings of one topic partition are put together where they are made; how these groups belong together across partitions
follows from numbers alone, a few bytes each (incident_groups.py).
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from kaudit.model.coordinator import TransactionStanding, application_of
from kaudit.model.finding import Finding

_Subject = Hashable
"""What a finding is about; equal where two findings are about the same, or a Moment."""
_Subjects = Iterable[tuple[Finding, _Subject]]

REQUEST_TIMEOUT_MS = 30_000
"""request.timeout.ms: producers that a leader change interrupts have turned to the new leader by then."""
TRANSACTION_TIMEOUT_MS = 60_000
"""transaction.timeout.ms of the Java producer: what one transaction wrote lies within it."""

_DAMAGE = frozenset(("KA001", "KA002", "KA003", "KA004", "KA005", "KA006", "KA007", "KA008", "KA009", "KA010", "KA012"))
_COMPARED = frozenset(("KA601", "KA602", "KA603"))
_INDEXES = frozenset(("KA503", "KA504"))


class Rule(Struct, frozen=True):
    """One kind of cause: `title` names it for people, `subjects` what each of the findings with these codes is about.

    `across`: what is no Moment may be what findings of other topic partitions are about too.
    """

    cause: str
    title: str
    codes: frozenset[str]
    subjects: Callable[[Sequence[Finding]], _Subjects]
    across: bool = False


class Moment(Struct, frozen=True):
    """A time in ms: of those with the same key, what lies at most `span_ms` after the first is about the same."""

    key: Hashable
    span_ms: int
    at_ms: int


def rule_of(findings: Sequence[Finding]) -> Rule | None:
    """Return the first rule by which two findings of an incident belong together, None where there is none."""
    distinct = list({finding.fingerprint: finding for finding in findings}.values())
    if len(distinct) < len(findings) and len(distinct) == 1:
        return RULES[-1]
    return next((rule for rule in RULES if _links(rule, distinct)), None)


def subjects_of(rule: Rule, findings: Sequence[Finding]) -> _Subjects:
    """Return what the findings that the rule is for are about."""
    return rule.subjects([finding for finding in findings if finding.code in rule.codes or not rule.codes])


def windows(moments: Iterable[Moment]) -> dict[Moment, int]:
    """Return, for each moment, the time of the first of those it is about the same as."""
    starts: dict[Moment, int] = {}
    latest: dict[tuple[Hashable, int], int] = {}
    for moment in sorted(set(moments), key=lambda moment: moment.at_ms):
        key = moment.key, moment.span_ms
        start = latest.get(key)
        if start is None or moment.at_ms - start > moment.span_ms:
            start = latest[key] = moment.at_ms
        starts[moment] = start
    return starts


def _links(rule: Rule, findings: Sequence[Finding]) -> bool:
    subjects = [subject for _, subject in subjects_of(rule, findings)]
    starts = windows(subject for subject in subjects if isinstance(subject, Moment))
    resolved = [
        (subject.key, starts[subject]) if isinstance(subject, Moment) else (subject, None) for subject in subjects
    ]
    return len(set(resolved)) < len(resolved)


def _each(subject: Callable[[Finding], _Subject]) -> Callable[[Sequence[Finding]], _Subjects]:
    """Make `subjects` of what a finding alone says; None is nothing."""

    def subjects(findings: Sequence[Finding]) -> _Subjects:
        return ((finding, about) for finding in findings if (about := subject(finding)) is not None)

    return subjects


def _partition(finding: Finding) -> _Subject:
    return finding.topic, finding.partition


def _copies(findings: Sequence[Finding]) -> _Subjects:
    """What has one fingerprint; a replica has nothing twice."""
    if len({(finding.replica, finding.log_dir) for finding in findings}) > 1:
        yield from ((finding, finding.fingerprint) for finding in findings)


def _epoch(finding: Finding) -> _Subject:
    return None if finding.producer_id is None else (finding.producer_id, finding.producer_epoch)


def _producer(finding: Finding) -> _Subject:
    return finding.producer_id


def _batch(finding: Finding) -> _Subject:
    """The batch or marker that a producer's state did not allow; a silence alone is about none."""
    if (
        finding.producer_id is None
        or finding.offset is None
        or _value(finding.evidence, "class") in ("idle", "went-on")
    ):
        return None
    return finding.topic, finding.partition, finding.producer_id, finding.offset


def _topic(finding: Finding) -> _Subject:
    return finding.topic


def _hole_in_history(finding: Finding) -> _Subject:
    """Where in the history of blocks an id is missing."""
    evidence = finding.evidence
    around = [_value(evidence.get(name), "start") for name in ("block_below", "next_block")]
    return _value(evidence, "class"), *around


def _shared_ids(findings: Sequence[Finding]) -> _Subjects:
    for finding in findings:
        granted_twice = finding.evidence.get("seen_ids")
        ids = granted_twice if isinstance(granted_twice, Sequence) else (finding.producer_id,)
        yield from ((finding, producer_id) for producer_id in ids if isinstance(producer_id, int))


def _transactions(findings: Sequence[Finding]) -> _Subjects:
    """A transaction in its partitions: of one producer and epoch, begun within a transaction's timeout.

    In one partition it is known by its first offset. Ongoing transactions of one application, as the numbering of their
    transactional ids shows it, are left open together when it fails: their last batches lie within a transaction's timeout.
    """
    for finding in findings:
        open_since = _value(finding.evidence.get("remembered"), "current_txn_start_offset")
        at = finding.offset if open_since is None else open_since
        yield finding, (finding.topic, finding.partition, _epoch(finding), at)
        if (at_ms := _first_timestamp(finding)) >= 0:
            yield finding, Moment(_epoch(finding), TRANSACTION_TIMEOUT_MS, at_ms)
        if _value(finding.evidence, "coordinator") == TransactionStanding.ONGOING.value:
            name, last_ms = (_value(finding.evidence, part) for part in ("transactional_id", "last_timestamp"))
            application = application_of(name) if isinstance(name, str) else None
            if application is not None and isinstance(last_ms, int):
                yield finding, Moment(application, TRANSACTION_TIMEOUT_MS, last_ms)


def _decisions(finding: Finding) -> _Subject:
    """The decision of a coordinator: its offset in __transaction_state."""
    at = _value(finding.evidence, "decided_at_offset")
    return None if at is None else (_value(finding.evidence, "transactional_id"), at)


def _leader_changes(findings: Sequence[Finding]) -> _Subjects:
    """A change of leaders: partitions and producers that went on under a new leader epoch at the same time."""
    moved = [(finding, began) for finding in findings if (began := _new_leader_epoch(finding)) is not None]
    for finding, began in moved:
        if began.at_ms >= 0:
            yield finding, Moment(None, REQUEST_TIMEOUT_MS, began.at_ms)
        # a check that knows the change itself has said who was part of it, however late
        if began.at_ms < 0 or "leader_epoch" in finding.evidence:
            yield finding, (finding.topic, finding.partition, began.leader_epoch)


class _Began(Struct, frozen=True):
    """A batch under a newer leader epoch than the one before it, or than the batch another replica has in its place."""

    leader_epoch: int
    at_ms: int


def _new_leader_epoch(finding: Finding) -> _Began | None:
    copies = finding.evidence.get("copies")
    if isinstance(copies, Mapping):
        by_epoch = sorted(_begun(batch) for batch in copies.values())
    else:
        by_epoch = [_begun(finding.evidence.get(name)) for name in ("previous", "offending")]
    if not by_epoch:
        return None
    (before, _), newest = by_epoch[0], max(by_epoch)
    return _Began(*newest) if 0 <= before < newest[0] else None


def _begun(batch: object) -> tuple[int, int]:
    """Return the batch's leader epoch and time, -1 for what it does not say."""
    epoch, time = _value(batch, "leader_epoch"), _value(batch, "timestamp")
    return epoch if isinstance(epoch, int) else -1, time if isinstance(time, int) else -1


def _damages(findings: Sequence[Finding]) -> _Subjects:
    """Damaged or missing bytes: offsets that touch in one log, what the producers lack there, and the segment's indexes."""
    for key, held in _sorted_groups(findings, _partition):
        ranges = _ranges([finding for finding in held if finding.code in _DAMAGE])
        yield from ((finding, (key, found.replica, found.first)) for found in ranges for finding in found.findings)
        segments: dict[object, list[_Range]] = {}
        for found in ranges:
            for segment in {finding.segment for finding in found.findings if finding.segment is not None}:
                segments.setdefault((found.replica, segment), []).append(found)
        by_replica = {replica: list(same) for replica, same in groupby(ranges, key=lambda found: found.replica)}
        for finding in held:
            hit: Iterable[_Range] = ()
            if finding.code in _INDEXES:
                same = segments.get((finding.replica or "", finding.segment), ())
                hit = same if len(same) == 1 else ()
            elif finding.code not in _DAMAGE:
                replicas = by_replica if finding.code in _COMPARED else [finding.replica or ""]
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


def _divergences(findings: Sequence[Finding]) -> _Subjects:
    """Where replicas of a partition part: what the checks of replicas say of offsets that touch."""
    for key, held in _sorted_groups(findings, _partition):
        ranges = _ranges([replace(finding, replica=None) for finding in held])
        for finding in held:
            found = _range_at(ranges, finding)
            if found is not None:
                yield finding, (key, found.first)


def _sorted_groups(
    findings: Iterable[Finding], key: Callable[[Finding], _Subject]
) -> Iterator[tuple[_Subject, list[Finding]]]:
    groups: dict[_Subject, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    yield from groups.items()


def _first_timestamp(finding: Finding) -> int:
    value = finding.evidence.get("first_timestamp")
    return value if isinstance(value, int) else _begun(finding.evidence.get("offending"))[1]


def _value(mapping: object, name: str) -> int | str | None:
    """Return a plain value: a saved scan may hold anything."""
    value = mapping.get(name) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, int | str) else None


def _codes(*codes: str) -> frozenset[str]:
    return frozenset(codes)


RULES: Sequence[Rule] = (
    Rule("damage", "damaged or missing bytes", _DAMAGE | _COMPARED | _INDEXES | _codes("KA104"), _damages),
    Rule("divergence", "replicas that differ", _COMPARED, _divergences),
    Rule("leader-change", "a change of leaders", _codes("KA104", "KA206", "KA601", "KA704"), _leader_changes),
    Rule(
        "epoch-bump",
        "a producer raised its epoch",
        _codes("KA202", "KA203", "KA206", "KA704"),
        _each(_epoch),
        across=True,
    ),
    Rule("zombie", "a fenced producer writes on", _codes("KA201"), _each(_epoch), across=True),
    Rule("transaction", "transactions without an end", _codes("KA301", "KA302", "KA303", "KA304"), _transactions),
    Rule(
        "decision",
        "markers other than their coordinator decided",
        _codes("KA306", "KA308"),
        _each(_decisions),
        across=True,
    ),
    Rule("shared-producer-id", "one producer id for two producers", _codes("KA402", "KA404"), _shared_ids, across=True),
    Rule(
        "unallocated-ids",
        "producer ids that were never allocated",
        _codes("KA401"),
        _each(_hole_in_history),
        across=True,
    ),
    Rule(
        "client-sequences", "a client that counts sequences its own way", _codes("KA107"), _each(_producer), across=True
    ),
    Rule("epochs-used-up", "a producer id with few epochs left", _codes("KA204"), _each(_producer), across=True),
    Rule("session", "a session repeats another's records", _codes("KA701"), _each(_epoch), across=True),
    Rule("retries", "retries without idempotence", _codes("KA702", "KA703"), _each(_topic), across=True),
    Rule(
        "producer-state",
        "a producer's state that the broker had lost or never had",
        _codes(
            "KA101", "KA102", "KA103", "KA104", "KA105", "KA106", "KA201", "KA202", "KA205", "KA303", "KA801", "KA803"
        ),
        _each(_batch),
    ),
    Rule("replicas", "one fault on several replicas", frozenset(), _copies),
)
"""In the order in which they name an incident; the last one is about every finding."""
