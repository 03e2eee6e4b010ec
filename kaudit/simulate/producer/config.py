"""Producer configuration under Kafka's names, and what releases of the client do differently."""

from enum import Enum
from typing import Annotated

from msgspec import Meta, Struct

ACKS_ALL = -1
NO_TIMEOUT = 2**31 - 1
MAX_RECORDS = 100_000_000
DAY_MS = 24 * 3_600_000
Count = Annotated[int, Meta(ge=1, le=MAX_RECORDS)]
Ms = Annotated[int, Meta(ge=0, le=DAY_MS)]
PositiveMs = Annotated[int, Meta(ge=1, le=DAY_MS)]
Text = Annotated[str, Meta(min_length=1)]


class ClientRelease(Struct, frozen=True):
    """One release of the Java client: its defaults, the requests it can send, what it does when sequences break.

    Source: ProducerConfig, Sender, TransactionManager and RecordAccumulator of 2.0.1 and 4.2.0.
    """

    name: str
    acks: int
    idempotent: bool
    retries: int
    linger_ms: int
    retry_backoff_max_ms: int
    delivery_timeout_ms: int | None
    """None before KIP-91 (2.1.0): batches waiting in the accumulator expire by request.timeout.ms."""
    bumps_epoch: bool
    """Raises its epoch by itself and starts again at 0 (KIP-360: 2.5.0); before, it takes a new producer id."""
    fencing_is_fatal: bool
    """INVALID_PRODUCER_EPOCH on a produce response is ProducerFenced, fatal (until 2.6); later an abortable error."""
    halves_batches: bool
    """Halves a batch that is still too large after being split (KAFKA-8350); before, it tries the same for ever."""
    backoff_grows: bool
    """Retry backoff doubles up to retry.backoff.max.ms, 20% jittered (KIP-580: 3.7.0)."""
    produce_version: int
    init_version: int
    end_version: int
    add_version: int


class Client(Enum):
    """Releases of the Java client that can be simulated, by the name scenarios use."""

    V2_0 = ClientRelease("2.0", 1, False, 0, 0, 100, None, False, True, False, False, 6, 1, 1, 1)
    CURRENT = ClientRelease(
        "current", ACKS_ALL, True, NO_TIMEOUT, 5, 1000, 120_000, True, False, True, True, 12, 5, 5, 3
    )


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
    max_in_flight: Annotated[int, Meta(ge=1, le=100)] = 5
    batch_size: Annotated[int, Meta(ge=100, le=1 << 24)] = 16_384
    linger_ms: Ms
    retries: Annotated[int, Meta(ge=0, le=NO_TIMEOUT)]
    retry_backoff_ms: Ms = 100
    retry_backoff_max_ms: Ms
    request_timeout_ms: PositiveMs = 30_000
    delivery_timeout_ms: PositiveMs | None
    max_request_size: Annotated[int, Meta(ge=100, le=1 << 30)] = 1_048_576
    reconnect_backoff_ms: Ms = 50
    transactional_id: Text | None = None
    transaction_timeout_ms: PositiveMs = 60_000


class ProducerConfig(ProducerSettings, frozen=True, kw_only=True):
    """A producer's configuration with the release of its client."""

    client: ClientRelease

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


_PRODUCE = (((4, 0), 12), ((3, 8), 11), ((3, 7), 10), ((2, 4), 8), ((2, 1), 7), ((2, 0), 6), ((1, 0), 5), ((0, 11), 3))
_INIT = (((4, 0), 5), ((2, 7), 4), ((2, 5), 3), ((2, 4), 2), ((2, 0), 1), ((0, 11), 0))
_ADD = (((2, 7), 3), ((2, 4), 2), ((2, 0), 1), ((0, 11), 0))
_END = (((4, 0), 5), ((2, 7), 3), ((2, 4), 2), ((2, 0), 1), ((0, 11), 0))


def negotiate_versions(client: ClientRelease, broker: tuple[int, ...]) -> ApiVersions:
    """Return the newest versions both know; `broker` is its release as numbers. Source: ApiVersions requests."""

    def newest(table: tuple[tuple[tuple[int, int], int], ...], client_has: int) -> int:
        return min(client_has, next(version for since, version in table if broker[:2] >= since))

    version2 = broker >= (4,) and client.bumps_epoch
    return ApiVersions(
        newest(_PRODUCE, client.produce_version),
        newest(_INIT, client.init_version),
        newest(_ADD, client.add_version),
        newest(_END, client.end_version),
        version2,
    )
