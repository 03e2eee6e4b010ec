"""The JSON documents of CONTRACT.md section 2 as plain dicts, shared by json and jsonl."""

import json
import operator
from collections.abc import Mapping

from kaudit import __version__
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.report.moment import NO_TIMESTAMP, rfc3339
from kaudit.report.view import View


def header(result: ScanResult, schema: str, view: View) -> dict[str, object]:
    """Return what every document begins with: who made it, from what, and what it leaves out."""
    document: dict[str, object] = {
        "schema": schema,
        "tool": {"name": "kaudit", "version": __version__},
        "broker_version": result.broker_version.to_dict(),
        "inputs": list(result.inputs),
        "incomplete": result.incomplete,
        "not_audited": [item.to_dict() for item in result.not_audited],
        "summary": result.summary.to_dict(),
        "partitions": [partition.to_dict() for partition in result.partitions],
    }
    if result.baseline is not None:
        document["baseline"] = result.baseline.to_dict()
    if view.run is not None:
        document["run"] = dict(view.run)
    return document


def scan_document(result: ScanResult, view: View) -> dict[str, object]:
    """Return the kaudit.scan/1 document."""
    findings = [finding.to_dict() for finding in result.findings]
    return {**header(result, "kaudit.scan/1", view), "findings": findings}


def timeline_document(result: TimelineResult, view: View) -> dict[str, object]:
    """Return the kaudit.timeline/1 document."""
    return {
        **header(result.scan, "kaudit.timeline/1", view),
        "timelines": [timeline.to_dict() for timeline in result.timelines],
        "findings": [finding.to_dict() for finding in result.scan.findings],
    }


def pretty(document: Mapping[str, object]) -> str:
    """Serialise for a file people may open: sorted keys, two spaces, ASCII (so no byte can drive a terminal)."""
    return json.dumps(_presentable(document), sort_keys=True, indent=2, allow_nan=False, default=operator.index) + "\n"


def line(document: Mapping[str, object]) -> str:
    """Serialise onto one line."""
    return json.dumps(_presentable(document), sort_keys=True, allow_nan=False, default=operator.index) + "\n"


def _presentable(value: object, key: str = "") -> object:
    """Turn ms under keys ending in `timestamp` into RFC 3339, -1 (none) into null; all else stays as it is."""
    if isinstance(value, Mapping):
        return {str(name): _presentable(item, str(name)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_presentable(item, key) for item in value]
    if key.endswith("timestamp") and isinstance(value, int) and not isinstance(value, bool):
        if value == NO_TIMESTAMP:
            return None
        return rfc3339(value) or value
    return value
