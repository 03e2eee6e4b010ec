"""Reading a saved scan back: the kaudit.scan/1 document of json as a result, for `kaudit report`."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kaudit.checks.incident_groups import with_incidents
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Finding
from kaudit.model.result import (
    ScanResult,
)

_SCAN = "kaudit.scan/"
SCHEMA = f"{_SCAN}1"


class SavedScanError(Exception):
    """The text is not a saved scan; the message says what is wrong with it."""


class SavedFinding(Finding, frozen=True, kw_only=True, rename={"saved_fingerprint": "fingerprint"}):
    """A finding as saved: its fingerprint is what was written, not computed again."""

    saved_fingerprint: str
    evidence: StoredEvidence

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint as it was saved."""
        return self.saved_fingerprint


class _Run(TypedDict):
    host: str
    started_at: str


class _Scan(ScanResult, frozen=True, kw_only=True):
    """The required fields of the document and their types."""

    findings: Sequence[SavedFinding]
    incomplete: bool
    run: _Run | None = None
    unlisted: tuple[()] = ()
    """A saved scan has these only as numbers in its summary."""


class Saved(Struct, frozen=True):
    """A saved scan: the result, and host and time of the run that made it."""

    result: ScanResult
    run: Mapping[str, object] | None


_IS_NAME = re.compile(r"[A-Za-z0-9-]+").fullmatch


def read_saved(text: str) -> Saved:
    """Read the document.

    Raises:
        SavedScanError: it is not a kaudit.scan/1 document, or a damaged one.

    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SavedScanError(f"not JSON: {error}") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if isinstance(schema, str) and schema.startswith(_SCAN) and schema != SCHEMA:
        escaped = schema.encode("unicode_escape").decode("ascii")
        raise SavedScanError(f"saved by another version of kaudit: a {escaped} document, this version reads {SCHEMA}")
    if schema != SCHEMA or "findings" not in document:
        raise SavedScanError(
            f"not a saved kaudit scan (a {SCHEMA} document); 'kaudit scan --output-format json:FILE' writes one"
        )
    document.pop("verdict", None)  # its findings give it again
    try:
        document["clock"] = _with_milliseconds(document.get("clock"))
        for finding in document["findings"]:
            finding["impact"] = _with_milliseconds(finding.get("impact", {}))
            evidence = _with_milliseconds(finding.get("evidence", {}))
            finding["evidence"] = {"fields": evidence} if isinstance(evidence, dict) else evidence
        whole = msgspec.convert(document, _Scan)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # msgspec's own is a ValueError
        raise SavedScanError(f"damaged {SCHEMA} document: {type(error).__name__}: {error}") from None
    for finding in whole.findings:
        if not all(map(_IS_NAME, (finding.code, finding.name, finding.fingerprint, finding.incident or "-"))):
            raise SavedScanError(
                f"damaged {SCHEMA} document: codes, names and fingerprints are letters, digits and hyphens"
            )
    names = (name for name in ScanResult.__struct_fields__ if name != "segments")
    result = ScanResult(**{name: getattr(whole, name) for name in names})
    if not any("incident" in finding for finding in document["findings"]):  # saved by an earlier release
        result = replace(result, findings=with_incidents(result.findings))
    return Saved(result, dict(whole.run) if whole.run is not None else None)


def _with_milliseconds(value: Any, key: str = "") -> Any:  # noqa: ANN401 - JSON
    """Turn the times under keys ending in `timestamp` back into ms, null (Kafka's -1) too."""
    if isinstance(value, dict):
        return {name: _with_milliseconds(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_milliseconds(item, key) for item in value]
    if not key.endswith("timestamp"):
        return value
    if value is None:
        return NO_TIMESTAMP
    return round(datetime.fromisoformat(value).timestamp() * 1000) if isinstance(value, str) else value
