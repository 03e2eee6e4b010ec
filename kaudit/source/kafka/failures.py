"""Errors between kaudit and a broker, each with one sentence for the user."""

import errno
import os
import re
from collections.abc import Callable

import kafka.errors as kafka_errors

from kaudit.source.kafka.fetched_segment import BrokerError

_TLS_ALERT_LENGTH = range(0x15030000, 0x15040000)
"""A TLS alert (content type 21, version 3.x) read as the length of an answer."""
_HTTP_LENGTH = int.from_bytes(b"HTTP")
_LONGEST_TEXT = 300


class RetriableError(BrokerError):
    """A transient failure: a leader moves, a broker restarts, a coordinator loads."""


class UnsupportedRequestError(BrokerError):
    """The broker is too old, or too new, for this request."""


class AccessDeniedError(BrokerError):
    """The principal lacks an ACL, or could not be authenticated."""


class OffsetOutOfRangeError(BrokerError):
    """The offset lies below the log start or beyond the log end."""


class UnknownTopicError(FileNotFoundError):
    """The cluster has no such topic or partition."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(errno.ENOENT, reason, place)


def broker_error(place: str, error: Exception) -> OSError:
    """Return the OSError to raise for an error of the client library or of an answer.

    `place` is the host and port, or what was asked for.
    """
    if isinstance(error, OSError):
        return error
    for kinds, make, reason in _MEANINGS:
        if isinstance(error, kinds):
            return make(place, reason(error) if callable(reason) else reason.format(_text(error)))
    kind = RetriableError if isinstance(error, kafka_errors.RetriableError) else BrokerError
    return kind(place, _text(error))


def error_of_code(place: str, code: int, message: str | None = None) -> OSError:
    """Return the OSError to raise for an error code in an answer; codes are those of org.apache.kafka.common.protocol.Errors."""
    kind = kafka_errors.for_code(code)
    return broker_error(place, kind(message) if message else kind())


def _text(error: Exception) -> str:
    """Return the error's own text, one line, bounded: the other side may have written it."""
    text = (
        " ".join(str(argument) for argument in error.args) or getattr(error, "description", "") or type(error).__name__
    )
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}..."


def _connection(error: Exception) -> str:
    text = re.sub(r"\s*\(_ssl\.c:\d+\)", "", _text(error))
    for pattern, reason in _CONNECTION_MEANINGS:
        if (match := re.search(pattern, text)) is not None:
            return match.expand(reason)
    if (code := re.search(r"(\d+) E[A-Z]+", text)) is not None:
        return os.strerror(int(code[1])).lower()
    if "socket disconnected" in text:
        return "the broker closed the connection: it stopped, or expects TLS or SASL (security.protocol in --command-config)"
    return text[:1].lower() + text[1:]


def _undecodable(error: Exception) -> str:
    length = re.fullmatch(r"Invalid frame length: (-?\d+)", _text(error))
    if length is not None and int(length[1]) in _TLS_ALERT_LENGTH:
        return "the port speaks TLS: security.protocol=SSL or SASL_SSL in --command-config"
    if length is not None and int(length[1]) == _HTTP_LENGTH:
        return "an HTTP server answers, not a Kafka broker"
    if length is not None:
        return (
            f"the answer claims a length of {length[1]} bytes: not a Kafka broker, or a batch larger than kaudit reads"
        )
    return "the answer cannot be decoded: not a Kafka broker, or a release kaudit does not know"


_CONNECTION_MEANINGS = (
    (
        r"CERTIFICATE_VERIFY_FAILED\] (?:certificate verify failed: )?(.*)",
        r"the broker's certificate is not trusted: \1 (ssl.truststore.location names a PEM file of authorities)",
    ),
    (
        r"WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL|RECORD_LAYER_FAILURE",
        "the port does not speak TLS: security.protocol does not fit",
    ),
    (r"UNEXPECTED_EOF", "the broker broke off the TLS handshake: security.protocol may not fit"),
    (r"Handshake failed: (.*)", r"no TLS connection: \1"),
    (r"DNS Resolution failure", "the host name is not known"),
)
"""What the client library's messages mean, with the groups of their patterns."""
_MEANINGS: tuple[
    tuple[
        type[Exception] | tuple[type[Exception], ...], Callable[[str, str], OSError], str | Callable[[Exception], str]
    ],
    ...,
] = (
    (
        (
            kafka_errors.SaslAuthenticationFailedError,
            kafka_errors.UnsupportedSaslMechanismError,
            kafka_errors.IllegalSaslStateError,
        ),
        AccessDeniedError,
        "authentication failed: {}",
    ),
    (
        kafka_errors.AuthorizationError,
        AccessDeniedError,
        "not authorised: {} (kaudit needs Describe and Read on the topics, Describe on the cluster)",
    ),
    (kafka_errors.UnknownTopicOrPartitionError, UnknownTopicError, "the cluster has no such topic or partition"),
    (kafka_errors.InvalidTopicError, UnknownTopicError, "not a valid topic name"),
    (kafka_errors.OffsetOutOfRangeError, OffsetOutOfRangeError, "the offset is not in the log any more"),
    (kafka_errors.UnsupportedVersionError, UnsupportedRequestError, "the broker's release does not fit: {}"),
    (kafka_errors.KafkaProtocolError, BrokerError, _undecodable),
    ((kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError), RetriableError, "no answer in time: {}"),
    (kafka_errors.KafkaConnectionError, RetriableError, _connection),
    (kafka_errors.RetriableError, RetriableError, "{}"),
)
"""Errors of the client library, the error to raise, and its text: `{}` is the library's own."""
