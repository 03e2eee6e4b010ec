"""How partitions on brokers are read."""

from typing import Annotated

from msgspec import Struct

from kaudit.source.option import Option, parse_int64s, parse_time

DEFAULT_BYTES_PER_SECOND = 64 << 20
"""Polite: a broker serves several times as much, and consumers need it too."""


def _no_limit(number: int, _: str) -> int | None:
    return number or None


class ClusterOptions(Struct, frozen=True):
    """How to connect, and which offsets to read; None: no limit.

    `command_config` is the path of a property file. The offsets read are those from `from_offset`, and from the first
    record with a timestamp of at least `from_ms`, to before `to_offset` and `to_ms`.
    """

    command_config: Annotated[
        str | None,
        Option(
            "command-config",
            "For kafka://: a property file as Kafka's own tools take it: security.protocol, sasl.*, ssl.* (PEM).",
            "FILE",
        ),
    ] = None
    from_offset: Annotated[
        int | None,
        Option(
            "from-offset",
            "For kafka://: read from this offset on; default: the log start.",
            "N",
            least=0,
            parse=parse_int64s,
        ),
    ] = None
    to_offset: Annotated[
        int | None,
        Option(
            "to-offset",
            "For kafka://: read to before this offset; default: the high watermark.",
            "N",
            least=0,
            parse=parse_int64s,
        ),
    ] = None
    from_ms: Annotated[
        int | None,
        Option(
            "from-time", "For kafka://: read from the first record of this time or later on.", "TIME", parse=parse_time
        ),
    ] = None
    to_ms: Annotated[
        int | None,
        Option(
            "to-time", "For kafka://: read to before the first record of this time or later.", "TIME", parse=parse_time
        ),
    ] = None
    max_bytes_per_second: Annotated[
        int | None,
        Option(
            "max-bytes-per-second",
            "For kafka://: most bytes to fetch from a cluster a second; 0: no limit.",
            "N",
            least=0,
            parse=_no_limit,
        ),
    ] = DEFAULT_BYTES_PER_SECOND
