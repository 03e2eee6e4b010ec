"""The scenarios that come with kaudit."""

from importlib.resources import files

from kaudit.simulate.scenario.model import Scenario
from kaudit.simulate.scenario.reading import parse_scenario

_SUFFIX = ".toml"

ORDER = (
    "five-in-flight",
    "six-in-flight",
    "refused-retry",
    "retry-without-idempotence",
    "one-in-flight",
    "muted-partition",
    "not-enough-replicas-after-append",
    "delivery-timeout-bump",
    "deliveries-time-out",
    "delivery-timeout-reset",
    "delivery-timeout-reuse",
    "acks0-leader-moves",
    "acks1-leader-dies",
    "unclean-election",
    "zombie-producer",
    "transaction-timeout",
    "hanging-transaction",
    "restart-loop",
    "cross-session",
    "expired-producer",
    "expired-producer-before-2.5",
    "unknown-producer-id",
    "remembered-producer",
    "forgotten-duplicate",
    "batch-split",
    "sequence-wrap",
    "epoch-exhaustion",
    "two-allocators",
    "retry-dup",
    "failover-acks1",
    "anything",
)
"""Their names, in the order to read them."""


def scenario_text(name: str) -> str:
    """Return the TOML of a shipped scenario. Raises KeyError for an unknown name."""
    if name not in ORDER:
        raise KeyError(name)
    return (files("kaudit.simulate") / "scenarios" / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def shipped(name: str) -> Scenario:
    """Read a shipped scenario. Raises KeyError for an unknown name."""
    return parse_scenario(scenario_text(name), name)
