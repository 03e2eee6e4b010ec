"""Options for reading from brokers: the topic or partition that a kafka:// URL names, the offsets and the speed."""

from importlib.util import find_spec
from typing import Annotated

from msgspec import Struct

from kaudit.installation import install_command
from kaudit.source.option import Option, parse_int64s, parse_time
from kaudit.source.uri import Uri, UrlError

DEFAULT_BYTES_PER_SECOND = 64 << 20
"""Polite: a broker serves several times as much, and consumers need it too."""
_HEADING = "Live clusters"


def _no_limit(number: int, _: str) -> int | None:
    return number or None


class ClusterOptions(Struct, frozen=True):
    """Connection to a cluster, and the offsets to read; None: no limit.

    `command_config` is the path of a property file. The offsets read are those from `from_offset`, and from the first
    record with a timestamp of at least `from_ms`, to before `to_offset` and `to_ms`.
    """

    command_config: Annotated[
        str | None,
        Option(
            "command-config",
            "For kafka://: a property file as Kafka's own tools take it: security.protocol, sasl.*, ssl.* (PEM).",
            "FILE",
            _HEADING,
            is_path=True,
            decides=True,
        ),
    ] = None
    from_offset: Annotated[
        int | None,
        Option(
            "from-offset",
            "For kafka://: read from this offset on; default: the log start.",
            "N",
            _HEADING,
            least=0,
            parse=parse_int64s,
            decides=True,
        ),
    ] = None
    to_offset: Annotated[
        int | None,
        Option(
            "to-offset",
            "For kafka://: stop before this offset; default: the high watermark.",
            "N",
            _HEADING,
            least=0,
            parse=parse_int64s,
            decides=True,
        ),
    ] = None
    from_ms: Annotated[
        int | None,
        Option(
            "from-time",
            "For kafka://: start at the first record with this timestamp or a later one.",
            "TIME",
            _HEADING,
            parse=parse_time,
            decides=True,
        ),
    ] = None
    to_ms: Annotated[
        int | None,
        Option(
            "to-time",
            "For kafka://: stop before the first record with this timestamp or a later one.",
            "TIME",
            _HEADING,
            parse=parse_time,
            decides=True,
        ),
    ] = None
    max_bytes_per_second: Annotated[
        int | None,
        Option(
            "max-bytes-per-second",
            "For kafka://: fetch at most this many bytes a second from a cluster; 0: no limit.",
            "N",
            _HEADING,
            least=0,
            parse=_no_limit,
        ),
    ] = DEFAULT_BYTES_PER_SECOND


class TopicUrl(Struct, frozen=True):
    """A topic of a cluster, or one partition of it. `servers` as in bootstrap.servers; empty: --command-config names them."""

    servers: str
    topic: str
    partition: int | None = None

    @classmethod
    def of(cls, uri: Uri) -> "TopicUrl":
        """Read a URL's parts.

        Raises:
            UrlError: it names no topic, the text after the topic is not a partition number, or the client library is not installed.

        """
        if find_spec("kafka") is None:
            raise UrlError(f"{uri} needs an extra: {install_command('live')}")
        parts = [part for part in uri.path.split("/") if part]
        if not parts:
            raise UrlError(f"{uri}: names no topic: kafka://HOST:PORT/TOPIC[/PARTITION]")
        if len(parts) > 2 or (len(parts) == 2 and not (parts[1].isascii() and parts[1].isdecimal())):
            raise UrlError(f"{uri}: after the topic comes a partition number: kafka://HOST:PORT/TOPIC[/PARTITION]")
        return cls(uri.authority, parts[0], int(parts[1]) if len(parts) == 2 else None)
