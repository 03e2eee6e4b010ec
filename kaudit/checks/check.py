"""A check: its code, its name, how severe it is, what evidence it needs, and the function that turns that into findings.

A check is a function decorated with `check`, and a page of the function's name beside its module. Checks that report alike are in
one module. Findings are made by `Check.finding` only, so that no code is ever typed where a finding is made.
"""

import enum
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from msgspec import Struct

from kaudit.broker.producer_state.rules import is_ahead
from kaudit.checks.context import Context
from kaudit.checks.incident_rules import Membership, Rule
from kaudit.checks.listed import Listed
from kaudit.checks.log_causes import LogCause
from kaudit.model.evidence import NO_EVIDENCE, FindingEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.grouping import grouped
from kaudit.model.impact import Impact
from kaudit.model.observation import OUT_OF_ORDER, Observation, ObservationKind
from kaudit.model.sequence import SequenceRanges
from kaudit.model.severity import Confidence, Severity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_T = TypeVar("_T")


class Evidence:
    """Everything observed in one scope - a partition replica, a log directory, a cluster, a set of replicas - by type."""

    def __init__(self, *items: Iterable[object]) -> None:
        self._items: dict[type, list[object]] = {}
        for some in items:
            self.add(some)

    def add(self, items: Iterable[object]) -> None:
        """Add items, each under its own type."""
        for item in items:
            self._items.setdefault(type(item), []).append(item)

    def of(self, kind: type[_T]) -> Sequence[_T]:
        """All items of exactly this type, in the order they were added."""
        return self._items.get(kind, ())  # type: ignore[return-value]  # add() keys items by type

    @functools.cached_property
    def _observations(self) -> Mapping[ObservationKind, Sequence[Observation]]:
        return grouped((observation.kind, observation) for observation in self.of(Observation))

    def observed(self, *kinds: ObservationKind) -> Sequence[Observation]:
        """All observations of these kinds that missing offsets do not explain, those of each kind in offset order."""
        return [found for kind in kinds for found in self._observations.get(kind, ()) if not found.explained]

    @functools.cached_property
    def explained(self) -> Sequence[Observation]:
        """The observations that missing offsets explain, in offset order."""
        found = (each for each in self.of(Observation) if each.explained)
        return sorted(found, key=lambda each: (each.offset, each.producer_id))

    @functools.cached_property
    def _explained_spans(self) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """For each explained observation, the last offset of its producer's batch before it (-1: unknown), and its own offset."""
        import numpy as np  # noqa: PLC0415 - `explain` needs none

        before = [
            found.remembered.last.last_offset if found.remembered and found.remembered.last else -1
            for found in self.explained
        ]
        return np.array(before, dtype=np.int64), np.array([found.offset for found in self.explained], dtype=np.int64)

    def explained_across(self, first: int, last: int) -> Sequence[Observation]:
        """The explained observations of producers with batches before `first` and after `last`, and none in between."""
        if not self.explained:
            return ()
        before, own = self._explained_spans
        at = int(own.searchsorted(last, side="right"))
        return [self.explained[at + index] for index in (before[at:] < first).nonzero()[0].tolist()]

    @functools.cached_property
    def missing_sequences(self) -> SequenceRanges:
        """Sequences that had not come before a later one did, and that no missing offsets explain."""
        observations = self.of(Observation)
        return SequenceRanges(
            found.missing for found in observations if not found.explained and is_ahead(found.missing_sequences)
        )

    @functools.cached_property
    def repeated_sequences(self) -> SequenceRanges:
        """Sequences that came after they, or later ones, had been written."""
        return SequenceRanges(
            found.sequences for found in self.of(Observation) if found.kind in OUT_OF_ORDER and found.batch is not None
        )

    @property
    def kinds(self) -> frozenset[str]:
        """The names of the types of all items."""
        return frozenset(kind.__name__ for kind in self._items)


class Withdrawal(enum.Enum):
    """What may later refute a finding about a log that is still written."""

    NOTHING = "nothing"
    NEXT_READING = "more of its kind, or other files read once more: they were not read at the same time"
    END_OF_TRANSACTION = "the marker of a transaction that is within its timeout"


class Reading(enum.Enum):
    """The part of a log that must be read for a check to report anything."""

    HEADERS = "headers of batches"
    BATCHES = "whole batches"
    RECORDS = "keys and values of records"


class Simulated(Struct, frozen=True):
    """Simulated schedules leave findings of the check: the shipped schedule of this name, or schedules that a search finds."""

    scenario: str = ""


class NoneBecause(Struct, frozen=True):
    """The reason why a check declares nothing of a kind."""

    reason: str


def none_because(reason: str) -> NoneBecause:
    """Declare nothing of a kind, and why; `reason` is for the next maintainer."""
    return NoneBecause(reason)


BYTES_NOT_DAMAGED = none_because("schedules damage no bytes on disk")
SIDE_FILES_NOT_DAMAGED = none_because("side files are written from the simulated state, and schedules damage none")
COORDINATOR_LOSES_NOTHING = none_because(
    "a simulated coordinator writes its states in order to a log that loses none; 5,500 random schedules left no other"
)
BLOCKS_NOT_SCANNED = none_because("no history of producer id blocks is scanned with a schedule")
REPLICAS_NOT_COMPARED = none_because("one leader's log is scanned at a time, no replicas are compared")
CLIENTS_FOLLOW_PROTOCOL = none_because("it takes a client that breaks the protocol, and simulated clients follow it")
ALLOCATIONS_NOT_LOGGED = none_because("controllers and brokers log no allocation that names the ids in question")


