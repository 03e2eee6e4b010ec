"""Requests and responses as they travel. Immutable: a batch whose sequence changes later was sent as it was."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.append_result import Outcome
from kaudit.broker.response import TopicPartition
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kaudit.model.sequence import add as add_sequence
from kaudit.simulate.producer_batch import ProducerBatch
from kaudit.simulate.trace import BrokerAnswer


class PartitionProduceData(NamedTuple):
    """One partition's batch in a produce request, with the bytes and the sequence it was sent with."""

    partition: TopicPartition
    batch: ProducerBatch
    data: bytes
    producer_id: int
    epoch: int
    base_sequence: int
    record_count: int
    timestamp: int
    transactional: bool


class ProduceRequest(Struct, frozen=True):
    """Produce; `timeout_ms` is how long the leader may wait for replicas."""

    parts: tuple[PartitionProduceData, ...]
    acks: int
    timeout_ms: int
    transactional_id: str | None
    api_version: int


class InitProducerIdRequest(Struct, frozen=True):
    """InitProducerId; `producer` is the producer id and epoch the client has, -1 and -1 for none.

    `recorded_under` is the partition under which the request stands in the attempts.
    """

    transactional_id: str | None
    timeout_ms: int
    producer: tuple[int, int]
    api_version: int
    recorded_under: TopicPartition


class AddPartitionsToTxnRequest(Struct, frozen=True):
    """AddPartitionsToTxn."""

    transactional_id: str
    producer: tuple[int, int]
    partitions: tuple[TopicPartition, ...]
    api_version: int


class EndTxnRequest(Struct, frozen=True):
    """EndTxn; `recorded_under` as in InitProducerIdRequest."""

    transactional_id: str
    producer: tuple[int, int]
    commit: bool
    api_version: int
    recorded_under: TopicPartition


KafkaRequest = ProduceRequest | InitProducerIdRequest | AddPartitionsToTxnRequest | EndTxnRequest
API_NAMES: dict[type[KafkaRequest], str] = {
    ProduceRequest: "Produce",
    InitProducerIdRequest: "InitProducerId",
    AddPartitionsToTxnRequest: "AddPartitionsToTxn",
    EndTxnRequest: "EndTxn",
}
"""Kafka's names of them."""


class PartitionProduceResponse(NamedTuple):
    """The leader's response to one partition; `base_offset` and `log_start_offset` are -1 where it gives none.

    `decided` is the reason, for the sequence diagram; None where nobody draws one.
    """

    part: PartitionProduceData
    error: KafkaError
    base_offset: int
    log_start_offset: int
    decided: BrokerAnswer | None = None


class ProduceResponse(NamedTuple):
    """The leader's responses, partition by partition."""

    results: tuple[PartitionProduceResponse, ...]


class CoordinatorResponse(NamedTuple):
    """A coordinator's response, with the producer id and epoch to use from now on; -1 and -1 where it gives none.

    `why` is its reason.
    """

    error: KafkaError
    producer: tuple[int, int]
    why: str = ""

    @property
    def decided(self) -> BrokerAnswer:
        """The decision, for the sequence diagram."""
        return BrokerAnswer("", None, self.error, self.why)


KafkaResponse = ProduceResponse | CoordinatorResponse


class ConnectionClosed(NamedTuple):
    """What a broker does in place of a response to an error with acks=0. Source: KafkaApis.handleProduceRequest."""

    why: str


Respond = Callable[[KafkaResponse | ConnectionClosed | None], None]
"""Called by a broker, once, with what it does about a request; None where nothing is sent back (acks=0)."""


def partitions_of(request: KafkaRequest) -> tuple[str, ...]:
    """Return the names of the partitions a request is about, none where it is about all of a transaction's."""
    if isinstance(request, ProduceRequest):
        return tuple(partition_name(part.partition) for part in request.parts)
    return tuple(map(partition_name, request.partitions)) if isinstance(request, AddPartitionsToTxnRequest) else ()


def producer_of(request: KafkaRequest) -> int:
    """Return the producer id a request is sent under, -1 for none."""
    return request.parts[0].producer_id if isinstance(request, ProduceRequest) else request.producer[0]


def partition_name(partition: TopicPartition) -> str:
    """Return a partition's name, like orders-0."""
    return f"{partition[0]}-{partition[1]}"


