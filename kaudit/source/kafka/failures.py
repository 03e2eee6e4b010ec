"""What goes wrong between kaudit and a broker, in one sentence each."""

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
    """It may work a little later: a leader moves, a broker restarts, a coordinator loads."""


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
    """Return what an error of the client library, or of an answer, means to the user.

    `place` is the host and port, or what was asked for.
    """
    if isinstance(error, OSError):
        return error
    for kinds, make, reason in _MEANINGS:
        if isinstance(error, kinds):
            return make(place, reason(error))
    kind = RetriableError if isinstance(error, kafka_errors.RetriableError) else BrokerError
    return kind(place, _text(error))


def error_of_code(place: str, code: int, message: str | None = None) -> OSError:
    """Return what an error code in an answer means; codes are those of org.apache.kafka.common.protocol.Errors."""
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
            return reason(match)
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


def _authentication(error: Exception) -> str:
    return f"authentication failed: {_text(error)}"


def _authorization(error: Exception) -> str:
    return f"not authorised: {_text(error)} (kaudit needs Describe and Read on the topics, Describe on the cluster)"


def _version(error: Exception) -> str:
    return f"the broker's release does not fit: {_text(error)}"


def _timeout(error: Exception) -> str:
    return f"no answer in time: {_text(error)}"


_CONNECTION_MEANINGS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r"CERTIFICATE_VERIFY_FAILED\] (?:certificate verify failed: )?(.*)",
        lambda match: (
            f"the broker's certificate is not trusted: {match[1]} (ssl.truststore.location names a PEM file of authorities)"
        ),
    ),
    (
        r"WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL|RECORD_LAYER_FAILURE",
        lambda _: "the port does not speak TLS: security.protocol does not fit",
    ),
    (r"UNEXPECTED_EOF", lambda _: "the broker broke off the TLS handshake: security.protocol may not fit"),
    (r"Handshake failed: (.*)", lambda match: f"no TLS connection: {match[1]}"),
    (r"DNS Resolution failure", lambda _: "the host name is not known"),
    (r"(\d+) E[A-Z]+", lambda match: os.strerror(int(match[1])).lower()),
    (
        r"socket disconnected",
        lambda _: (
            "the broker closed the connection: it stopped, or expects TLS or SASL (security.protocol in --command-config)"
        ),
    ),
)
_MEANINGS = (
    (kafka_errors.SaslAuthenticationFailedError, AccessDeniedError, _authentication),
    (
        (kafka_errors.UnsupportedSaslMechanismError, kafka_errors.IllegalSaslStateError),
        AccessDeniedError,
        _authentication,
    ),
    (kafka_errors.AuthorizationError, AccessDeniedError, _authorization),
    (
        kafka_errors.UnknownTopicOrPartitionError,
        UnknownTopicError,
        lambda _: "the cluster has no such topic or partition",
    ),
    (kafka_errors.InvalidTopicError, UnknownTopicError, lambda _: "not a valid topic name"),
    (kafka_errors.OffsetOutOfRangeError, OffsetOutOfRangeError, lambda _: "the offset is not in the log any more"),
    (kafka_errors.UnsupportedVersionError, UnsupportedRequestError, _version),
    (kafka_errors.KafkaProtocolError, BrokerError, _undecodable),
    ((kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError), RetriableError, _timeout),
    (kafka_errors.KafkaConnectionError, RetriableError, _connection),
    (kafka_errors.RetriableError, RetriableError, _text),
)
