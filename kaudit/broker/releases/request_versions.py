"""The versions of requests that brokers of each release answer; a request of another one closes the connection.

Source, each read at the release's tag: Protocol.REQUESTS (0.11), the requests' schemaVersions() (1.0 to 2.3), "validVersions"
without a version that is unstable in clients/src/main/resources/common/message/*Request.json (since 2.2); for 4.x the
ApiKeys of the published clients. SocketServer refuses other versions (KIP-896 took the oldest away). Recorded: Produce
version 2 closes the connection on 4.4.0.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from msgspec import Struct

from kaudit.broker.releases.table import Change, rows_of
from kaudit.broker.releases.version import Version

Versions = tuple[int, int]
"""The first and the last version, both included."""


class RequestVersions(Struct, frozen=True, kw_only=True):
    """The versions of each request that attempts hold, by their `op`. The defaults are those of 0.11.0.0."""

    produce: Annotated[
        Versions,
        "Produce",
        Change("1.0.0", (0, 5), "ProduceRequest"),
        Change("2.0.0", (0, 6), "KIP-219"),
        Change("2.1.0", (0, 7), "KIP-110"),
        Change("2.4.0", (0, 8), "KIP-467"),
        Change("2.8.0", (0, 9), "KIP-482"),
        Change("3.7.0", (0, 10), "KIP-951"),
        Change("3.8.0", (0, 11), "KIP-890"),
        Change("4.0.0", (3, 12), "KIP-890, KIP-896", recorded="4.4.0"),
        Change("4.1.0", (3, 13), "KIP-516"),
    ] = (0, 3)
    init_producer_id: Annotated[
        Versions,
        "InitProducerId",
        Change("2.0.0", (0, 1), "KIP-219"),
        Change("2.4.0", (0, 2), "KIP-482"),
        Change("2.5.0", (0, 3), "KIP-360"),
        Change("2.7.0", (0, 4), "KIP-588"),
        Change("3.8.0", (0, 5), "KIP-890"),
    ] = (0, 0)
    add_partitions: Annotated[
        Versions,
        "AddPartitionsToTxn",
        Change("2.0.0", (0, 1), "KIP-219"),
        Change("2.7.0", (0, 2), "KIP-588"),
        Change("2.8.0", (0, 3), "KIP-482"),
        Change("3.6.0", (0, 4), "KIP-890"),
        Change("3.8.0", (0, 5), "KIP-890"),
    ] = (0, 0)
    end_txn: Annotated[
        Versions,
        "EndTxn",
        Change("2.0.0", (0, 1), "KIP-219"),
        Change("2.7.0", (0, 2), "KIP-588"),
        Change("2.8.0", (0, 3), "KIP-482"),
        Change("3.8.0", (0, 4), "KIP-890"),
        Change("4.0.0", (0, 5), "KIP-890"),
    ] = (0, 0)
    txn_offset_commit: Annotated[
        Versions,
        "TxnOffsetCommit",
        Change("2.0.0", (0, 1), "KIP-219"),
        Change("2.1.0", (0, 2), "KIP-320"),
        Change("2.5.0", (0, 3), "KIP-447"),
        Change("3.8.0", (0, 4), "KIP-890"),
        Change("4.0.0", (0, 5), "KIP-890"),
        Change("4.4.0", (0, 6), "TxnOffsetCommitRequest"),
    ] = (0, 0)
    write_marker: Annotated[
        Versions,
        "WriteTxnMarkers",
        Change("2.8.0", (0, 1), "KIP-482"),
        Change("4.0.0", (1, 1), "KIP-896"),
        Change("4.2.0", (1, 2), "KIP-1228"),
    ] = (0, 0)


@cache
def versions_in(release: Version) -> Mapping[str, Versions]:
    """Return the versions that a release answers, by the `op` of the attempt."""
    return {op: row.value_in(release) for op, row in rows_of(RequestVersions).items()}  # type: ignore[misc]  # all are Versions
