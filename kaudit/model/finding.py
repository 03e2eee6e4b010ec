"""A finding: what is wrong, where, how certain, why, and what to do next.

A bug whose traces a finding shows, as reports have it.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct, field

from kaudit.model.evidence import NO_EVIDENCE, FindingEvidence
from kaudit.model.impact import Impact
from kaudit.model.json_record import JsonRecord, json_value
from kaudit.model.severity import Confidence, Severity, Status


class KnownBug(JsonRecord, frozen=True):
    """One entry of the catalogue that a finding fits.

    `affected` names the program and its versions, `fixed_in` the first fixed ones (empty: not fixed). `traits` are the
    traces the bug leaves, `traits_seen` those of them that are there; `confidence` says how sure they make it.
    """

    id: str
    title: str
    affected: str
    fixed_in: str
    confidence: str
    traits_seen: Sequence[str] = ()
    traits: Sequence[str] = ()


_FINGERPRINT_VERSION = "1"
_FINGERPRINT_DIGITS = 16


class Explanation(JsonRecord, frozen=True, rename={"speaks_for": "for", "speaks_against": "against"}):
    """One possible cause, with the evidence for and against it in this log."""

    cause: str
    speaks_for: Sequence[str] = ()
    speaks_against: Sequence[str] = ()
    innocent: bool = False


class Finding(Struct, frozen=True):
    """One result of one check.

    `offset`/`last_offset` are the offending batch's (missing offsets for KA007, KA008, KA104); `position` is a byte in
    `file`; `file` is relative to its input. A null field has its reason in `absent`. Times in `evidence` are ms since
    the epoch under keys ending in `timestamp`. `incident` is an id that findings of one cause share, `known_bugs` are those
    it looks like.

    The fields are the columns of every output that has findings: each output lists the fields that it omits on purpose.
    A field's description is the meaning of its column, unless `table_columns` has one for all tables with that name.
    """

    code: str
    name: Annotated[str, Meta(description="name of the check")]
    severity: Annotated[Severity, Meta(description="error, warning or note")]
    confidence: Annotated[Confidence, Meta(description="certain, likely or possible")]
    message: Annotated[str, Meta(description="what happened, in one sentence")]
    topic: str | None = None
    partition: int | None = None
    replica: str | None = None
    log_dir: Annotated[str | None, Meta(description="log directory")] = None
    file: Annotated[str | None, Meta(description="file that is wrong, relative to its input")] = None
    segment: str | None = None
    position: int | None = None
    offset: int | None = None
    last_offset: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    anchor: str | None = None
    evidence: Annotated[FindingEvidence, Meta(description="JSON")] = NO_EVIDENCE
    explanations: Annotated[Sequence[Explanation], Meta(description="JSON: causes, most likely first")] = ()
    impact: Annotated[Impact, Meta(description="JSON: what it cost")] = Impact()
    incident: Annotated[str | None, Meta(description="id that findings of one cause share")] = None
    known_bugs: Annotated[Sequence[KnownBug], Meta(description="JSON: bugs whose trace it looks like")] = ()
    next: Annotated[Sequence[str], Meta(description="JSON: commands to run next")] = ()
    absent: Annotated[Mapping[str, str], Meta(description="JSON: the reason for each null")] = field(
        default_factory=dict
    )
    status: Status = Status.NEW
    suppression: Annotated[str | None, Meta(description="why the finding is known or suppressed")] = None

    @property
    def place(self) -> str | None:
        """`topic-partition`, the topic alone where no partition is known, None for a finding about neither."""
        return self.topic if self.topic is None or self.partition is None else f"{self.topic}-{self.partition}"

    @property
    def partition_key(self) -> tuple[str, int]:
        """The topic and partition, such that partitions sort as findings do; `""` and -1 for a finding about none."""
        return self.topic or "", -1 if self.partition is None else self.partition

    @property
    def fingerprint(self) -> str:
        """16 hex digits; the same from another replica, after a roll, in another order, from any engine."""
        anchor = self.anchor if self.anchor is not None else self.offset
        parts = (self.code, self.topic, self.partition, self.producer_id, self.producer_epoch, anchor)
        text = "|".join([_FINGERPRINT_VERSION, *("" if part is None else str(part) for part in parts)])
        import hashlib  # noqa: PLC0415 - OpenSSL takes 3 ms, and a healthy log has no finding

        digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
        return digest[:_FINGERPRINT_DIGITS]

    @property
    def key(self) -> str:
        """What distinguishes it from all others of an audit: the fingerprint, and the log directory, as two replicas may show the same."""
        return f"{self.fingerprint} {self.log_dir or ''}"

    def sort_key(self) -> tuple[object, ...]:
        """Total order of findings: by place, then code, then fingerprint; offset nulls first, missing text as empty."""
        return (
            *self.partition_key,
            self.replica or "",
            self.offset is not None,
            self.offset or 0,
            self.code,
            self.producer_id is not None,
            self.producer_id or 0,
            self.producer_epoch is not None,
            self.producer_epoch or 0,
            self.file or "",
            self.position is not None,
            self.position or 0,
            _ByFingerprint(self),
        )

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: every field, each null explained under `absent`."""
        fields = {name: json_value(getattr(self, name)) for name in _JSON_FIELDS}
        fields["fingerprint"] = self.fingerprint
        reasons = {"incident": "no other finding has the same cause", **self.absent, "suppression": "not suppressed"}
        absent = {name: reasons.get(name, "not applicable") for name, value in fields.items() if value is None}
        return fields | {"absent": absent}


JSON_OMITS: Mapping[str, str] = {"anchor": "the fingerprint has it"}
"""Fields of Finding that the JSON form and the tables do not have, and why."""
_JSON_FIELDS = tuple(name for name in Finding.__struct_fields__ if name not in {*JSON_OMITS, "absent"})


@functools.total_ordering
class _ByFingerprint(Struct, frozen=True, eq=False, gc=False):
    """Order by fingerprint, computed only where the rest of the key is equal: few of many findings are hashed."""

    finding: Finding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByFingerprint) and self.finding.fingerprint == other.finding.fingerprint

    def __lt__(self, other: "_ByFingerprint") -> bool:
        return self.finding.fingerprint < other.finding.fingerprint

    def __hash__(self) -> int:
        return hash(self.finding.fingerprint)
