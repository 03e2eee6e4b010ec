"""The listing of `kaudit producers` as the page shows it: a row for each producer id in each partition replica."""

from collections.abc import Iterator, Mapping

from kaudit.model.producer_listing import Producer, ProducerPartition, ProducersResult
from kaudit.report.html.finding_rows import int64
from kaudit.report.html.page_model import ProducerRow
from kaudit.report.html.partition_columns import Key
from kaudit.report.text.formatting import span
from kaudit.report.text.producer_formatting import block_text


def producer_rows(result: ProducersResult, partitions: Mapping[Key, int]) -> Iterator[ProducerRow]:
    """Yield the rows in the order of the listing; `partitions` are the indexes of those the page shows."""
    for producer in result.producers:
        for place in producer.partitions:
            yield _row(producer, place, partitions.get((place.topic, place.partition, place.replica)))


def _row(producer: Producer, place: ProducerPartition, partition: int | None) -> ProducerRow:
    state = place.state
    known = {
        "producer epoch": state.producer_epoch,
        "last sequence": state.last_sequence,
        "last offset": state.last_offset,
        "coordinator epoch": state.coordinator_epoch,
        "transaction open since offset": state.current_txn_start_offset,
    }
    return ProducerRow(
        producer_id=str(producer.producer_id),
        transactional_id=producer.transactional_id,
        pattern=producer.pattern,
        block=" and ".join(map(block_text, producer.grants)),
        partition=partition,
        place=f"{place.topic}-{place.partition}",
        replica=place.replica,
        epochs=span(place.first_epoch, place.last_epoch),
        first_offset=int64(place.first_offset),
        last_offset=int64(place.last_offset),
        first_timestamp=_time(place.first_timestamp),
        last_timestamp=_time(place.last_timestamp),
        batches=place.batches,
        records=place.records,
        state=[(name, "none" if value < 0 else str(value)) for name, value in known.items()],
        findings=list(dict.fromkeys(place.findings)),
    )


def _time(milliseconds: int) -> str | None:
    return None if milliseconds < 0 else str(milliseconds)
