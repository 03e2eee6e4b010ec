"""How partitions on brokers are read."""

from msgspec import Struct

DEFAULT_BYTES_PER_SECOND = 64 << 20
"""Polite: a broker serves several times as much, and consumers need it too."""


class ClusterOptions(Struct, frozen=True):
    """How to connect, and which offsets to read; None: no limit.

    `command_config` is the path of a property file. The offsets read are those from `from_offset`, and from the first
    record with a timestamp of at least `from_ms`, to before `to_offset` and `to_ms`.
    """

    command_config: str | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    max_bytes_per_second: int | None = DEFAULT_BYTES_PER_SECOND
