"""Topic configuration that decides about batches."""

from msgspec import Struct

from kaudit.broker.config import BROKER_CONFIG, config_number
from kaudit.broker.releases.profile import Profile
from kaudit.formats.log.codecs import Codec

DEFAULT_MAX_MESSAGE_BYTES = 1048588
DEFAULT_SEGMENT_BYTES = 1 << 30

_BROKER_DEFAULTS = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
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
    """What batches are compressed with in the log, None: as the producer did."""

    @property
    def checks_more(self) -> bool:
        """Whether the fast path cannot decide about a batch here."""
        return self.behind_ms is not None or self.codec is not None

    @classmethod
    def of(cls, config: dict[str, str], profile: Profile) -> "TopicLimits":
        """Read a topic's configuration; what it leaves out is the release's default.

        Raises ValueError for a value that is not a number.
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
        )
