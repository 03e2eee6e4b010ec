"""Whether a partition may append to a transaction: the coordinator is asked (KIP-890).

Source: ReplicaManager.maybeStartTransactionVerificationForPartition, AddPartitionsToTxnManager.
"""

from kaudit.broker.coordinator.requests import RequestContext
from kaudit.broker.coordinator.transaction_coordinator import TransactionCoordinator
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.record_set import Refusal
from kaudit.broker.partition.replica import Replica
from kaudit.broker.producer_state.producer_append_info import TRANSACTION_VERSION_2
from kaudit.broker.releases.profile import Profile

_ADDING_PRODUCE = 12
"""Produce version from which producing adds the partition to the transaction (transaction version 2)."""


class TransactionVerifier:
    """Asks a broker's coordinator about transactions; `verifies`: transaction.partition.verification.enable.

    `epoch`: the one to verify with, whatever a partition's batch has; None: that of the batch.
    """

    def __init__(
        self, profile: Profile, coordinator: TransactionCoordinator, *, verifies: bool, epoch: int | None = None
    ) -> None:
        self._profile = profile
        self._coordinator = coordinator
        self.verifies = profile.verifies_transactions and verifies
        self._epoch = epoch

    def of_epoch(self, epoch: int) -> "TransactionVerifier":
        """Return one that asks whether `epoch` may append, for batches of every epoch."""
        return TransactionVerifier(self._profile, self._coordinator, verifies=self.verifies, epoch=epoch)

    def produce_adds(self, api_version: int) -> bool:
        """Return whether a produce request of this version adds its partitions to the transaction."""
        return self._profile.transaction_version2 and api_version >= _ADDING_PRODUCE

    def asks_coordinator(self, api_version: int) -> bool:
        """Return whether the coordinator is asked about transactions: for transaction version 2, whatever is configured."""
        return self.verifies or self.produce_adds(api_version)

    def verify(
        self,
        request: RequestContext,
        transactional_id: str,
        first: tuple[int, int, int],
        partition: Replica,
        versions: tuple[bool, bool],
    ) -> Refusal | None:
        """Ask the coordinator about a transaction this partition does not know to be open (KIP-890).

        `first` is the producer id and epoch of a transactional batch, and the first sequence of the request; `versions`:
        whether the request adds the partition to the transaction, and knows TRANSACTION_ABORTABLE.
        """
        producer_id, epoch, _ = first
        if self._profile.stale_epoch_before_verification and partition.is_fenced(producer_id, epoch):
            known = partition.state_of(producer_id).epoch
            return Refusal(KafkaError.INVALID_PRODUCER_EPOCH, f"epoch {epoch} is below the current one, {known}")
        if partition.has_ongoing_transaction(producer_id, epoch):
            return None
        adds, understood = versions
        partition.start_verification(first, request.now, TRANSACTION_VERSION_2 if adds else 0)
        if adds:
            granted = self._coordinator.add_partitions(
                request, transactional_id, producer_id, epoch, TRANSACTION_VERSION_2
            )
            error, why = granted.error, granted.why
            if error is KafkaError.PRODUCER_FENCED:
                error = KafkaError.INVALID_PRODUCER_EPOCH  # what producers expect here
        else:
            asked = epoch if self._epoch is None else self._epoch
            error, why = self._coordinator.verify(transactional_id, producer_id, asked, request.partition)
            if asked != epoch:
                why = f"verified with epoch {asked}, that of another partition's batch: {why}"
            if error is KafkaError.TRANSACTION_ABORTABLE and not understood:
                error = KafkaError.INVALID_TXN_STATE
        return None if error is KafkaError.NONE else Refusal(error, why)
