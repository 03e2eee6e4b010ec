"""Errors that a scenario lets a broker answer with, whatever the broker would decide.

Source: KafkaApis.handleProduceRequest answers partition by partition; ReplicaManager.appendRecords and DelayedProduce
give errors before and after a batch was appended.
"""

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from kaudit.broker.errors import KafkaError
from kaudit.broker.response import TopicPartition
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kaudit.simulate.requests import (
    ConnectionClosed,
    CoordinatorResponse,
    KafkaRequest,
    KafkaResponse,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    Respond,
    partition_name,
)
from kaudit.simulate.trace import BrokerAnswer

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
