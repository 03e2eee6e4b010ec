"""Aborted transactions that a fetch lists, out of the broker's transaction index, compared with those the log itself shows."""

from collections.abc import Iterator

from kaudit.audits.sidefiles.log_facts import LogFacts
from kaudit.model.batch_fields import ABORT_MARKER, NO_OFFSET
from kaudit.model.side_files import MissingAbortedTxn, TransactionIndexMismatch
from kaudit.source.layout import FetchedRange


def compare_listed_aborts(log: LogFacts, place: FetchedRange) -> Iterator[TransactionIndexMismatch]:
    """Yield what of a partition's aborted transactions the broker does not list to read_committed consumers.

    It lists those that end below the last stable offset, by producer id and first offset (FetchResponse, KIP-98). Of a
    transaction that began below what was read the log shows another beginning.
    """
    if log.ended is None or not log.is_whole:
        return
    ended = log.ended[log.ended["type"] == ABORT_MARKER]
    ended = ended[(ended["first_offset"] != NO_OFFSET) & (ended["marker_offset"] < place.stable_offset)]
    begun_before = {producer_id for producer_id, first in log.listed_aborts if first < place.readable_from}
    missing = [
        MissingAbortedTxn(producer_id, first, marker)
        for producer_id, first, marker in zip(
            ended["producer_id"].tolist(), ended["first_offset"].tolist(), ended["marker_offset"].tolist(), strict=True
        )
        if (producer_id, first) not in log.listed_aborts and producer_id not in begun_before
    ]
    if missing:
        yield TransactionIndexMismatch("", 0, [], missing, None)
