"""Lines of logs in which only Kafka's own words, numbers and times are left: anything else may be somebody's name."""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from kaudit.formats.application_log.layouts import MEMBERS
from kaudit.formats.application_log.patterns import PROGRAMS, read_patterns
from kaudit.formats.protocol_errors import protocol_errors
from kaudit.model.coordinator import TransactionStatus

_CHUNK: Final = re.compile(r"[\w.$@/\\-]*[A-Za-z_][\w.$@/\\-]*|\d+\.\d+\.\d+\.\d+")
_WORDS: Final = re.compile(r"[A-Za-z_]{2,}")
_CLASSES: Final = ("org.apache.kafka.", "kafka.", "java.", "o.a.k.")
_OURS: Final = re.compile(r"(?:topic|txn|client|group|host|copy|path|word|value)-[0-9a-p]{10}(?:-\d+)*")
_CONTENT: Final = re.compile(r"\b(key|payload|value)=(['\"])(?!null\2)(.+?)\2")
"""Keys and values as listeners of clients write them."""
_TIME: Final = re.compile(r"\d[\d-]*T\d[\d:.]*Z?|\d+(?:ms|s|GB|MB|KB|B)")
_NAMES_OF_KAFKA: Final = frozenset(
    {"info", "warn", "error", "debug", "fatal", "trace", "__transaction_state", "__consumer_offsets"}
)
_INTERNAL: Final = re.compile(
    r"__(?:transaction_state|consumer_offsets|share_group_state|cluster_metadata|remote_log_metadata)-\d+"
)


@cache
def _vocabulary() -> frozenset[str]:
    """Return the words of all messages that kaudit knows, in small letters."""
    states = [status.name for status in TransactionStatus]
    names = (name for error in protocol_errors() for name in error.names)
    words = {name.lower() for name in (*states, *names, *MEMBERS)} | {name.replace("_", "").lower() for name in states}
    words |= _NAMES_OF_KAFKA
    for programs in PROGRAMS.values():
        for program in programs:
            for pattern in read_patterns(program):
                words |= {word.lower() for word in _WORDS.findall(re.sub(r"\{\w*\}", " ", pattern.text))}
                words |= {word.lower() for word in _WORDS.findall(str(pattern.source).rpartition(".")[2])}
    return frozenset(words)


def redacted_line(line: str, token: Callable[[str], str]) -> str:
    """Return a line of a log with `token` of each word that Kafka's messages do not have."""

    def shown(match: re.Match[str]) -> str:
        word = match[0]
        plain = word.rstrip(".-")
        if _OURS.fullmatch(plain) or _INTERNAL.fullmatch(plain) or _TIME.fullmatch(plain) or plain.startswith(_CLASSES):
            return word
        found = _WORDS.findall(plain)
        if plain[0] in "0123456789" and not found:
            return token(plain) if plain.count(".") == 3 else word
        known = all(part.lower() in _vocabulary() for part in found)
        return word if known and re.fullmatch(r"@?[A-Za-z_.$-]+", plain) else token(plain) + word[len(plain) :]

    line = _CONTENT.sub(lambda match: f"{match[1]}={match[2]}{token(match[3])}{match[2]}", line)
    return _CHUNK.sub(shown, line)
