"""Evidence of findings: a struct for each shape, whose fields are the keys of the JSON form.

A check makes the shape that it needs; the shape stands beside the check, and is a subclass of `FindingEvidence`. Code that
decides by evidence of any finding - incidents, known bugs, causes from logs, histories, reports - reads the attributes that
`EvidenceAttributes` names. Only what writes JSON, Parquet or rows of Spark calls `to_dict`.
"""

import functools
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from types import NoneType
from typing import Any, Self, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from kaudit.model.evidence_parts import (
    AbortedEvidence,
    BatchEvidence,
    BlockEvidence,
    BlockRange,
    EpochEvidence,
    EventEvidence,
    FoldedNotes,
    OwnerEvidence,
    RangeEvidence,
    ShownEvents,
    SiblingsEvidence,
    SnapshotState,
    StateEvidence,
    StepEvidence,
    without_places,
)
from kaudit.model.json_record import JsonRecord, json_value


class EvidenceAttributes:
    """What evidence of any finding can be asked for; None or empty where a finding has none of it.

    A shape that has one of them declares it as a field. Times are in ms since 1970.
    """

    __slots__ = ()

    rule: str | None = None
    broker: str | None = None
    reason: str | None = None
    to_be_certain: str | None = None
    """What to fetch and, after a colon, what it would show; of several things with a semicolon between them."""
    subject: str | None = None
    """The producer or replica that lines of logs are about."""
    stored: SnapshotState | None = None
    timestamp: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    now_timestamp: int | None = None
    idle_ms: int | None = None
    """For how long a transaction has had no batch, as brokers' times show."""
    transactional_id: str | None = None
    coordinator: str | None = None
    coordinator_state: str | None = None
    coordinator_says: str | None = None
    owner: OwnerEvidence | None = None
    """Whose the transaction is, as far as its transactional id shows it."""
    siblings: SiblingsEvidence | None = None
    """Members of the same application that went on without it."""
    commit_acknowledged: str | None = None
    """Whether its commit may have been acknowledged: no, possible, or decided."""
    in_checkpoint: str | None = None
    """Whether a checkpoint of Flink may hold it: likely, or possible."""
    aborted_at_timestamp: int | None = None
    """When its coordinator aborts it, unless it ends before."""
    remarks: Mapping[str, str] = {}
    """Sentences for people, by what they are about: owner, abort, commit."""
    decided_at_offset: int | None = None
    agreeing: Sequence[str] = ()
    previous_marker_offset: int | None = None
    previous_marker_timestamp: int | None = None
    leader_epoch: int | None = None
    expected_leader_epoch: int | None = None
    expected_offset: int | None = None
    expected_sequence: int | None = None
    refused_sequence: int | None = None
    """The first sequence of a batch that a broker refused."""
    first_missing_offset: int | None = None
    last_missing_offset: int | None = None
    resynchronised_at: int | None = None
    end_offsets: Mapping[str, int] | None = None
    leader_epochs: Mapping[str, Sequence[EpochEvidence]] = {}
    """The history of leader epochs of each replica."""
    copies: Mapping[str, BatchEvidence] | None = None
    """The batch that each replica has at an offset; one without values where it is not a batch."""
    size: int | None = None
    missing: Sequence[AbortedEvidence] = ()
    block_below: BlockEvidence | None = None
    next_block: BlockRange | None = None
    seen: int | None = None
    seen_ids: Sequence[int] | None = None
    """The producer ids of a block that are in the logs."""
    producer_ids: Sequence[int] = ()
    """The producer ids of sessions that followed one another."""
    copied: RangeEvidence | None = None
    again: RangeEvidence | None = None
    same_timestamps: bool | None = None
    times_go_back: bool | None = None
    records: int | None = None
    batches: int | None = None
    steps: Sequence[StepEvidence] = ()
    """`joints` in JSON."""

    @property
    def kind(self) -> str | None:
        """What sort of the check's findings it is; `class` in JSON."""
        return None

    @property
    def remembered(self) -> StateEvidence | None:
        """The state of the producer before the offending batch."""
        return None

    @property
    def previous(self) -> BatchEvidence | None:
        """The batch before the offending one, or the one that it repeats."""
        return None

    @property
    def offending(self) -> BatchEvidence | None:
        """The batch or marker in question."""
        return None

    @property
    def next(self) -> BatchEvidence | None:
        """The producer's batch after the offending one."""
        return None

    @property
    def count(self) -> int | None:
        """How many of a kind the finding stands for."""
        return None

    @property
    def log_events(self) -> Sequence[EventEvidence]:
        """Events of logs that show a cause, the first few."""
        return ()

    @property
    def log_events_count(self) -> int | None:
        """The number of all events of logs that show a cause."""
        return None


JSON_NAMES = {"kind": "class", "steps": "joints"}
"""JSON keys of attributes whose names differ from them."""


