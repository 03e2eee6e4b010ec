"""Why a coordinator answers as it does, for people: what it remembers and what came, each with its numbers."""

import pytest

from kaudit.broker.attempts import StartBroker
from kaudit.broker.broker import Broker
from tests.attempts import attempt_of
from tests.broker.client import negotiated


class Asked:
    """Requests of one client on t-0, a millisecond apart: the last answer's reason, and its error."""

    def __init__(self, version: str, **config: str) -> None:
        self.broker = Broker()
        self.at = 0
        self.broker.answer(StartBroker(index=0, broker_version=version, config=config))

    def ask(self, op: str, **fields: object) -> "Asked":
        self.at += 1
        attempt = {"index": self.at, "op": op, "topic": "t", "partition": 0, "at": self.at, "transactional_id": "tx"}
        self.answer = self.broker.answer(attempt_of(attempt | negotiated(self.broker, op, fields)))
        return self

    def init(self, held: tuple[int, int] = (-1, -1), **fields: object) -> "Asked":
        own = {"producer_id": held[0], "producer_epoch": held[1], "timeout_ms": 60_000, "api_version": 3}
        return self.ask("init_producer_id", **(own | fields))

    def add(self, producer_id: int = 0, epoch: int = 0, **fields: object) -> "Asked":
        return self.ask(
            "add_partitions", producer_id=producer_id, producer_epoch=epoch, **({"api_version": 0} | fields)
        )

    def end(self, producer_id: int = 0, epoch: int = 0, *, commit: bool = True, **fields: object) -> "Asked":
        own = {"producer_id": producer_id, "producer_epoch": epoch, "commit": commit, "api_version": 0}
        return self.ask("end_txn", **(own | fields))


def broker(version: str = "3.9.1", **config: str) -> Asked:
    return Asked(version, **config)


CASES = {
    "init": (lambda: broker().init(transactional_id=None), "NONE", "a new producer id, epoch 0"),
    "next epoch": (lambda: broker().init().init(), "NONE", "the next epoch"),
    "retry": (
        lambda: broker("2.8.2").init().init((0, 0)).init((0, 0)),
        "NONE",
        "a retry with the previous epoch gets the current one",
    ),
    "older": (
        lambda: broker("2.8.2").init().init((0, 0)).init((0, 1)).init((0, 0)),
        "INVALID_PRODUCER_EPOCH",
        "producer 0 comes with epoch 0, the coordinator remembers producer 0 with epoch 2",
    ),
    "half an identity": (
        lambda: broker().init((5, -1)),
        "INVALID_REQUEST",
        "a producer id without an epoch, or an epoch without an id",
    ),
    "no id": (lambda: broker().init(transactional_id=""), "INVALID_REQUEST", "an empty transactional id"),
    "timeout": (
        lambda: broker().init(timeout_ms=900_001),
        "INVALID_TRANSACTION_TIMEOUT",
        "a timeout of 900001 ms, the broker allows 1 to 900000",
    ),
    "timeout configured": (
        lambda: broker(**{"transaction.max.timeout.ms": "7"}).init(timeout_ms=0),
        "INVALID_TRANSACTION_TIMEOUT",
        "a timeout of 0 ms, the broker allows 1 to 7",
    ),
    "added": (lambda: broker().init().add(), "NONE", "the partition is part of the transaction"),
    "add of nobody": (
        lambda: broker().add(),
        "INVALID_PRODUCER_ID_MAPPING",
        "transactional id 'tx' belongs to nobody, not to producer id 0",
    ),
    "add of another": (
        lambda: broker().init().add(9),
        "INVALID_PRODUCER_ID_MAPPING",
        "transactional id 'tx' belongs to producer id 0, not to producer id 9",
    ),
    "add of an older epoch": (
        lambda: broker().init().init().add(),
        "INVALID_PRODUCER_EPOCH",
        "producer 0 comes with epoch 0, the coordinator remembers producer 0 with epoch 1",
    ),
    "add without an id": (
        lambda: broker().init().add(transactional_id=""),
        "INVALID_REQUEST",
        "an empty transactional id",
    ),
    "ended": (lambda: broker().init().add().end(), "NONE", "the transaction ended"),
    "ended before": (lambda: broker().init().add().end().end(), "NONE", "it had ended that way already"),
    "ended otherwise": (
        lambda: broker().init().add().end().end(commit=False),
        "INVALID_TXN_STATE",
        "the transaction is CompleteCommit",
    ),
    "aborted before": (
        lambda: broker().init().add().end(commit=False).end(),
        "INVALID_TXN_STATE",
        "the transaction is CompleteAbort",
    ),
    "nothing to end": (lambda: broker().init().end(), "INVALID_TXN_STATE", "the transaction is Empty"),
    "end of nobody": (
        lambda: broker().end(),
        "INVALID_PRODUCER_ID_MAPPING",
        "an unknown transactional id",
    ),
    "end of another": (
        lambda: broker().init().add().end(9),
        "INVALID_PRODUCER_ID_MAPPING",
        "transactional id 'tx' belongs to producer id 0, not to producer id 9",
    ),
    "end without an id": (
        lambda: broker().init().end(transactional_id=""),
        "INVALID_REQUEST",
        "an empty transactional id",
    ),
    "version 2": (
        lambda: broker("4.0.0").init().add(api_version=4).end(api_version=5),
        "NONE",
        "the transaction ended, the next one has the next epoch",
    ),
    "version 2 once more": (
        lambda: broker("4.0.0").init().add(api_version=4).end(api_version=5).end(api_version=5),
        "NONE",
        "a retry: it had ended that way already",
    ),
    "version 2 otherwise": (
        lambda: broker("4.0.0").init().add(api_version=4).end(api_version=5).end(commit=False, api_version=5),
        "INVALID_TXN_STATE",
        "the transaction is CompleteCommit",
    ),
    "version 2 of another": (
        lambda: broker("4.0.0").init().add(api_version=4).end(9, api_version=5),
        "INVALID_PRODUCER_ID_MAPPING",
        "the transactional id belongs to producer id 0, not to 9",
    ),
    "version 2 with nothing to commit": (
        lambda: broker("4.0.0").init().end(api_version=5),
        "INVALID_TXN_STATE",
        "the transaction is Empty",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_reason_of_an_answer(case):
    asked, error, why = CASES[case]
    answer = asked().answer
    assert (answer.fields["error"], answer.why) == (error, why)
