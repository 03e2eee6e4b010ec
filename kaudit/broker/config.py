"""Configuration of brokers and topics that decides about answers, and which names of it are read."""

import difflib
from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.releases.profile import Profile
from kaudit.broker.releases.switches import SEVEN_DAYS_MS
from kaudit.formats.log.codecs import Codec
from kaudit.model.coordinator import MAX_TRANSACTION_TIMEOUT_MS

_Default = TypeVar("_Default", int, int | None)
_LIKE_ENOUGH = 0.8
"""difflib's ratio from which a name is taken for a misspelt one: segment.ms is not segment.bytes."""

_NAMES = {
    "transaction_max_timeout_ms": "transaction.max.timeout.ms",
    "transaction_check_ms": "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transactional_id_expiration_ms": "transactional.id.expiration.ms",
    "transactional_id_check_ms": "transaction.remove.expired.transaction.cleanup.interval.ms",
    "producer_id_check_ms": "producer.id.expiration.check.interval.ms",
    "first_checkpoint_ms": "log.initial.task.delay.ms",
    "log_start_checkpoint_ms": "log.flush.start.offset.checkpoint.interval.ms",
}
"""Names of the broker's configuration by field."""
_PRODUCER_ID_EXPIRATION = "producer.id.expiration.ms"
_VERIFIES = "transaction.partition.verification.enable"
TRANSACTION_VERSION = "transaction.version"
_KRAFT, _ZOOKEEPER = "process.roles", "zookeeper.connect"

BROKER_CONFIG = frozenset(
    {*_NAMES.values(), _PRODUCER_ID_EXPIRATION, _VERIFIES, TRANSACTION_VERSION, _KRAFT, _ZOOKEEPER}
)
"""Names that are read of a broker's configuration, besides its defaults for topics."""


def config_number(config: dict[str, str], name: str, default: _Default) -> int | _Default:
    """Return a number of a configuration; raises ValueError, saying what was expected."""
    value = config.get(name)
    if value is None:
        return default
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name} to be a number, not {value!r}") from None


def unread_names(config: Iterable[str], read: frozenset[str]) -> dict[str, str | None]:
    """Return the names in a configuration that are not among those `read`, each with the one that may have been meant."""
    return {
        name: next(iter(difflib.get_close_matches(name, read, 1, cutoff=_LIKE_ENOUGH)), None)
        for name in config
        if name not in read
    }


def runs_kraft(config: dict[str, str], profile: Profile) -> bool:
    """Return whether a broker runs without ZooKeeper: its configuration says so, else its release is taken to."""
    return _KRAFT in config if _KRAFT in config or _ZOOKEEPER in config else profile.kraft


class BrokerConfig(Struct, frozen=True):
    """A broker's configuration with its release's defaults; all in ms, intervals of 1 ms or more."""

    producer_id_expiration_ms: int
    """After how long an idle producer id is forgotten: of the configuration the release has for it."""
    transaction_check_ms: int
    """How often transactions are looked for that timed out."""
    verifies: bool
    """Whether the coordinator is asked about transactions (KIP-890)."""
    transaction_version: int
    """Level of the cluster's feature transaction.version: 2 where the release has it, unless configured lower."""
    transaction_max_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
    transactional_id_expiration_ms: int = SEVEN_DAYS_MS
    transactional_id_check_ms: int = 3600 * 1000
    producer_id_check_ms: int = 600_000
    first_checkpoint_ms: int = 30_000
    """How long after its start a broker first writes the log starts to their checkpoint."""
    log_start_checkpoint_ms: int = 60_000
    """How often it does after that."""

    @classmethod
    def of(cls, config: dict[str, str], profile: Profile) -> "BrokerConfig":
        """Read a broker's configuration; raises ValueError for a value that is not a number."""
        defaults = cls(
            producer_id_expiration_ms=config_number(config, profile.expiration_config, profile.expiration_default_ms),
            transaction_check_ms=profile.transaction_check_default_ms,
            verifies=config.get(_VERIFIES, "true") == "true",
            transaction_version=config_number(config, TRANSACTION_VERSION, 2) if profile.transaction_version2 else 0,
        )
        ignored = set() if profile.expiration_config == _PRODUCER_ID_EXPIRATION else {"producer_id_check_ms"}
        if not profile.transaction_check_is_configured:
            ignored.add("transaction_check_ms")
        numbers = {
            field: getattr(defaults, field)
            if field in ignored
            else max(config_number(config, name, getattr(defaults, field)), 0 if field.startswith("first") else 1)
            for field, name in _NAMES.items()
        }
        return replace(defaults, **numbers)


