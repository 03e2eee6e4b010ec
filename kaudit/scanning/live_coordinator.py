"""What brokers say, right now, of the transactions that are open at the end of what was fetched."""

from collections.abc import Iterator, Mapping, Sequence

from kaudit.model.coordinator import (
    CoordinatorEntry,
    CoordinatorView,
    TopicPartitions,
    TransactionStatus,
    TransactionValue,
)
from kaudit.model.result import NotAudited
from kaudit.partition.audit import PartitionAudit
from kaudit.source.kafka.answers import DescribedTransaction, TopicPartition
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.failures import AccessDeniedError, UnsupportedRequestError
from kaudit.source.kafka.partitions import client_of

_NOT_SHOWN = (
    "the brokers list no transactional id with this producer id to this principal, which may not see all of them"
)
_STATES: Mapping[str, TransactionStatus] = {status.label: status for status in TransactionStatus}


def ask_coordinators(parts: Sequence[PartitionAudit], problems: list[NotAudited]) -> CoordinatorView:
    """Ask for the transactions that are open in partitions of one cluster; those that have ended since are taken out.

    The coordinators are asked first and the partitions' leaders after them: what a coordinator has ended by then has its
    markers written, so that a transaction that is still open on the leader is one it will not end (KIP-664). What cannot be
    asked is added to `problems`.
    """
    place = next(
        segment.fetched for part in parts for segment in part.directory.segments if segment.fetched is not None
    )
    client = client_of(place.servers, place.command_config)
    try:
        view = _view(client, {opened.producer_id for part in parts for opened in part.opened})
        for part in parts:
            _take_out_ended(client, part)
    except UnsupportedRequestError:
        return CoordinatorView()  # brokers before 3.0 list no transactions: as where there is no __transaction_state
    except OSError as error:
        why = f"their state could not be asked for: {error.filename}: {error.strerror}"
        # whom brokers do not tell is no failure; who does not answer is
        is_unreadable = not isinstance(error, AccessDeniedError)
        problems.append(NotAudited("open transactions", why, unreadable=is_unreadable))
        return CoordinatorView()
    return view


def _view(client: KafkaClient, producer_ids: set[int]) -> CoordinatorView:
    listed = [one for one in client.list_transactions() if one.producer_id in producer_ids]
    entries: dict[int, CoordinatorEntry] = {}
    for described in client.describe_transactions(listed):
        entries[described.producer_id] = CoordinatorEntry(described.transactional_id, _value(described), -1)
    return CoordinatorView(entries, present=True, complete=not client.has_authorizer(), unknown=_NOT_SHOWN)


def _take_out_ended(client: KafkaClient, part: PartitionAudit) -> None:
    """Keep the transactions that are open on the leader by now, from the same offset."""
    if not part.opened:
        return
    partition = TopicPartition(part.directory.topic, part.directory.partition)
    still = {(one.producer_id, one.current_txn_start_offset) for one in client.describe_producers(partition)}
    part.opened = [one for one in part.opened if (one.producer_id, one.first_offset) in still]


def _value(described: DescribedTransaction) -> TransactionValue:
    status = _STATES.get(described.state, TransactionStatus.UNKNOWN)
    return TransactionValue(
        version=0,
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        timeout_ms=described.timeout_ms,
        status=status,
        status_id=int(status),
        partitions=tuple(_by_topic(described.partitions)),
        last_update_timestamp=-1,
        start_timestamp=described.start_time_ms,
    )


def _by_topic(partitions: Sequence[TopicPartition]) -> Iterator[TopicPartitions]:
    for topic in sorted({partition.topic for partition in partitions}):
        yield TopicPartitions(topic, tuple(number for name, number in partitions if name == topic))
