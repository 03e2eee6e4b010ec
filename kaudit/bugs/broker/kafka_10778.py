"""Appends go on after one that was written in part."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira, logged
from kaudit.model.application_logs import LogEventKind
from kaudit.model.finding import Confidence


def _no_offset_missing(case: Case) -> bool:
    return case.number("first_missing_offset") is None and case.number("expected_offset") is not None


def _goes_on(case: Case) -> bool:
    return case.number("resynchronised_at") is not None


BUG = Bug(
    id="KAFKA-10778",
    title="Stronger log fencing after write failure",
    summary="after an append that failed with an I/O error the broker goes on appending behind the part that was written",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.7.2"),),
    fixed_in=("2.8.0",),
    codes=codes("KA003", "KA005", "KA001"),
    traits=(
        Trait("valid batches follow bytes that are not a whole batch", _goes_on),
        Trait("the next batch has the offset that the broken one was to get", _no_offset_missing),
        logged("the broker's log has the error", LogEventKind.LOG_DIR_FAILED, LogEventKind.CORRUPTION),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-10778"), "https://github.com/apache/kafka/pull/9676"),
    module=__name__,
)
