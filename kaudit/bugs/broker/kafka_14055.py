"""A record with the key of a marker makes the cleaner remove markers."""

from kaudit.bugs.broker.lost_markers import COMPACTED, NO_MARKER
from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence


def _ended(case: Case) -> bool:
    return case.value("coordinator_state") in ("CompleteCommit", "CompleteAbort")


BUG = Bug(
    id="KAFKA-14055",
    title="Transaction markers may be lost during cleaning if data keys conflict with marker keys",
    summary="the cleaner takes an end marker for an older record of the same key when data has keys of the markers' four bytes",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "3.0.1"), Affected("3.1.0", "3.1.1"), Affected("3.2.0", "3.2.0")),
    fixed_in=("3.0.2", "3.1.2", "3.2.1", "3.3.0"),
    codes=codes("KA301"),
    traits=(VERSION_KNOWN, COMPACTED, NO_MARKER, Trait("its coordinator ended the transaction", _ended)),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-14055"), "https://github.com/apache/kafka/pull/12390"),
    module=__name__,
)
