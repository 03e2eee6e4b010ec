"""What a client is answered in a recording, and the error that its log must show."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tests.client_streams.scenario import Reply, Scenario
from tests.client_streams.script import Request, Script
from tests.client_streams.scripted_broker import TOPIC

__all__ = ["CASES", "TOPIC", "Answers", "Case"]


class Case(Struct, frozen=True):
    """One producer: `replies` are the answers of the requests of a kind, oldest first; all others are answered without error.

    A producer sends two records to partition 0 of TOPIC, each alone and waiting for its answer, a transactional one in one
    transaction that it commits. `error` is what it is told, by the protocol's name.
    """

    name: str
    error: str
    replies: Mapping[str, Sequence[str]]
    transactional: bool = False


def _refused(error: str) -> Case:
    return Case(error.lower().replace("_", "-"), error, {"Produce": ["ok", error]})


def _in_transaction(name: str, api: str, error: str) -> Case:
    return Case(f"transactional-{name}", error, {api: ["ok", error] if api == "Produce" else [error]}, True)


CASES: Sequence[Case] = (
    _refused("OUT_OF_ORDER_SEQUENCE_NUMBER"),
    _refused("DUPLICATE_SEQUENCE_NUMBER"),
    _refused("UNKNOWN_PRODUCER_ID"),
    _refused("INVALID_PRODUCER_EPOCH"),
    _refused("INVALID_RECORD"),
    _refused("MESSAGE_TOO_LARGE"),
    _refused("NOT_ENOUGH_REPLICAS"),
    _refused("NOT_LEADER_OR_FOLLOWER"),
    Case("lost-response", "REQUEST_TIMED_OUT", {"Produce": ["ok", *["lose"] * 50]}),
    _in_transaction("out-of-order", "Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    _in_transaction("old-epoch", "Produce", "INVALID_PRODUCER_EPOCH"),
    _in_transaction("abortable", "Produce", "TRANSACTION_ABORTABLE"),
    _in_transaction("mapping", "AddPartitionsToTxn", "INVALID_PRODUCER_ID_MAPPING"),
    _in_transaction("state", "EndTxn", "INVALID_TXN_STATE"),
    _in_transaction("fenced", "EndTxn", "PRODUCER_FENCED"),
    _in_transaction("init", "InitProducerId", "PRODUCER_FENCED"),
)


class Answers(Script):
    """Answers one client by a case."""

    def __init__(self, case: Case) -> None:
        super().__init__(Scenario(case.name, [], hold=()))
        self._by_api = defaultdict(deque, {api: deque(map(Reply.of, given)) for api, given in case.replies.items()})

    def _reply(self, request: Request, reply: Reply) -> None:
        waiting = self._by_api[request.api]
        super()._reply(request, waiting.popleft() if waiting else reply)