def describe_request(request: KafkaRequest) -> str:
    """Return a short text for the sequence diagram."""
    if isinstance(request, ProduceRequest):
        return "; ".join(map(_part, request.parts))
    if isinstance(request, InitProducerIdRequest):
        who = f" {request.transactional_id}" if request.transactional_id else ""
        producer_id, epoch = request.producer
        known = f", has id {producer_id} epoch {epoch}" if producer_id >= 0 else ""
        return f"InitProducerId{who}{known}"
    if isinstance(request, AddPartitionsToTxnRequest):
        names = ", ".join(map(partition_name, request.partitions))
        return f"AddPartitionsToTxn {request.transactional_id} epoch {request.producer[1]}: {names}"
    return f"EndTxn {request.transactional_id} epoch {request.producer[1]}: {'commit' if request.commit else 'abort'}"


def _part(part: PartitionProduceData) -> str:
    topic, number = part.partition
    numbers = part.batch.numbers
    records = f"#{numbers[0]}" if len(numbers) == 1 else f"#{numbers[0]}..{numbers[-1]}"
    if part.producer_id < 0:
        return f"{topic}-{number} {records}"
    last = add_sequence(part.base_sequence, part.record_count - 1)
    sequence = f"seq {part.base_sequence}" if part.record_count == 1 else f"seq {part.base_sequence}..{last}"
    return f"{topic}-{number} {records} id {part.producer_id} epoch {part.epoch} {sequence}"


def describe_response(response: KafkaResponse) -> str:
    """Return a short text for the sequence diagram."""
    if isinstance(response, CoordinatorResponse):
        if response.error is not KafkaError.NONE:
            return response.error.name
        return f"ok, id {response.producer[0]} epoch {response.producer[1]}" if response.producer[0] >= 0 else "ok"
    return "; ".join(map(_result, response.results))


def _result(result: PartitionProduceResponse) -> str:
    if result.error is not KafkaError.NONE:
        return result.error.name
    decided = result.decided
    if decided is None or decided.answer is None:
        return f"ok, offset {result.base_offset}"
    if decided.answer.fields["outcome"] == Outcome.DUPLICATE.value:
        return f"duplicate of offset {result.base_offset}"
    again = f" (the same records are at offset {decided.copies[0].offset})" if decided.copies else ""
    return f"ok, offset {result.base_offset}{again}"


OnResponse = Callable[[KafkaResponse | None], None]
"""Called once: with the response, with None when nothing is to be expected (acks=0)."""
_NO_OFFSET = -1


class InjectedError(NamedTuple):
    """An error, of a produce request for one partition or, where that is None, for all of its partitions.

    `after_append`: the broker has carried the request out.
    """

    error: KafkaError
    partition: TopicPartition | None = None
    after_append: bool = False

    def answer(
        self,
        handle: Callable[[KafkaRequest, Respond], None],
        broker: str,
        request: KafkaRequest,
        respond: Respond,
    ) -> None:
        """Respond with the error; what it does not concern, and what is carried out all the same, `handle` does."""
        why = f"the scenario lets {broker} answer with {self.error.name}"
        if isinstance(request, ProduceRequest):
            self._answer_produce(handle, request, respond, why)
            return
        refused = CoordinatorResponse(self.error, (NO_PRODUCER_ID, NO_PRODUCER_EPOCH), why)
        if self.after_append:
            handle(request, lambda _: respond(refused))
        else:
            respond(refused)

    def _answer_produce(
        self,
        handle: Callable[[KafkaRequest, Respond], None],
        request: ProduceRequest,
        respond: Respond,
        why: str,
    ) -> None:
        errors = {
            part.partition: PartitionProduceResponse(
                part,
                self.error,
                _NO_OFFSET,
                _NO_OFFSET,
                BrokerAnswer(partition_name(part.partition), None, self.error, why),
            )
            for part in request.parts
            if self.partition in (None, part.partition)
        }

        def merge(response: KafkaResponse | ConnectionClosed | None) -> None:
            handled = response.results if isinstance(response, ProduceResponse) else ()
            results = {result.part.partition: result for result in handled} | errors
            ordered = tuple(results[part.partition] for part in request.parts if part.partition in results)
            if request.acks:
                respond(ProduceResponse(ordered))
            else:
                respond(ConnectionClosed(f"{self.error.name} with acks=0") if errors else None)

        others = tuple(part for part in request.parts if part.partition not in errors)
        if self.after_append:
            handle(request, merge)
        elif others:
            handle(replace(request, parts=others), merge)
        else:
            merge(None)
