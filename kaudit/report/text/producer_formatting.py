"""One producer id in words, for every human format."""

from kaudit.model.coordinator import ExpiredTransactionalId
from kaudit.model.producer_listing import GrantedBlock, Producer, ProducerPartition
from kaudit.report.console import visible
from kaudit.report.text.formatting import plural, span
from kaudit.report.text.timestamps import date_and_clock


def timestamp_text(milliseconds: int) -> str:
    """Return `2026-11-21 06:02:49`, or `-`: to the second, as a list needs no more."""
    date, clock = date_and_clock(milliseconds)
    return f"{date} {clock.partition('.')[0]}" if date else clock


def blocks_of(producer: Producer) -> str:
    """Return `block 3000..3999 of broker 0`, all of them if there are several."""
    if not producer.grants:
        return "block unknown"
    return " and ".join(f"block {block_text(block)}" for block in producer.grants)


def block_text(block: GrantedBlock) -> str:
    """Return `3000..3999 of broker 0`."""
    place = f"{block.start}..{block.end}"
    return place if block.broker is None else f"{place} of broker {block.broker}"


def partition_text(place: ProducerPartition) -> str:
    """Return what the producer did in one partition, and what a broker would remember of it."""
    name = visible(f"{place.topic}-{place.partition}") + (f" ({visible(place.replica)})" if place.replica else "")
    epochs = span(place.first_epoch, place.last_epoch)
    did = (
        f"{plural(place.batches, 'batch', 'batches')}, {plural(place.records, 'record')}, epoch {epochs}, "
        f"{timestamp_text(place.first_timestamp)} to {timestamp_text(place.last_timestamp)}"
    )
    state = place.state
    parts = [f"epoch {state.producer_epoch}"]
    parts.append(
        "no sequence"
        if state.last_sequence < 0
        else f"last sequence {state.last_sequence} at offset {state.last_offset}"
    )
    if state.coordinator_epoch >= 0:
        parts.append(f"coordinator epoch {state.coordinator_epoch}")
    if state.current_txn_start_offset >= 0:
        parts.append(f"transaction open since offset {state.current_txn_start_offset}")
    return f"{name} @ {span(place.first_offset, place.last_offset)}: {did}; a broker remembers {', '.join(parts)}"


def expired_text(expired: ExpiredTransactionalId) -> str:
    """Return what a transactional id had, when it expired, and what it has been given since."""
    had, following = "what it had before is not in the log any more", expired.next_producer_id
    if expired.producer_id is not None:
        assert expired.last_update_timestamp is not None
        updated = timestamp_text(expired.last_update_timestamp)
        had = f"producer id {expired.producer_id} epoch {expired.producer_epoch}, last updated {updated}"
    since = "not seen since" if following is None else f"then producer id {following}"
    where = f"__transaction_state-{expired.partition}@{expired.offset}"
    name = visible(expired.transactional_id)
    return f"{name}: {had}; expired {timestamp_text(expired.expired_timestamp)} UTC ({where}); {since}"
