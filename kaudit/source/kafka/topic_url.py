"""kafka://HOST:PORT[,HOST:PORT]/TOPIC[/PARTITION]."""

from importlib.util import find_spec

from msgspec import Struct

from kaudit.installation import install_command
from kaudit.source.uri import Uri, UrlError


class TopicUrl(Struct, frozen=True):
    """A topic of a cluster, or one partition of it. `servers` as in bootstrap.servers; empty: --command-config names them."""

    servers: str
    topic: str
    partition: int | None = None

    @classmethod
    def of(cls, uri: Uri) -> "TopicUrl":
        """Read a URL's parts.

        Raises:
            UrlError: it names no topic, what follows the topic is no partition, or the client library is not installed.

        """
        if find_spec("kafka") is None:
            raise UrlError(f"{uri} needs an extra: {install_command('live')}")
        parts = [part for part in uri.path.split("/") if part]
        if not parts:
            raise UrlError(f"{uri}: names no topic: kafka://HOST:PORT/TOPIC[/PARTITION]")
        if len(parts) > 2 or (len(parts) == 2 and not (parts[1].isascii() and parts[1].isdecimal())):
            raise UrlError(f"{uri}: behind the topic comes a partition's number: kafka://HOST:PORT/TOPIC[/PARTITION]")
        return cls(uri.authority, parts[0], int(parts[1]) if len(parts) == 2 else None)
