"""Producer configuration under Kafka's names, and the versions of requests client and cluster have in common."""

from typing import Annotated

from msgspec import Meta, Struct

from kaudit.broker.releases.version import Version
from kaudit.simulate.producer.client_profile import ClientProfile, java_client
from kaudit.simulate.producer.client_switches import NO_LIMIT

MAX_RECORDS = 100_000_000
LAST_PRODUCE_BEFORE_VERSION_2 = 11
"""Newer versions of Produce add partitions to the transaction."""
DAY_MS = 24 * 3_600_000
Count = Annotated[int, Meta(ge=1, le=MAX_RECORDS)]
Ms = Annotated[int, Meta(ge=0, le=DAY_MS)]
PositiveMs = Annotated[int, Meta(ge=1, le=DAY_MS)]
Text = Annotated[str, Meta(min_length=1)]


_NAMES = {"idempotent": "enable.idempotence", "max_in_flight": "max.in.flight.requests.per.connection"}


class ProducerSettings(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename=lambda name: _NAMES.get(name, name.replace("_", ".")),
):
    """What a producer was configured with, under Kafka's names in TOML; times in ms, sizes in bytes."""

    acks: int
    """-1 stands for all."""
    idempotent: bool
    max_in_flight: Annotated[int, Meta(ge=1, le=100)]
    batch_size: Annotated[int, Meta(ge=100, le=1 << 24)] = 16_384
    linger_ms: Ms
    retries: Annotated[int, Meta(ge=0, le=NO_LIMIT)]
    retry_backoff_ms: Ms
    retry_backoff_max_ms: Ms
    request_timeout_ms: PositiveMs = 30_000
    delivery_timeout_ms: Annotated[int, Meta(ge=1, le=NO_LIMIT)] | None
    """None before KIP-91 (2.1.0): batches that wait expire by request.timeout.ms."""
    max_request_size: Annotated[int, Meta(ge=100, le=1 << 30)] = 1_048_576
    reconnect_backoff_ms: Ms = 50
    transactional_id: Text | None = None
    transaction_timeout_ms: PositiveMs = 60_000


class ProducerConfig(ProducerSettings, frozen=True, kw_only=True):
    """A producer's configuration with the release of its client."""

    client: ClientProfile

    @property
    def guarantees_order(self) -> bool:
        """Whether a partition is muted while a request for it is under way."""
        return self.max_in_flight == 1


class ApiVersions(Struct, frozen=True):
    """Versions of the requests client and cluster have in common."""

    produce: int
    init_producer_id: int
    add_partitions: int
    end_txn: int
    transaction_version2: bool


def negotiate_versions(client: ClientProfile, broker: Version) -> ApiVersions:
    """Return the newest versions both know: a broker knows those of its release's client. Source: ApiVersions requests."""
    server = java_client(broker)
    version2 = client.transaction_version2 and server.transaction_version2
    return ApiVersions(
        min(client.produce_version, server.produce_version, NO_LIMIT if version2 else LAST_PRODUCE_BEFORE_VERSION_2),
        min(client.init_producer_id_version, server.init_producer_id_version),
        min(client.add_partitions_version, server.add_partitions_version),
        min(client.end_txn_version, server.end_txn_version),
        version2,
    )
