"""Findings about one observation, and batches, markers and producer state as evidence, under the keys that reports know.

Evidence is made when it is asked for: a log may deserve a hundred thousand findings, and few are looked at twice.
"""

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, Unpack, overload

from kaudit.checks.check import Check, FindingFields
from kaudit.checks.context import Context
from kaudit.model.finding import Finding
from kaudit.model.log_rows import BoundaryBatch, EndTxnMarker
from kaudit.model.observation import Observation
from kaudit.model.producer_state import OUTSIDE_REPORTED, ProducerAuditState

ABSENT = object()
"""What a part returns where there is none of it."""
_Subject = TypeVar("_Subject")


class LazyEvidence(Mapping[str, object], Generic[_Subject]):
    """Evidence of `parts`, each made of the subject, and `more`, which is there already."""

    __slots__ = ("_more", "_parts", "_subject")

    def __init__(
        self, subject: _Subject, parts: Mapping[str, Callable[[_Subject], object]], more: Mapping[str, object]
    ) -> None:
        self._subject = subject
        self._parts = parts
        self._more = more

    def get(self, name: str, default: object = None) -> object:
        """Return the value, `default` where there is none: Mapping's raises and catches an error, which costs more."""
        value = self._more.get(name, ABSENT)
        if value is ABSENT and name in self._parts:
            value = self._parts[name](self._subject)
        return default if value is ABSENT else value

    def __getitem__(self, name: str) -> object:
        value = self.get(name, ABSENT)
        if value is ABSENT:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        return self.get(str(name), ABSENT) is not ABSENT

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[str, object]:
        """Return names and values, each made once."""
        return self._all().items()

    def _all(self) -> dict[str, object]:
        made = {name: part(self._subject) for name, part in self._parts.items() if name not in self._more}
        return {name: value for name, value in (*made.items(), *self._more.items()) if value is not ABSENT}

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> tuple[type[dict[str, object]], tuple[dict[str, object]]]:
        return dict, (self._all(),)


class LazyCommands(Sequence[str]):
    """Commands to run, the last of which is made when it is asked for."""

    __slots__ = ("_arguments", "_first", "_make")

    def __init__(self, first: Sequence[str], make: Callable[..., str], *arguments: object) -> None:
        self._first = first
        self._make = make
        self._arguments = arguments

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return (*self._first, self._make(*self._arguments))[index]

    def __len__(self) -> int:
        return len(self._first) + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[str, ...]], tuple[tuple[str, ...]]]:
        return tuple, (tuple(self),)


def observation_finding(
    check: Check,
    context: Context,
    observation: Observation,
    message: str,
    *,
    following: Sequence[str] = (),
    **fields: Unpack[FindingFields],
) -> Finding:
    """Build the check's finding at the observation's batch or marker, unless `fields` place it elsewhere.

    `following`: commands to run before the producer's timeline.
    """
    placed: FindingFields = {
        "position": observation.position,
        "offset": observation.offset,
        "last_offset": observation.last_offset,
        "producer_id": observation.producer_id,
        "producer_epoch": observation.producer_epoch,
        **fields,
    }
    return check.finding(
        context,
        message,
        segment=observation.segment,
        following=LazyCommands(following, context.timeline_command, observation.producer_id),
        **placed,
    )


_NOTHING: Mapping[str, object] = {}


def classified_evidence(observation: Observation, rule: str, **more: object) -> Mapping[str, object]:
    """Evidence of an observation whose check reports it by its kind, and more."""
    return LazyEvidence((observation, rule), _CLASSIFIED, more or _NOTHING)


def observation_evidence(
    observation: Observation, rule: str, more: Mapping[str, object] = _NOTHING
) -> Mapping[str, object]:
    """The rule, the batch before, the offending batch or marker, the next batch, the producer's state before it, and more."""
    return LazyEvidence((observation, rule), _PARTS, more)


_About = tuple[Observation, str]
"""An observation, and the rule it breaks."""


def _rule(about: _About) -> object:
    return about[1]


def _remembered(about: _About) -> object:
    state = about[0].remembered
    return ABSENT if state is None else _state_evidence(state)


def _previous(about: _About) -> object:
    observation, _ = about
    state = observation.remembered
    if state is None or state.last is None:
        return ABSENT
    # the epoch of an older batch is not kept: it is the state's unless a marker raised that since
    epoch = state.epoch if state.last_sequence >= 0 else None
    # nor is its flag: it is the observed batch's, which only the first batch outside of an open transaction changes
    first_outside = state.in_transaction and not state.flags & OUTSIDE_REPORTED
    is_transactional = observation.is_transactional or first_outside
    return batch_evidence(
        state.last, observation.producer_id, epoch, is_transactional=is_transactional, crc=state.last.crc
    )


def _offending(about: _About) -> object:
    observation, _ = about
    batch, epoch = observation.batch, observation.producer_epoch
    if batch is None:
        return ABSENT if observation.marker is None else _marker_evidence(observation.marker)
    return batch_evidence(
        batch, observation.producer_id, epoch, is_transactional=observation.is_transactional, crc=batch.crc
    )


def _following(about: _About) -> object:
    observation, _ = about
    batch = observation.following
    if batch is None:
        return ABSENT
    return batch_evidence(batch, observation.producer_id, observation.following_epoch, crc=batch.crc)


_PARTS: Mapping[str, Callable[[_About], object]] = {
    "rule": _rule,
    "remembered": _remembered,
    "previous": _previous,
    "offending": _offending,
    "next": _following,
}
_CLASSIFIED: Mapping[str, Callable[[_About], object]] = {**_PARTS, "class": lambda about: about[0].kind.label}


def batch_evidence(batch: BoundaryBatch, producer_id: int, epoch: int | None, **more: object) -> Mapping[str, object]:
    """A batch of a producer, as reports show batches; the epoch is None where it is not known. `more` stands in the middle."""
    return {
        "offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "timestamp": batch.max_timestamp,
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "base_sequence": batch.first_sequence,
        "last_sequence": batch.last_sequence,
        **more,
        "position": batch.position,
        "leader_epoch": batch.leader_epoch,
    }


def _marker_evidence(marker: EndTxnMarker) -> dict[str, object]:
    return {
        "offset": marker.offset,
        "timestamp": marker.timestamp,
        "producer_id": marker.producer_id,
        "producer_epoch": marker.producer_epoch,
        "coordinator_epoch": marker.coordinator_epoch,
        "type": "COMMIT" if marker.type == 1 else "ABORT",
        "position": marker.position if marker.position >= 0 else None,
    }


def _state_evidence(state: ProducerAuditState) -> dict[str, object]:
    return {
        "producer_epoch": state.epoch,
        "last_sequence": state.last_sequence if state.last_sequence >= 0 else None,
        "window": [
            {"offset": known.base_offset, "base_sequence": known.first_sequence, "last_sequence": known.last_sequence}
            for known in state.window
        ],
        "coordinator_epoch": state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
        "current_txn_start_offset": state.txn_first_offset if state.txn_first_offset >= 0 else None,
    }
