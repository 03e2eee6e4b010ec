"""A producer id in one partition replica, as lists of producer ids and tables show it, and the findings about it."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from kaudit.listings.query import Query
from kaudit.model.batch_fields import NO_SEQUENCE, NO_TIMESTAMP
from kaudit.model.finding import Finding
from kaudit.model.producer_listing import ProducerPartition, ProducerState
from kaudit.reading.rows import Rows


class AboutProducer(Struct, frozen=True):
    """What a list of producer ids shows of a finding about one. `place` is topic, partition and replica."""

    producer_id: int
    code: str
    fingerprint: str
    place: tuple[str | None, int | None, str | None]


def producer_partition(
    place: tuple[str, int, str], row: Rows, findings: Sequence[AboutProducer], *, remembers_markers: bool
) -> ProducerPartition:
    """Make the entry of one id in one partition replica from its row of PRODUCER_ACTIVITY; of `findings`, those in it."""
    topic, partition, replica = place
    timestamp = int(row["state_timestamp"] if remembers_markers else row["state_data_timestamp"])
    if not remembers_markers and row["state_sequence"] == NO_SEQUENCE:
        timestamp = NO_TIMESTAMP  # forgotten at the next expiry check or restart (KAFKA-9144)
    return ProducerPartition(
        topic=topic,
        partition=partition,
        replica=replica,
        first_offset=int(row["first_offset"]),
        last_offset=int(row["last_offset"]),
        first_timestamp=int(row["first_timestamp"]),
        last_timestamp=int(row["last_timestamp"]),
        first_epoch=int(row["first_epoch"]),
        last_epoch=int(row["highest_epoch"]),
        epochs=int(row["epochs"]),
        batches=int(row["batches"]),
        records=int(row["records"]),
        state=ProducerState(
            producer_epoch=int(row["state_epoch"]),
            last_sequence=int(row["state_sequence"]),
            last_offset=int(row["state_offset"]),
            last_timestamp=timestamp,
            coordinator_epoch=int(row["state_coordinator_epoch"]),
            current_txn_start_offset=int(row["state_txn_offset"]),
        ),
        findings=tuple(finding.fingerprint for finding in findings if finding.place == place),
    )


def about_producers(findings: Iterable[Finding], query: Query) -> Iterator[AboutProducer]:
    """Yield what a list of producer ids shows of those findings that are about one and count."""
    for finding in findings:
        if finding.producer_id is not None and query.includes(finding.code):
            place = finding.topic, finding.partition, finding.replica
            yield AboutProducer(finding.producer_id, finding.code, finding.fingerprint, place)


def by_producer(found: Iterable[AboutProducer]) -> dict[int, list[AboutProducer]]:
    """Group by producer id."""
    grouped: dict[int, list[AboutProducer]] = {}
    for finding in found:
        grouped.setdefault(finding.producer_id, []).append(finding)
    return grouped
