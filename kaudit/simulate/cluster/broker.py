"""One broker: its process, and what it does with requests. Source: KafkaApis, ReplicaManager."""

from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.attempts import Produce
from kaudit.broker.attempts.produce import ProduceHandler
from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.broker.response import TopicPartition
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.model.sequence import add as add_sequence
from kaudit.simulate.cluster.brokers import BrokerProcess, Brokers, RunContext
from kaudit.simulate.cluster.partition import ProduceCompletion, ReplicatedPartition
from kaudit.simulate.cluster.producer_id_manager import ProducerIdManager
from kaudit.simulate.cluster.replica_log import StoredBatch
from kaudit.simulate.cluster.transaction_state_manager import TransactionStateManager
from kaudit.simulate.producer.transaction_manager import NO_PRODUCER
from kaudit.simulate.requests import (
    AddPartitionsToTxnRequest,
    ConnectionClosed,
    CoordinatorResponse,
    InitProducerIdRequest,
    KafkaRequest,
    KafkaResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    Respond,
)
from kaudit.simulate.trace import BrokerAnswer

_ACKS_ALL = -1
_NO_OFFSET = -1
_PAUSED_MS = 50
"""How often a paused broker's request is looked at again."""


class ReplicaManager(Struct, frozen=True):
    """What all brokers of a cluster share to handle produce requests. Source: ReplicaManager."""

    partitions: dict[TopicPartition, ReplicatedPartition]
    produce_handler: ProduceHandler
    brokers: Brokers