class FindingEvidence(EvidenceAttributes, JsonRecord, frozen=True, kw_only=True, gc=False, rename=JSON_NAMES):
    """The evidence of one finding: what its check saw, in the fields of a subclass.

    A field without a default is null in JSON where it is None; one with the default None is left out.
    The fields here are added to what the check saw: `folded` for notes that say the same, `events` of logs, and
    `placeless` where the places of batches are not known, because brokers sent them, or a text is cut off before them;
    `without_crcs` where their CRCs are not known either.
    """

    folded: FoldedNotes | None = None
    events: ShownEvents | None = None
    placeless: bool = False
    without_crcs: bool = False

    @property
    def count(self) -> int | None:
        """How many notes it stands for."""
        return None if self.folded is None else self.folded.count

    @property
    def log_events(self) -> Sequence[EventEvidence]:
        """Events of logs that show a cause, the first few."""
        return () if self.events is None else self.events.events

    @property
    def log_events_count(self) -> int | None:
        """The number of all events of logs that show a cause."""
        return None if self.events is None else self.events.count

    def without_places(self, *, crcs: bool = True) -> Self:
        """Return the evidence without files and positions; without `crcs` also without the CRCs of batches."""
        unknown: dict[str, None] = {"position": None} if crcs else {"position": None, "crc": None}
        batches = {
            name: msgspec.structs.replace(value, **unknown)
            for name in self.__struct_fields__
            if isinstance(value := getattr(self, name), BatchEvidence)
        }
        return msgspec.structs.replace(self, placeless=True, without_crcs=not crcs, **batches)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        fields = self.own_fields()
        if self.folded is not None:
            fields = self.folded.to_dict() | fields
        if self.placeless:
            fields = without_places(fields)
        return fields if self.events is None else fields | self.events.to_dict()

    def own_fields(self) -> dict[str, object]:
        """Return the JSON form of what the check saw."""
        return {
            key: json_value(value)
            for name, key, optional in _own_fields(type(self))
            if (value := getattr(self, name)) is not None or not optional
        }

    # evidence is a mapping of its JSON form too, for programs that use the library

    def __getitem__(self, name: str) -> object:
        return self.to_dict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __contains__(self, name: object) -> bool:
        return name in self.to_dict()

    def __len__(self) -> int:
        return len(self.to_dict())

    def keys(self) -> KeysView[str]:
        """Return the keys of the JSON form."""
        return self.to_dict().keys()

    def values(self) -> ValuesView[object]:
        """Return the values of the JSON form."""
        return self.to_dict().values()

    def items(self) -> ItemsView[str, object]:
        """Return the keys and values of the JSON form."""
        return self.to_dict().items()

    def get(self, name: str, default: object = None) -> object:
        """Return a value of the JSON form, `default` where there is none."""
        return self.to_dict().get(name, default)


_ADDED = frozenset(FindingEvidence.__struct_fields__)


@functools.cache
def _own_fields(shape: type[FindingEvidence]) -> Sequence[tuple[str, str, bool]]:
    """Return the name of each field of the shape, its key in JSON, and whether it is left out where it is None."""
    optional = {field.name for field in msgspec.structs.fields(shape) if field.default is None}
    names = zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True)
    return [(name, key, name in optional) for name, key in names if name not in _ADDED]


class BrokerEvidence(FindingEvidence, frozen=True, kw_only=True, gc=False):
    """Evidence that begins with the rule that is broken, and what a broker does about it."""

    rule: str
    broker: str


class StoredEvidence(FindingEvidence, frozen=True, gc=False):
    """Evidence as JSON: a saved scan's, which may have been edited or written by another release.

    An attribute is None, or empty, where the value is of another type.
    """

    fields: Mapping[str, object]

    def own_fields(self) -> dict[str, object]:
        """Return the JSON form as it was read."""
        return dict(self.fields)


NO_EVIDENCE = FindingEvidence()


def evidence_attributes() -> Iterator[tuple[str, object]]:
    """Yield what evidence of any finding can be asked for, and its type."""
    yield from get_type_hints(EvidenceAttributes).items()
    for name, value in vars(EvidenceAttributes).items():
        if isinstance(value, property):
            yield name, get_type_hints(value.fget)["return"]


def _reader(name: str, hint: object) -> property:
    key = JSON_NAMES.get(name, name)

    def read(evidence: StoredEvidence) -> object:
        added = getattr(super(StoredEvidence, evidence), name)
        return added or _valid(evidence.fields.get(key), hint)

    return property(read)


for _name, _hint in evidence_attributes():
    setattr(StoredEvidence, _name, _reader(_name, _hint))


def _valid(value: object, hint: Any) -> Any:  # noqa: ANN401 - a value of the type that `hint` is
    """Return the value as the type says, without what is of another type: None or empty where that is all of it."""
    optional, kind = NoneType in get_args(hint), hint
    if optional:
        kind = next(each for each in get_args(hint) if each is not NoneType)
    holder = get_origin(kind)
    if holder is Sequence:
        if isinstance(value, list | tuple):
            return [item for each in value if (item := _valid(each, get_args(kind)[0])) is not None]
        return None if optional else []
    if holder is Mapping:
        if isinstance(value, Mapping):
            valid = {name: _valid_or_empty(each, get_args(kind)[1]) for name, each in value.items()}
            return {name: each for name, each in valid.items() if each is not None}
        return None if optional else {}
    return _valid_struct(value, kind) if issubclass(kind, Struct) else _valid_leaf(value, kind)


def _valid_or_empty(value: object, kind: Any) -> Any:  # noqa: ANN401 - as above
    known = _valid(value, kind)
    return kind() if known is None and issubclass(kind, Struct) else known


def _valid_struct(value: object, kind: type[Struct]) -> Struct | None:
    if not isinstance(value, Mapping):
        return None
    return kind(**{field.name: _valid(value.get(field.name), field.type) for field in msgspec.structs.fields(kind)})


def _valid_leaf(value: object, kind: type) -> object:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
