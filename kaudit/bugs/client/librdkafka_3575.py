"""librdkafka raises its epoch within a transaction, and commits the rest as if it were all."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, logged
from kaudit.model.application_logs import LogEventKind
from kaudit.model.finding import Confidence


def _aborted(case: Case) -> bool:
    return case.value("class") in ("timeout-abort", "restart")


BUG = Bug(
    id="librdkafka-3575",
    title="Transactional producer inadvertently creates new transaction on OUT_OF_ORDER_SEQUENCE error",
    summary="after an out of order answer the producer raises its epoch in the middle of a transaction, which aborts its first part",
    program=Program.LIBRDKAFKA,
    affected=(Affected("1.6.0", "1.8.0"),),
    fixed_in=("1.8.2",),
    codes=codes("KA203"),
    traits=(
        Trait("the coordinator aborted a transaction and raised its producer's epoch", _aborted),
        logged(
            "the producer had been answered OUT_OF_ORDER_SEQUENCE_NUMBER", LogEventKind.OUT_OF_ORDER_SEQUENCE, must=True
        ),
        logged("the client raised its epoch itself", LogEventKind.EPOCH_BUMPED),
    ),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/confluentinc/librdkafka/issues/3575",),
    module=__name__,
)
