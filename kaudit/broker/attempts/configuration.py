"""A broker starts, and a topic is configured."""

from typing import Any

from msgspec import field

from kaudit.broker.attempts.base import AttemptBase, Int64, Natural, PartitionAttemptBase


class StartBroker(AttemptBase, tag="broker", kw_only=True):
    """A new broker answers from here on; `config` is its configuration."""

    broker_version: str
    config: dict[str, Any] = field(default_factory=dict)
    at: Int64 | None = None
    """When it started; where absent, the first time any attempt has."""


class ConfigureTopic(PartitionAttemptBase, tag="topic", kw_only=True):
    """A topic's configuration."""

    config: dict[str, Any] = field(default_factory=dict)
    replicas: Natural = 1
    """How many replicas it has; `min.insync.replicas` is held against it."""
    in_sync_replicas: Natural | None = None
    """How many of them are in sync from here on; where absent, all."""
    recreated: bool = False
    """It was deleted and created again under its name: its partitions are empty, the coordinator forgets nothing."""
