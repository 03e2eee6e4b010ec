"""A client of one partition: each call is one attempt, and what a broker answers to it in brief."""

from kaudit.broker.attempts import StartBroker
from kaudit.broker.broker import Broker
from kaudit.broker.releases.request_versions import versions_in
from tests.attempts import attempt_of


def negotiated(broker, op, fields):
    """The fields of a request with a version that the broker answers."""
    if "api_version" not in fields:
        return fields
    first, last = versions_in(broker.profile.version)[op]
    return {**fields, "api_version": min(max(fields["api_version"], first), last)}


class PartitionClient:
    """Asks a broker of `version` about topic t; `at` is the broker's clock (ms), a millisecond more each attempt."""

    def __init__(self, version, config=None, topic_config=None, at=1_700_000_000_000):
        self.broker = Broker()
        self.at = at
        self.index = 0
        self.broker.answer(StartBroker(index=0, broker_version=version, config=config or {}))
        if topic_config:
            self.ask("topic", config=topic_config)

    def ask(self, op, **fields):
        """The fields of the answer to one attempt; a version that the release does not answer is negotiated."""
        self.index += 1
        self.at += 1
        attempt = {"index": self.index, "op": op, "topic": "t", "partition": 0, "at": self.at}
        return self.broker.answer(attempt_of(attempt | negotiated(self.broker, op, fields))).fields

    def produce(self, sequence, epoch=0, count=1, pid=900001, **fields):
        """The offset a batch was appended at, (offset,) of a duplicate, an error's code, or what else happened."""
        described = {} if "records_hex" in fields or "batches" in fields else {
            "producer_id": pid, "producer_epoch": epoch, "base_sequence": sequence, "record_count": count,
            "timestamp": self.at,
        }  # fmt: skip
        answer = self.ask("produce", **(described | {"api_version": 7} | fields))
        match answer["outcome"]:
            case "appended":
                return answer["base_offset"]
            case "duplicate":
                return (answer["base_offset"],)
            case "rejected":
                return answer["error_code"]
        return answer["outcome"]

    def code(self, op, **fields):
        """The error's code of any other request, 0 for none."""
        return self.ask(op, **fields)["error_code"]

    def mark(self, epoch, pid=900001, commit=True, coordinator_epoch=0, **fields):
        """WriteTxnMarkers: the error's code."""
        return self.code(
            "write_marker", producer_id=pid, producer_epoch=epoch, commit=commit, coordinator_epoch=coordinator_epoch,
            api_version=0, **fields,
        )  # fmt: skip

    def wait(self, milliseconds):
        """Let time pass."""
        self.at += milliseconds

    def restart(self, clean=True, **fields):
        """Stop the broker and start it again."""
        return self.ask("restart", clean=clean, **fields)

    def kill(self, **fields):
        """The same with kill -9."""
        return self.restart(clean=False, **fields)

    def describe(self):
        """What the partition's leader knows."""
        return self.ask("describe")
