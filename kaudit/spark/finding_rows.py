"""Rows of the DataFrame `findings`: typed structs, a key to merge by, and which audit found it and when."""

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from msgspec import Struct, field, to_builtins

from kaudit import __version__
from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Finding
from kaudit.report.machine.tables import finding_row
from kaudit.spark.schemas import EVIDENCE, IMPACT, WHOLE_EVIDENCE, microseconds, to_batches

FINDINGS_AT_ONCE = 500
FOUND, CHANGED, WITHDRAWN = "found", "changed", "withdrawn"


def new_run_id() -> str:
    """Return an id of a run that begins now: the time, and what distinguishes it from another of the same second."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


class Stamp(Struct, frozen=True):
    """An audit, as rows name it: its id, and when it began (ms since 1970)."""

    run_id: str = field(default_factory=new_run_id)
    audited_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    def rows(self, findings: Iterable[Finding]) -> Iterator[pa.RecordBatch]:
        """Make rows of findings."""
        return to_batches("findings", map(self.row, findings), FINDINGS_AT_ONCE)

    def row(self, finding: Finding) -> dict[str, object]:
        """Make the row of a finding, with times in ms since 1970, and in structs as Arrow has them."""
        known = finding_row(finding)
        evidence = StoredEvidence(fields=finding.evidence.to_dict())
        own = {name: to_builtins(getattr(evidence, attribute)) for name, attribute in EVIDENCE.attributes.items()}
        return {
            **known,
            "evidence": {**_typed(own, EVIDENCE.type), WHOLE_EVIDENCE: known["evidence"]},
            "impact": _typed(to_builtins(finding.impact), IMPACT),
            "merge_key": finding.key,
            "change": FOUND,
            "found_at": self.audited_ms,
            "audited_at": self.audited_ms,
            "run_id": self.run_id,
            "kaudit_version": __version__,
        }

    def withdraw(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the row, as Arrow gives it, of a finding that this audit no longer made."""
        audited = datetime.fromtimestamp(self.audited_ms / 1000, UTC)
        own = {"change": WITHDRAWN, "audited_at": audited, "run_id": self.run_id, "kaudit_version": __version__}
        return {**row, **own}


def _typed(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - JSON
    """Return a JSON value as Arrow takes it for a type: times, ms, become microseconds, maps pairs."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {each.name: _typed(value.get(each.name), each.type) for each in kind}
    if pa.types.is_list(kind):
        return [_typed(each, kind.value_type) for each in value]
    if pa.types.is_map(kind):
        assert isinstance(value, Mapping)
        return [(name, _typed(each, kind.item_type)) for name, each in value.items()]
    return microseconds(value) if pa.types.is_timestamp(kind) else value
