"""Findings of what brokers sent beside those of files: what both can know, in a form that compares."""

import json
from typing import Any

from kaudit.bugs.bug import Program
from kaudit.bugs.registry import BUGS
from kaudit.model.result import ScanResult

OF_FILES = ("KA011", "KA4", "KA5")
"""Leftovers, blocks of producer ids (in the controllers' log) and side files."""
PLACES = frozenset({
    "file", "segment", "position", "end_position", "replica", "log_dir", "absent", "next", "incident", "coordinator_says",
})  # fmt: skip
"""Where something lies in files, and how whoever was asked puts it."""
CLOCK = frozenset({"now_timestamp", "idle_ms", "appended_by_timestamp"})
"""Files have __transaction_state and times of modification beside them, by which it is later."""


def comparable_findings(result: ScanResult) -> list[str]:
    """Return the findings, those about files left out, without places, sorted."""
    own = (found for found in result.findings if not found.code.startswith(OF_FILES))
    return sorted(json.dumps(_placeless(_without_others(found.to_dict())), sort_keys=True) for found in own)


def _without_others(finding: dict[str, Any]) -> dict[str, Any]:
    """Without bugs of brokers that are not Kafka's: they are named where batches came from brokers, never of Kafka's files."""
    named = [bug for bug in finding.get("known_bugs", ()) if BUGS[bug["id"]].program is not Program.REDPANDA]
    return {**finding, "known_bugs": named} if "known_bugs" in finding else finding


def _placeless(value: object) -> object:
    if isinstance(value, dict):
        return {name: _placeless(own) for name, own in value.items() if name not in PLACES | CLOCK}
    return [_placeless(own) for own in value] if isinstance(value, list) else value