class BrokerServer(BrokerProcess):
    """A broker's process and what it answers; logs belong to the partitions."""

    def __init__(
        self,
        number: int,
        replica_manager: ReplicaManager,
        transactions: TransactionStateManager,
        producer_ids: ProducerIdManager,
        context: RunContext,
    ) -> None:
        super().__init__(number, context.clock)
        self.producer_ids = producer_ids
        self._partitions = replica_manager.partitions
        self._produce_handler = replica_manager.produce_handler
        self._transactions = transactions
        self._brokers = replica_manager.brokers
        self._recorder = context.recorder
        self._trace = context.trace

    def handle(self, request: KafkaRequest, respond: Respond) -> None:
        """Handle a request and respond, now or later: a slow disk holds up the thread that handles it."""
        respond = partial(self._respond, self.incarnation, request, respond)
        if self.disk_delay_ms:
            self._clock.after(self.disk_delay_ms, partial(self._handle_if_up, self.incarnation, request, respond))
        else:
            self._handle(request, respond)

    def _handle_if_up(self, incarnation: int, request: KafkaRequest, respond: Respond) -> None:
        if incarnation != self.incarnation:
            return
        if self.is_running:
            self._handle(request, respond)
        else:
            self._clock.after(_PAUSED_MS, partial(self._handle_if_up, incarnation, request, respond))

    def _handle(self, request: KafkaRequest, respond: Respond) -> None:
        if isinstance(request, ProduceRequest):
            self._produce_all(request, respond)
        elif isinstance(request, InitProducerIdRequest):
            self._init_producer_id(request, respond)
        elif self._transactions.broker != self.number:
            respond(self._not_coordinator())
        elif not self._transactions.is_replicated:
            respond(self._not_available())
        elif isinstance(request, AddPartitionsToTxnRequest):
            respond(self._transactions.add_partitions(request))
        elif self._transactions.may_need_producer_id(request):
            self.producer_ids.generate(
                partial(self._with_producer_id, partial(self._transactions.end_transaction, request), respond)
            )
        else:
            respond(self._transactions.end_transaction(request, None))

    def _respond(
        self,
        incarnation: int,
        request: KafkaRequest,
        respond: Respond,
        response: KafkaResponse | ConnectionClosed | None,
    ) -> None:
        if incarnation != self.incarnation:
            return
        if isinstance(response, CoordinatorResponse) and not self._trace.is_full:
            self._trace.answered(request, response.decided)
        respond(response)

    def _init_producer_id(self, request: InitProducerIdRequest, respond: Respond) -> None:
        transactions = self._transactions
        if request.transactional_id is not None and transactions.broker != self.number:
            respond(self._not_coordinator())
        elif request.transactional_id is not None and not transactions.is_replicated:
            respond(self._not_available())
        elif transactions.needs_producer_id(request):
            self.producer_ids.generate(
                partial(self._with_producer_id, partial(transactions.init_producer_id, request), respond)
            )
        else:
            respond(transactions.init_producer_id(request, None))

    def _not_coordinator(self) -> CoordinatorResponse:
        leader = self._transactions.broker
        where = "no broker does for now" if leader is None else f"broker {leader} does"
        why = f"{self.name} does not coordinate this transactional id: {where}"
        return CoordinatorResponse(KafkaError.NOT_COORDINATOR, NO_PRODUCER, why)

    def _not_available(self) -> CoordinatorResponse:
        """Answer what real coordinators do when request.timeout.ms is over. Source: TransactionStateManager."""
        why = f"{self.name} cannot replicate the transaction log to all of its in-sync replicas"
        return CoordinatorResponse(KafkaError.COORDINATOR_NOT_AVAILABLE, NO_PRODUCER, why)

    def _with_producer_id(
        self, answer: Callable[[int], CoordinatorResponse], respond: Respond, granted: int | None
    ) -> None:
        """Respond with what `answer` makes of a producer id, if there is one to grant."""
        if granted is None:
            why = "the broker is waiting for a block of producer ids"
            respond(CoordinatorResponse(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, NO_PRODUCER, why))
        else:
            respond(answer(granted))

    # -- produce -----------------------------------------------------------------------------------------------------
    def _produce_all(self, request: ProduceRequest, respond: Respond) -> None:
        """Append every partition's batch, and respond when the last of them is complete."""
        results: dict[TopicPartition, PartitionProduceResponse] = {}

        def completed(result: PartitionProduceResponse) -> None:
            results[result.part.partition] = result
            if len(results) < len(request.parts):
                return
            ordered = tuple(results[part.partition] for part in request.parts)
            if request.acks != 0:
                respond(ProduceResponse(ordered))
                return
            errors = [result for result in ordered if result.error is not KafkaError.NONE]
            respond(ConnectionClosed(f"{errors[0].error.name} with acks=0") if errors else None)

        for part in request.parts:
            self._produce(request, part, completed)

    def _produce(
        self, request: ProduceRequest, part: PartitionProduceData, complete: Callable[[PartitionProduceResponse], None]
    ) -> None:
        """Append one partition's batch at the leader, and complete it when acks are satisfied."""
        partition = self._partitions[part.partition]
        refusal = self._refuse(request, part, partition)
        if refusal is not None:
            refused = BrokerAnswer(partition.name, None, refusal.error, refusal.why)
            self._trace.answered(request, refused)
            complete(PartitionProduceResponse(part, refusal.error, _NO_OFFSET, _NO_OFFSET, refused))
            return
        log = partition.leader_log()
        memory = log.memory
        now = self.timestamp
        if memory.next_sweep is None or now >= memory.next_sweep:
            memory.pass_time(now)
        end = memory.log_end
        before = memory.state_of(part.producer_id)
        attempt = self._attempt(request, part)
        answer = self._produce_handler.produce(attempt, part.partition, memory, partition.config.limits, now)
        self._recorder.record(attempt, answer)
        decided: BrokerAnswer | None = None
        if not self._trace.is_full:
            decided = BrokerAnswer(partition.name, answer, copies=partition.copies_of(part.batch))
            self._trace.answered(request, decided)
        if part.transactional and request.transactional_id is not None:
            self._transactions.partition_added(request.transactional_id)
        if memory.log_end != end:
            partition.appended(_stored_batch(part, end, partition.leader_epoch), before)
        outcome = answer.fields["outcome"]
        start = log.log_start
        if outcome == "no-response":
            complete(PartitionProduceResponse(part, KafkaError.NONE, _NO_OFFSET, start, decided))
        elif outcome not in ("appended", "duplicate"):
            error = KafkaError(answer.fields.get("error_code", KafkaError.UNKNOWN_SERVER_ERROR))
            complete(PartitionProduceResponse(part, error, _NO_OFFSET, start, decided))
        elif request.acks == _ACKS_ALL:
            base = answer.fields["base_offset"]
            partition.await_replicas(
                base,
                base + part.record_count - 1,
                request.timeout_ms,
                lambda appended: complete(_result(part, appended, start, decided)),
            )
        else:
            complete(PartitionProduceResponse(part, KafkaError.NONE, answer.fields["base_offset"], start, decided))

    def _refuse(
        self, request: ProduceRequest, part: PartitionProduceData, partition: ReplicatedPartition
    ) -> ProduceCompletion | None:
        """Return why a batch is not validated: by the partition, or because no coordinator can verify its transaction.

        Source: AddPartitionsToTxnManager; ReplicaManager makes its NETWORK_EXCEPTION and COORDINATOR_NOT_AVAILABLE
        NOT_ENOUGH_REPLICAS.
        """
        refusal = partition.refuse_produce(self.number, request.acks)
        if refusal is not None or not part.transactional:
            return refusal
        coordinator = self._transactions.broker
        reached = coordinator is not None and self._brokers.reaches(self.number, coordinator)
        if reached and self._transactions.is_replicated:
            return None
        if not self._produce_handler.verifier.asks_coordinator(request.api_version):
            return None
        if partition.leader_log().memory.has_ongoing_transaction(part.producer_id, part.epoch):
            return None
        whom = "a coordinator" if coordinator is None else f"broker {coordinator}, the coordinator,"
        why = f"{self.name} cannot ask {whom} whether the transaction is open"
        return ProduceCompletion(KafkaError.NOT_ENOUGH_REPLICAS, _NO_OFFSET, why)

    def _attempt(self, request: ProduceRequest, part: PartitionProduceData) -> Produce:
        return self._recorder.attempt(
            Produce,
            part.partition,
            producer_id=part.producer_id,
            producer_epoch=part.epoch,
            base_sequence=part.base_sequence,
            record_count=part.record_count,
            is_transactional=part.transactional,
            transactional_id=request.transactional_id,
            acks=request.acks,
            api_version=request.api_version,
            timestamp=part.timestamp,
            records_hex=part.data.hex(),
        )


def _result(
    part: PartitionProduceData, appended: ProduceCompletion, log_start: int, decided: BrokerAnswer | None
) -> PartitionProduceResponse:
    if decided is not None and appended.why:
        decided = replace(decided, error=appended.error, why=appended.why)
    return PartitionProduceResponse(part, appended.error, appended.base_offset, log_start, decided)


def _stored_batch(part: PartitionProduceData, base_offset: int, leader_epoch: int) -> StoredBatch:
    delta = part.record_count - 1
    last_offset = base_offset + delta
    state = None
    if part.producer_id >= 0:
        last = part.base_sequence + delta
        state = DataBatch(
            part.producer_id,
            part.epoch,
            part.base_sequence,
            last if last <= MAX_SEQUENCE else add_sequence(part.base_sequence, delta),
            base_offset,
            last_offset,
            part.timestamp,
            part.transactional,
        )
    return StoredBatch(base_offset, last_offset, leader_epoch, part.timestamp, part.data, state, part.batch)
