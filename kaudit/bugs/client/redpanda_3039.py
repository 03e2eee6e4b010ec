"""Redpanda calls retries out of order, and clients send them under a new epoch."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes
from kaudit.bugs.client.rewritten_epochs import ANOTHER_LEADER, SAME_TIMES, SENT_AGAIN
from kaudit.model.finding import Confidence


def _fetched(case: Case) -> bool:
    return case.finding.file is None


BUG = Bug(
    id="Redpanda-3039",
    title="Idempotency violation with modern kafka clients",
    summary="Redpanda answers a retry of a written batch with an error after which clients raise their epoch and send it again",
    program=Program.REDPANDA,
    affected=(Affected("21.4.1", "21.10.2"),),
    fixed_in=("21.10.3",),
    codes=codes("KA704"),
    traits=(
        SENT_AGAIN,
        SAME_TIMES,
        Trait("the batches were fetched from brokers, not read from Kafka's files", _fetched),
        ANOTHER_LEADER,
    ),
    confidence=Confidence.POSSIBLE,
    sources=(
        "https://github.com/redpanda-data/redpanda/issues/3039",
        "https://github.com/redpanda-data/redpanda/pull/3040",
    ),
    alike=("KAFKA-14034", "KAFKA-14397", "librdkafka-4953"),
    module=__name__,
)
