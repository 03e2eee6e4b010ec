"""One broker: its process, and what it does with requests. Source: KafkaApis, ReplicaManager."""

from collections.abc import Callable
from enum import Enum
from functools import partial

from kaudit.broker.attempts import Produce
from kaudit.broker.errors import KafkaError
from kaudit.broker.partition.produce import ProduceHandler
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, DataBatch
from kaudit.broker.response import Answer, TopicPartition
from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.model.sequence import add as add_sequence
from kaudit.simulate.clock import Clock
from kaudit.simulate.cluster.allocator import Allocator
from kaudit.simulate.cluster.coordination import Coordination
from kaudit.simulate.cluster.partition import Appended, ReplicatedPartition
from kaudit.simulate.cluster.recorder import Recorder
from kaudit.simulate.cluster.replica_log import StoredBatch
from kaudit.simulate.producer.sequences import NO_PRODUCER
from kaudit.simulate.requests import (
    AddPartitionsRequest,
    CoordinatorResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    PartResult,
    ProducedPart,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
)

_ACKS_ALL = -1
_NO_OFFSET = -1
Respond = Callable[[Response | None], None]


class Life(Enum):
    """What a broker's process does."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    KILLED = "killed"


class Broker:
    """A broker's process; logs belong to the partitions."""

    def __init__(
        self,
        number: int,
        clock: Clock,
        partitions: dict[TopicPartition, ReplicatedPartition],
        produce_handler: ProduceHandler,
        coordination: Coordination,
        allocator: Allocator,
        recorder: Recorder,
    ) -> None:
        self.number = number
        self.name = f"broker {number}"
        self.life = Life.RUNNING
        self.generation = 0
        """Counts its lives, so that what one had begun does not happen in the next."""
        self.allocator = allocator
        self._clock = clock
        self._partitions = partitions
        self._produce_handler = produce_handler
        self._coordination = coordination
        self._recorder = recorder

    @property
    def is_up(self) -> bool:
        """Whether it accepts connections: a paused process does."""
        return self.life in (Life.RUNNING, Life.PAUSED)

    @property
    def is_running(self) -> bool:
        """Whether it handles requests."""
        return self.life is Life.RUNNING

    def handle(self, request: Request, respond: Respond) -> None:
        """Handle a request and respond, now or later."""
        respond = partial(self._respond, self.generation, respond)
        if isinstance(request, ProduceRequest):
            _Production(self, request, respond).start()
        elif isinstance(request, InitProducerIdRequest):
            self._init_producer_id(request, respond)
        elif self._coordination.broker != self.number:
            respond(CoordinatorResponse(KafkaError.NOT_COORDINATOR, NO_PRODUCER))
        elif isinstance(request, AddPartitionsRequest):
            respond(self._coordination.add_partitions(request))
        elif self._coordination.may_need_producer_id(request):
            self.allocator.generate(partial(self._end_with_spare_id, request, respond))
        else:
            respond(self._coordination.end_transaction(request, None))

    def _respond(self, generation: int, respond: Respond, response: Response | None) -> None:
        if generation == self.generation:
            respond(response)

    def _init_producer_id(self, request: InitProducerIdRequest, respond: Respond) -> None:
        coordination = self._coordination
        if request.transactional_id is not None and coordination.broker != self.number:
            respond(CoordinatorResponse(KafkaError.NOT_COORDINATOR, NO_PRODUCER))
        elif coordination.needs_producer_id(request):
            self.allocator.generate(partial(self._init_with_id, request, respond))
        else:
            respond(coordination.init_producer_id(request, None))

    def _init_with_id(self, request: InitProducerIdRequest, respond: Respond, granted: int | None) -> None:
        if granted is None:
            respond(CoordinatorResponse(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, NO_PRODUCER))
        else:
            respond(self._coordination.init_producer_id(request, granted))

    def _end_with_spare_id(self, request: EndTxnRequest, respond: Respond, granted: int | None) -> None:
        if granted is None:
            respond(CoordinatorResponse(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, NO_PRODUCER))
        else:
            respond(self._coordination.end_transaction(request, granted))

    # -- produce -----------------------------------------------------------------------------------------------------
    def produce(self, request: ProduceRequest, part: ProducedPart, complete: Callable[[PartResult], None]) -> None:
        """Let the leader decide about one part, and complete it when acks are satisfied."""
        partition = self._partitions[part.partition]
        refusal = partition.refusal(self.number, request.acks)
        if refusal is not KafkaError.NONE:
            complete(PartResult(part, refusal, _NO_OFFSET, _NO_OFFSET))
            return
        log = partition.leader_log()
        memory = log.memory
        now = self._clock.timestamp
        if memory.next_sweep is None or now >= memory.next_sweep:
            memory.pass_time(now)
        end = memory.log_end
        before = UNKNOWN if part.producer_id < 0 else memory.state_of(part.producer_id)
        attempt = self._attempt(request, part)
        answer = self._produce_handler.produce(attempt, part.partition, memory, partition.config.limits, now)
        self._recorder.record(attempt, answer)
        if part.transactional and request.transactional_id is not None:
            self._coordination.began(request.transactional_id)
        if memory.log_end != end:
            partition.appended(_stored(part, end, partition.leader_epoch), before)
        self._settle(request, part, partition, answer, complete)

    def _settle(
        self,
        request: ProduceRequest,
        part: ProducedPart,
        partition: ReplicatedPartition,
        answer: Answer,
        complete: Callable[[PartResult], None],
    ) -> None:
        outcome = answer.fields["outcome"]
        start = partition.leader_log().log_start
        if outcome == "no-response":
            complete(PartResult(part, KafkaError.NONE, _NO_OFFSET, start))
        elif outcome not in ("appended", "duplicate"):
            error = KafkaError(answer.fields.get("error_code", KafkaError.UNKNOWN_SERVER_ERROR))
            complete(PartResult(part, error, _NO_OFFSET, start))
        elif request.acks == _ACKS_ALL:
            base = answer.fields["base_offset"]
            partition.await_replicas(
                base,
                base + part.record_count - 1,
                request.timeout_ms,
                lambda appended: complete(_result(part, appended, start)),
            )
        else:
            complete(PartResult(part, KafkaError.NONE, answer.fields["base_offset"], start))

    def _attempt(self, request: ProduceRequest, part: ProducedPart) -> Produce:
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


class _Production:
    """A produce request under way: answered when its last part is."""

    def __init__(self, broker: Broker, request: ProduceRequest, respond: Respond) -> None:
        self._broker = broker
        self._request = request
        self._respond = respond
        self._results: dict[TopicPartition, PartResult] = {}

    def start(self) -> None:
        """Hand every part to its partition."""
        for part in self._request.parts:
            self._broker.produce(self._request, part, self._completed)

    def _completed(self, result: PartResult) -> None:
        self._results[result.part.partition] = result
        if len(self._results) == len(self._request.parts):
            results = tuple(self._results[part.partition] for part in self._request.parts)
            self._respond(None if self._request.acks == 0 else ProduceResponse(results))


def _result(part: ProducedPart, appended: Appended, log_start: int) -> PartResult:
    return PartResult(part, appended.error, appended.base_offset, log_start)


def _stored(part: ProducedPart, base_offset: int, leader_epoch: int) -> StoredBatch:
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
