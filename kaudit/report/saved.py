"""Reading a saved scan back: the kaudit.scan/1 document of json as a result, for `kaudit report`."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from kaudit.model.finding import Confidence, Explanation, Finding, Severity, Status
from kaudit.model.result import (
    BaselineComparison,
    BrokerVersions,
    Expected,
    NotAudited,
    PartitionSummary,
    ScanResult,
    Summary,
)
from kaudit.report.moment import NO_TIMESTAMP

SCHEMA = "kaudit.scan/1"
_Document = Mapping[str, Any]


class SavedScanError(Exception):
    """The text is no saved scan. Says what is wrong with it."""


class SavedFinding(Finding, frozen=True):
    """A finding as saved: its fingerprint is what was written, not computed again."""

    saved_fingerprint: str = ""

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint as it was saved."""
        return self.saved_fingerprint


class Saved(Struct, frozen=True):
    """A saved scan: the result, and host and time of the run that made it."""

    result: ScanResult
    run: Mapping[str, object] | None


def read_saved(text: str) -> Saved:
    """Read the document.

    Raises:
        SavedScanError: it is no kaudit.scan/1 document, or not whole.

    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SavedScanError(f"not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA or "findings" not in document:
        raise SavedScanError(f"no {SCHEMA} document; 'kaudit scan --output-format json:FILE' writes one")
    try:
        return Saved(_result(document), document.get("run"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SavedScanError(f"no whole {SCHEMA} document: {type(error).__name__}: {error}") from None


def _result(document: _Document) -> ScanResult:
    baseline = document.get("baseline")
    return ScanResult(
        inputs=list(document["inputs"]),
        broker_version=BrokerVersions(**document["broker_version"]),
        partitions=[PartitionSummary(**partition) for partition in document["partitions"]],
        findings=[_finding(finding) for finding in document["findings"]],
        not_audited=[NotAudited(**item) for item in document["not_audited"]],
        summary=Summary(**document["summary"]),
        incomplete=bool(document["incomplete"]),
        baseline=None if baseline is None else _baseline(baseline),
    )


def _finding(document: _Document) -> SavedFinding:
    fields = dict(document)
    fields["saved_fingerprint"] = fields.pop("fingerprint")
    fields["severity"] = Severity(fields["severity"])
    fields["confidence"] = Confidence(fields["confidence"])
    fields["status"] = Status(fields["status"])
    fields["evidence"] = _with_milliseconds(fields["evidence"])
    fields["explanations"] = [
        Explanation(cause["cause"], cause["for"], cause["against"], cause["innocent"])
        for cause in fields["explanations"]
    ]
    return SavedFinding(**fields)


def _baseline(document: _Document) -> BaselineComparison:
    lists = {name: _expected(document[name]) for name in ("stale", "out_of_scope", "expired")}
    return BaselineComparison(document["file"], document["known"], **lists)


def _expected(entries: Sequence[_Document]) -> list[Expected]:
    return [Expected(**entry) for entry in entries]


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
