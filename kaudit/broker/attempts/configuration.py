"""A broker starts, and a topic is configured."""

from typing import Any

from msgspec import field

from kaudit.broker.attempts.base import AttemptBase, Int64, PartitionAttemptBase


class StartBroker(AttemptBase, tag="broker", kw_only=True):
    """A new broker answers from here on; `config` is its configuration."""

    broker_version: str
    config: dict[str, Any] = field(default_factory=dict)
    at: Int64 | None = None
    """When it started; where absent, the first time any attempt has."""


class ConfigureTopic(PartitionAttemptBase, tag="topic", kw_only=True):
    """A topic's configuration."""

    config: dict[str, Any] = field(default_factory=dict)
    recreated: bool = False
    """It was deleted and created again under its name: its partitions are empty, the coordinator forgets nothing."""
