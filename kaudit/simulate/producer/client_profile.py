"""The switches of one release of one client, looked up by a name like `java 2.4.1`."""

import difflib
from collections.abc import Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.releases.profile import UnknownVersionError, known_release
from kaudit.broker.releases.table import Change, Value, rows_of
from kaudit.broker.releases.version import RELEASES, Version
from kaudit.simulate.producer.client_switches import ACKS_ALL, FRANZ_GO, LIBRDKAFKA, NO_LIMIT, ClientSwitches

_MOST_IN_FLIGHT = 100
"""The most requests in flight a scenario can have; librdkafka's default is a million."""


class OtherClient(Struct, frozen=True):
    """A client library: its first release here, the Java release whose rules fill the rest, and its own switches."""

    first: str
    like: str
    changes: Mapping[str, tuple[Change, ...]]


OTHER_CLIENTS: Mapping[str, OtherClient] = {
    "librdkafka": OtherClient(
        "1.0.0",
        "3.6.0",
        {
            "default_acks": (Change("1.0.0", ACKS_ALL, "rdkafka_conf.c: request.required.acks"),),
            "default_idempotence": (Change("1.0.0", False, "rdkafka_conf.c: enable.idempotence"),),
            "default_retries": (
                Change("1.0.0", 2, "rdkafka_conf.c: message.send.max.retries"),
                Change("1.6.0", NO_LIMIT, "rdkafka_conf.c: message.send.max.retries"),
            ),
            "default_max_in_flight": (
                Change("1.0.0", _MOST_IN_FLIGHT, "rdkafka_conf.c: max.in.flight.requests.per.connection"),
            ),
            "default_linger_ms": (
                Change("1.0.0", 0, "rdkafka_conf.c: queue.buffering.max.ms"),
                Change("1.5.0", 5, "rdkafka_conf.c: queue.buffering.max.ms"),
            ),
            "default_delivery_timeout_ms": (Change("1.0.0", 300_000, "rdkafka_conf.c: message.timeout.ms"),),
            "default_retry_backoff_max_ms": (
                Change("1.0.0", None, "rdkafka_conf.c: retry.backoff.ms"),
                Change("2.3.0", 1000, "KIP-580"),
            ),
            "conflict_disables_idempotence": (Change("1.0.0", False, "rdkafka_conf.c: rd_kafka_conf_finalize"),),
            "checks_delivery_timeout": (Change("1.0.0", False, "rdkafka_conf.c: rd_kafka_conf_finalize"),),
            "init_producer_id_version": (
                Change("1.0.0", 1, "rdkafka_request.c: rd_kafka_InitProducerIdRequest"),
                Change("1.7.0", 4, "KIP-360"),
            ),
            "add_partitions_version": (Change("1.0.0", 0, "rdkafka_request.c: rd_kafka_AddPartitionsToTxnRequest"),),
            "end_txn_version": (Change("1.0.0", 1, "rdkafka_request.c: rd_kafka_EndTxnRequest"),),
            "produce_version": (
                Change("1.0.0", 7, "rdkafka_msgset_writer.c"),
                Change("2.5.0", 10, "rdkafka_msgset_writer.c: rd_kafka_ProduceRequest_max_version"),
            ),
            "recovery": (Change("1.0.0", LIBRDKAFKA, "rdkafka_request.c: rd_kafka_handle_idempotent_Produce_error"),),
            "fenced_produce_is_fatal": (Change("1.0.0", True, "rdkafka_request.c: rd_kafka_handle_Produce_error"),),
        },
    ),
    "franz-go": OtherClient(
        "1.0.0",
        "4.1.0",
        {
            "default_retries": (Change("1.0.0", NO_LIMIT, "config.go: recordRetries"),),
            "default_max_in_flight": (Change("1.0.0", 1, "config.go: maxProduceInflight"),),
            "default_linger_ms": (
                Change("1.0.0", 0, "config.go: linger"),
                Change("1.20.0", 10, "config.go: linger"),
            ),
            "default_delivery_timeout_ms": (Change("1.0.0", NO_LIMIT, "config.go: recordTimeout"),),
            "default_retry_backoff_ms": (Change("1.0.0", 250, "config.go: retryBackoff"),),
            "default_retry_backoff_max_ms": (Change("1.0.0", 5000, "config.go: retryBackoff"),),
            "conflict_disables_idempotence": (Change("1.0.0", False, "config.go: validate"),),
            "checks_delivery_timeout": (Change("1.0.0", False, "config.go: validate"),),
            "transaction_version2": (
                Change("1.0.0", False, "txn.go"),
                Change("1.18.0", True, "KIP-890, txn.go"),
            ),
            "recovery": (Change("1.0.0", FRANZ_GO, "sink.go: handleReqRespBatch"),),
        },
    ),
}


JAVA = "java"
NEWEST = "current"
"""What scenarios may call the newest release of the Java client."""


class UnknownClientError(ValueError):
    """No client has this name; `expected` says what was expected."""

    def __init__(self, name: str, expected: str) -> None:
        self.expected = expected
        super().__init__(f"unknown client {name!r}: expected {expected}")


class ClientProfile(ClientSwitches, frozen=True, kw_only=True):
    """The switches as they are set in one release of a client."""

    library: str
    version: Version

    @property
    def name(self) -> str:
        """The library and release, such as `java 2.4.1`."""
        return f"{self.library} {self.version}"

    @property
    def backoff_grows(self) -> bool:
        """Whether the backoff doubles with each retry."""
        return self.default_retry_backoff_max_ms is not None


@cache
def client_for(name: str) -> ClientProfile:
    """Return the switches of `LIBRARY RELEASE`; `java` may be left out, and `current` is the newest Java client.

    A release given as its line, `java 2.4`, is the newest of that line. Raises UnknownClientError.
    """
    library, _, release = name.rpartition(" ")
    library = library.strip() or JAVA
    if library not in (JAVA, *OTHER_CLIENTS):
        near = difflib.get_close_matches(library, (JAVA, *OTHER_CLIENTS), 1)
        expected = f"a client and its release like java 2.4.1; {'did you mean ' + near[0] if near else 'clients'}"
        raise UnknownClientError(name, f"{expected}{'?' if near else ' are ' + ', '.join((JAVA, *OTHER_CLIENTS))}")
    if library != JAVA:
        return _other(name, library, release, OTHER_CLIENTS[library])
    return java_client(RELEASES[-1]) if release == NEWEST else java_client(_java_release(name, release))


def _java_release(name: str, release: str) -> Version:
    try:
        return known_release(release)
    except UnknownVersionError as error:
        nearest = ", ".join(f"{JAVA} {version}" for version in error.nearest)
        raise UnknownClientError(name, f"a client and its release, the nearest are {nearest}") from None


def java_client(version: Version) -> ClientProfile:
    """Return the switches of a release of the Java client."""
    values = {switch: row.value_in(version) for switch, row in rows_of(ClientSwitches).items()}
    return replace(ClientProfile(library=JAVA, version=version), **values)


def _other(name: str, library: str, release: str, client: OtherClient) -> ClientProfile:
    first = Version.parse(client.first)
    try:
        version = Version.parse(release)
    except ValueError:
        version = None
    if version is None or version < first:
        raise UnknownClientError(name, f"a release of {library} from {first} on, like {library} {first}")
    values = {switch: _value(changes, version) for switch, changes in client.changes.items()}
    return replace(java_client(Version.parse(client.like)), library=library, version=version, **values)


def _value(changes: tuple[Change, ...], version: Version) -> Value:
    return [change.value for change in changes if version.includes_fix(*change.since)][-1]
