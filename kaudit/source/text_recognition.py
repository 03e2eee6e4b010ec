"""What a text is: output of kafka-dump-log, or whose log."""

import re
from functools import lru_cache
from typing import Final

from kaudit.formats.application_log.layouts import LineReader
from kaudit.formats.application_log.pieces import LogCounts, line_blocks
from kaudit.formats.dump_text.partial_rows import looks_like_dump
from kaudit.model.application_logs import Origin
from kaudit.source.content import HEAD_BYTES, Content, Recognised

_OTHER_LOGS: Final = {
    "the log of the JVM's garbage collector": re.compile(
        rb"^\[[^\]]*\](?:\[\w+ *\])?\[(?:gc|safepoint)[\w,]* *\]|: \[(?:Full )?GC\b"
        rb"|^(?:Java HotSpot|OpenJDK 64-Bit|CommandLine flags: )|: Total time for which application threads were stopped"
    ),
    "the log of an authorizer": re.compile(rb"kafka\.authorizer\.logger"),
    "a log of requests": re.compile(rb"kafka\.request\.logger|Completed request:"),
    "the log of ZooKeeper": re.compile(rb"org\.apache\.zookeeper\.|\[(?:myid|NIOWorkerThread|QuorumPeer)\b"),
    "the log of Cruise Control": re.compile(rb"com\.linkedin\.(?:kafka\.)?cruisecontrol|\(operationLogger\)"),
}
"""Programs that keep logs beside a broker's, and the words that their lines have."""
_BROKER: Final = re.compile(
    rb"(?<![\w.])kafka\.(?:[a-z]+\.)+[A-Z]|org\.apache\.kafka\.(?:server|storage|raft|controller|coordinator|image|network)\."
    rb"|(?<![\w.])k\.\w[\w.]*\.[A-Z]|state\.change\.logger"
    rb"|\[(?:ReplicaManager|KafkaServer|BrokerServer|KafkaRaftServer|ReplicaFetcher|LogLoader|UnifiedLog|Log|Partition"
    rb"|ProducerStateManager|Transaction(?:Coordinator| State Manager)|GroupCoordinator|Controller|QuorumController)\b"
)
"""Classes and parts that only brokers have, as they stand in a line."""
_CLIENT: Final = re.compile(
    rb"\[(?:Producer|Consumer|AdminClient) clientId=|(?<![\w.])org\.apache\.kafka\.clients\.(?:producer|consumer)\.|rdkafka|[Ss]arama|kafkajs|aiokafka|confluent_kafka|\bkgo\b|kzap"
    rb"|springframework\.kafka|org\.apache\.kafka\.(?:streams|connect)\.|(?<![\w.])kafka\.(?:producer|consumer|conn|client)\b"
)
"""Parts of clients as they stand in a line. Brokers have the Java client's network classes too, so those say nothing."""

_HEADS: Final = 16
"""Of so many texts the answer is kept: a watch meets the same ones at each look."""


@lru_cache(_HEADS)
def recognise_text(head: bytes) -> Recognised | None:
    """Return what a text is by its first bytes; None for one in no layout that is known, and for what is no text."""
    if looks_like_dump(head):
        return Recognised(Content.DUMP_TEXT, Content.DUMP_TEXT.value)
    lines = _lines(head)
    read = LineReader().read(lines)
    text = b"\n".join(read.texts)
    broker, client = _BROKER.search(text) is not None, _CLIENT.search(text) is not None
    if not (broker or client):
        for what, words in _OTHER_LOGS.items():
            matched = sum(words.search(line) is not None for line in read.texts)
            if matched and 2 * matched >= len(read.heads):
                return Recognised(Content.OTHER_LOG, what)
    if not (read.heads or broker or client):
        return None
    origins: tuple[Origin, ...] = ("server", "client") if broker == client else ("server",) if broker else ("client",)
    content = Content.APPLICATION_LOG if read.heads else Content.TEXT
    return Recognised(content, content.value, origins)


def _lines(head: bytes) -> list[bytes]:
    """Return the whole lines of the first bytes; the one line if there is only one."""
    lines, _ = next(line_blocks([head], LogCounts()), ([], []))
    return lines[:-1] if len(lines) > 1 and len(head) >= HEAD_BYTES else lines
