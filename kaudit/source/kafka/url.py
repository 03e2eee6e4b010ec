"""kafka:// URLs: brokers, and a topic or one of its partitions."""

import re
from typing import Final, NamedTuple

from kaudit.source.uri import UrlError

_URL: Final = re.compile(r"kafka://(?P<servers>[^/]*)(?:/(?P<topic>[^/]*)(?:/(?P<partition>[^/]*))?)?/?")
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_MOST_PARTITION: Final = (1 << 31) - 1


class KafkaUrl(NamedTuple):
    """What a URL names: `servers` as in bootstrap.servers, and a topic's partition, None for all of them."""

    servers: str
    topic: str
    partition: int | None


def parse_kafka_url(text: str) -> KafkaUrl:
    """Read kafka://HOST:PORT[,HOST:PORT]/TOPIC[/PARTITION].

    Raises:
        UrlError: it is not of that form.

    """
    url = _URL.fullmatch(text)
    if url is None or not url["topic"]:
        raise UrlError(f"{text}: expected kafka://HOST:PORT[,HOST:PORT]/TOPIC[/PARTITION]")
    topic, partition = url["topic"], url["partition"]
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise UrlError(f"{text}: {topic!r} is not a topic's name")
    if not partition:
        return KafkaUrl(url["servers"], topic, None)
    if not (partition.isascii() and partition.isdecimal() and int(partition[:11]) <= _MOST_PARTITION):
        raise UrlError(f"{text}: {partition!r} is not a partition's number")
    return KafkaUrl(url["servers"], topic, int(partition))
