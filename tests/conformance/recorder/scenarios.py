"""The scenarios written by hand, each list in a file below tests/data."""

import json
import lzma
from pathlib import Path

from tests.conformance.recorder.events import EPOCHS
from tests.conformance.recorder.topic import Step

DATA = Path(__file__).parents[2] / "data"
FAIL_OVER = "failover"
"""The list that needs three brokers."""
SCENARIOS = {
    "main": DATA / "oracle" / "scenarios.json.xz",
    "expiry": DATA / "oracle" / "scenarios-expiry.json.xz",
    "edges": DATA / "recorded" / "scenarios-edges.json.xz",
    "restarts": DATA / "recorded" / "scenarios-restarts.json.xz",
    "requests": DATA / "recorded" / "scenarios-requests.json.xz",
    "aborted": DATA / "recorded" / "scenarios-aborted.json.xz",
    EPOCHS: DATA / "recorded" / "scenarios-epochs.json.xz",
    FAIL_OVER: DATA / "oracle" / "scenarios-failover.json.xz",
}


def named(name: str) -> list[Step]:
    """The scenarios of one list."""
    with lzma.open(SCENARIOS[name], "rt") as text:
        scenarios: list[Step] = json.load(text)
    return scenarios