class Tolerated(Struct, frozen=True):
    """A number in a finding's evidence that a team may tolerate in a topic, up to a limit.

    `number` reads it; `setting` is the topic's setting of the limit; `reason` is formatted with the limit.
    """

    number: Callable[[FindingEvidence], int | None]
    setting: str
    reason: str


class FindingFields(TypedDict, total=False):
    """Fields of a finding that its check fills in; `position` is a byte in `file`, which is the segment unless given."""

    severity: Severity
    confidence: Confidence
    file: str | None
    position: int | None
    offset: int | None
    last_offset: int | None
    producer_id: int | None
    producer_epoch: int | None
    anchor: str | None
    evidence: FindingEvidence
    explanations: Sequence[Explanation]
    impact: Impact
    absent: Mapping[str, str]


Run = Callable[[Context, Evidence], Iterable[Finding]]


class Check(Listed, frozen=True, eq=False, kw_only=True):
    """One check: what people read of it, and what it does.

    `needs`: it is run where there is evidence of one of these types. `observes`: the kinds of observation it reports.
    `faulty_column`: which column of the table of batches under a finding holds the value that breaks the rule, if any.
    `incident`, `caused_by` and `simulated` say which incidents its findings take part in, which causes logs may show
    of them (the most specific first), and whether simulated schedules leave them. `transactional`: its findings are
    about producers with a transactional id. `compared`: a comparison of replicas reports them. `reads`: what must be read.
    """

    confidence: Confidence
    needs: tuple[type, ...]
    observes: tuple[ObservationKind, ...]
    faulty_column: str
    withdrawn_by: Withdrawal
    incident: Sequence[Rule | Membership] | NoneBecause
    caused_by: Sequence[LogCause] | NoneBecause
    simulated: Simulated | NoneBecause
    transactional: bool
    compared: bool
    reads: Reading
    tolerated: Tolerated | None
    run: Run

    @property
    def memberships(self) -> Sequence[Membership]:
        """The rules of incidents that its findings take part in, and as what."""
        if isinstance(self.incident, NoneBecause):
            return ()
        return [part if isinstance(part, Membership) else Membership(part) for part in self.incident]

    @property
    def causes(self) -> Sequence[LogCause]:
        """The causes that logs may show for its findings, the most specific first."""
        return () if isinstance(self.caused_by, NoneBecause) else self.caused_by

    def finding(
        self,
        context: Context,
        message: str,
        *,
        segment: int | None = None,
        following: Sequence[str] = (),
        **fields: Unpack[FindingFields],
    ) -> Finding:
        """Build a finding about the context's partition; severity and confidence are the check's unless given.

        `segment` is an index into the context's segments, `following` are commands to run next.
        """
        if context.fetched is not None:
            segment, fields = None, _without_place(fields, ("file", "segment", "position"), _SENT)
        elif not context.places_known:
            fields = _without_place(fields, ("position",), _CUT)
        fields.setdefault("severity", self.severity)
        fields.setdefault("confidence", self.confidence)
        if segment is not None:
            fields.setdefault("file", context.file(segment))
        return Finding(
            code=self.code,
            name=self.name,
            message=message,
            topic=context.topic,
            partition=context.partition,
            replica=context.replica,
            log_dir=context.log_dir,
            segment=None if segment is None else context.segments[segment],
            next=following,
            **fields,
        )


_SENT = "brokers sent the batches: they have offsets and no positions"
_CUT = "lines of the text are cut off before the position"


def _without_place(fields: FindingFields, names: Sequence[str], reason: str) -> FindingFields:
    """Remove positions: batches that were fetched have none, and of others the text may not show them."""
    absent = {**fields.get("absent", {}), **dict.fromkeys(names, reason)}
    evidence = fields.get("evidence", NO_EVIDENCE).without_places(crcs=reason is _SENT)
    without: FindingFields = {**fields, "position": None, "absent": absent, "evidence": evidence}
    return {**without, "file": None} if "file" in names else without


def check(  # noqa: PLR0913 - what a check declares, by keyword
    code: str,
    *,
    severity: Severity,
    summary: str,
    since: str = "0.1.0",
    needs: tuple[type, ...] = (Observation,),
    observes: tuple[ObservationKind, ...] = (),
    faulty_column: str = "",
    confidence: Confidence = Confidence.CERTAIN,
    severity_note: str = "",
    withdrawn_by: Withdrawal = Withdrawal.NOTHING,
    incident: Sequence[Rule | Membership] | NoneBecause,
    caused_by: Sequence[LogCause] | NoneBecause,
    simulated: Simulated | NoneBecause,
    transactional: bool = False,
    compared: bool = False,
    reads: Reading = Reading.HEADERS,
    tolerated: Tolerated | None = None,
) -> Callable[[Run], Check]:
    """Make a check of a function; its name is the function's, with hyphens. `since`: the release it came with, if not the first.

    Everything about a check is declared here: incidents, causes from logs, histories and policy read the registry.
    """

    def register(run: Run) -> Check:
        return Check(
            code=code,
            name=run.__name__.replace("_", "-"),
            severity=severity,
            confidence=confidence,
            severity_note=severity_note,
            summary=summary,
            since=since,
            needs=needs,
            observes=observes,
            faulty_column=faulty_column,
            withdrawn_by=withdrawn_by,
            incident=incident,
            caused_by=caused_by,
            simulated=simulated,
            transactional=transactional,
            compared=compared,
            reads=reads,
            tolerated=tolerated,
            run=run,
            module=run.__module__,
        )

    return register


def observers(*checks: Check) -> Mapping[ObservationKind, Check]:
    """Return which of these checks reports each kind of observation."""
    return {kind: check for check in checks for kind in check.observes}
