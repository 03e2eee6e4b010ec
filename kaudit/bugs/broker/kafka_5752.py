"""Deleting a topic removes the time index of its successor."""

from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence


def _missing(case: Case) -> bool:
    return case.value("class") == "missing"


def _offset_index_is_there(case: Case) -> bool:
    return not any(other.evidence.get("class") == "missing" for other in case.others("KA503", "replica"))


BUG = Bug(
    id="KAFKA-5752",
    title="Delete topic and re-create topic immediate will delete the new topic's timeindex",
    summary="the delayed deletion of a topic removes time and transaction indexes by their old names, which a new topic may have",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "0.11.0.0"),),
    fixed_in=("0.11.0.1", "1.0.0"),
    codes=codes("KA504"),
    traits=(
        VERSION_KNOWN,
        Trait("the time index is missing", _missing),
        Trait("the offset index is there", _offset_index_is_there),
    ),
    confidence=Confidence.POSSIBLE,
    sources=(*jira("KAFKA-5752"), "https://github.com/apache/kafka/pull/3700"),
    module=__name__,
)
