"""Evidence has the same attributes as a check made it and read back from JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

import kaudit
from kaudit.model.evidence import EvidenceAttributes, FindingEvidence, StoredEvidence
from tests.replica_sample import SAMPLES

ATTRIBUTES = [name for name in dir(EvidenceAttributes) if not name.startswith("_")]


def plain(value: object) -> Any:
    """A value without the classes of its structs and sequences."""
    if isinstance(value, Struct):
        return {name: plain(own) for name, own in msgspec.structs.asdict(value).items()}
    if isinstance(value, Mapping):
        return {name: plain(own) for name, own in value.items()}
    return [plain(own) for own in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def attributes(evidence: FindingEvidence) -> dict[str, Any]:
    return {name: plain(getattr(evidence, name)) for name in ATTRIBUTES}


def test_evidence_reads_the_same_from_json() -> None:
    findings = kaudit.scan(str(SAMPLES)).findings
    assert len({type(finding.evidence) for finding in findings}) > 20
    for finding in findings:
        stored = StoredEvidence(finding.evidence.to_dict())
        assert attributes(stored) == attributes(finding.evidence), finding.code
        assert stored.to_dict() == finding.evidence.to_dict()