DEFAULT_MAX_MESSAGE_BYTES = 1048588
DEFAULT_SEGMENT_BYTES = 1 << 30

MIN_IN_SYNC = "min.insync.replicas"
_BROKER_DEFAULTS = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "max.message.bytes": "message.max.bytes",
    "message.format.version": "log.message.format.version",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    MIN_IN_SYNC: MIN_IN_SYNC,
    "segment.bytes": "log.segment.bytes",
}
"""Topic configuration, and the broker's for topics that do not say."""
_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""By compression.type; `producer` and what is unknown leave batches as they come."""
_BEFORE_BATCHES = ("0.8.", "0.9.", "0.10.")
"""Beginnings of message.format.version before magic 2 (RecordVersion)."""
READ_OF_TOPICS = frozenset(_BROKER_DEFAULTS)
READ_OF_BROKERS = BROKER_CONFIG | frozenset(_BROKER_DEFAULTS.values())


def topic_config(own: dict[str, str], broker: dict[str, str]) -> dict[str, str]:
    """Return a topic's configuration with the broker's own for what it leaves out."""
    defaults = {name: broker[of_broker] for name, of_broker in _BROKER_DEFAULTS.items() if of_broker in broker}
    return {**defaults, **own}


class TopicLimits(Struct, frozen=True):
    """Topic configuration that decides about batches: sizes in bytes, times in ms, None for no limit."""

    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    compacted: bool = False
    deletes: bool = True
    log_append_time: bool = False
    ahead_ms: int | None = None
    behind_ms: int | None = None
    codec: Codec | None = None
    """Codec of the batches in the log; None keeps the producer's."""
    older_format: bool = False
    """Batches are written as messages of magic 0 or 1."""
    lacks_replicas: str | None = None
    """Why nothing is appended that all replicas in sync must have (acks=all, markers, offsets): they are too few."""

    @property
    def checks_more(self) -> bool:
        """Whether the fast path cannot decide about a batch here."""
        return (
            self.behind_ms is not None or self.codec is not None or self.older_format or self.lacks_replicas is not None
        )

    @classmethod
    def of(
        cls, config: dict[str, str], profile: Profile, replicas: int | None = None, in_sync: int | None = None
    ) -> "TopicLimits":
        """Read a topic's configuration; what it leaves out is the release's default.

        `replicas` is how many it has, None where that does not matter; `in_sync` how many of them are in sync, None for
        all. Raises ValueError for a value that is not a number.
        """
        policy = config.get("cleanup.policy", "delete")
        both = config_number(config, "message.timestamp.difference.max.ms", None)
        ahead = profile.timestamp_after_max_ms if both is None else both
        return cls(
            config_number(config, "max.message.bytes", DEFAULT_MAX_MESSAGE_BYTES),
            config_number(config, "segment.bytes", DEFAULT_SEGMENT_BYTES),
            "compact" in policy,
            "delete" in policy,
            config.get("message.timestamp.type") == "LogAppendTime",
            config_number(config, "message.timestamp.after.max.ms", ahead),
            config_number(config, "message.timestamp.before.max.ms", both),
            _CODECS.get(config.get("compression.type", "")),
            profile.writes_older_formats and config.get("message.format.version", "").startswith(_BEFORE_BATCHES),
            None if replicas is None else _lacks_replicas(config, profile, replicas, in_sync),
        )


def _lacks_replicas(config: dict[str, str], profile: Profile, replicas: int, in_sync: int | None) -> str | None:
    """Return why a topic has too few replicas in sync, None where it has enough (Partition.appendRecordsToLeader)."""
    least = configured = config_number(config, MIN_IN_SYNC, 1)
    if profile.min_in_sync_is_at_most_replicas:
        least = min(configured, replicas)
    there = replicas if in_sync is None else in_sync
    return None if there >= least else f"replicas in sync: {there}, {MIN_IN_SYNC} is {configured}"
