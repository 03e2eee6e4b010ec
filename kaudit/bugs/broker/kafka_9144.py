"""A leader that forgot a producer takes the marker of a coordinator that was replaced."""

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira, logged
from kaudit.model.application_logs import LogEventKind
from kaudit.model.finding import Confidence

_EXPIRATION_MS = 7 * 86_400_000
"""transactional.id.expiration.ms: how long these releases remember a producer after its last data."""


def _older_coordinator(case: Case) -> bool:
    return case.finding.code == "KA205" or case.value("class") == "KA205"


def _was_forgotten(case: Case) -> bool:
    data, marker = case.number("previous", "timestamp"), case.number("offending", "timestamp")
    return data is not None and marker is not None and marker - data >= _EXPIRATION_MS


BUG = Bug(
    id="KAFKA-9144",
    title="Early expiration of producer state can cause coordinator epoch to regress",
    summary="end markers do not keep a producer's state from expiring, and without the state an old coordinator is not fenced",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.4.0"),),
    fixed_in=("2.4.1", "2.5.0"),
    codes=codes("KA205", "KA803"),
    traits=(
        Trait("a marker has a lower coordinator epoch than one before it", _older_coordinator),
        Trait("the producer's data was older than producer states get (7 days)", _was_forgotten, optional=True),
        logged(
            "the broker's log has it forget the producer, or refuse a marker",
            LogEventKind.PRODUCER_EXPIRED,
            LogEventKind.TRANSACTION_COORDINATOR_FENCED,
        ),
    ),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-9144"), "https://github.com/apache/kafka/pull/7687"),
    module=__name__,
)
