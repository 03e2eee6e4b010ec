"""Ledgers made by hand, and what the checks of mirrors report of them."""

from typing import Any

from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.checks.check import Check, Evidence
from kaudit.checks.context import Context
from kaudit.model.audit_clock import given_clock
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.finding import Finding
from kaudit.model.ledger import SideCounts, TopicLedger

_COMMON = Context(
    versions=VersionRange(Version.parse("3.0.0"), Version.parse("3.9.0")),
    coordinator=CoordinatorView(),
    clock=given_clock(0),
)
_AGREED = TopicLedger(
    source="orders",
    target="primary.orders",
    identity="key,value",
    read_committed=False,
    source_counts=SideCounts(100),
    target_counts=SideCounts(100),
    matched=90,
    # none of these is a difference
    pending=3,
    ahead=3,
    expired=3,
    older=3,
    cleaned=3,
    counted_only=3,
)


def reported(check: Check, **different: Any) -> list[Finding]:
    """What the check reports of a mirror that agrees, but for these fields."""
    sides = {name: replace(_COMMON, replica=name, log_dir=f"/{name}", directory=f"/{name}") for name in ("a", "b")}
    context = replace(_COMMON, replicas=sides)
    assert list(check.run(context, Evidence([_AGREED]))) == []
    return list(check.run(context, Evidence([replace(_AGREED, **different)])))
