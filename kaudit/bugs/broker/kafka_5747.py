"""A producer snapshot that was cut keeps the broker from starting."""

from kaudit.bugs.bug import VERSION_KNOWN, Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.finding import Confidence

_SHORTEST = 10
"""Bytes of a snapshot without entries: version, CRC, count."""


def _breaks_off(case: Case) -> bool:
    size = case.number("size")
    return size is not None and (size < _SHORTEST or (size - _SHORTEST) % 46 != 0)


BUG = Bug(
    id="KAFKA-5747",
    title="Broker crashes on startup when trying to parse empty snapshot files",
    summary="a producer snapshot that is empty or cut throws an error that the broker does not expect when it loads the log",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "0.11.0.0"),),
    fixed_in=("0.11.0.1", "1.0.0"),
    codes=codes("KA501"),
    traits=(VERSION_KNOWN, Trait("a producer snapshot is empty or breaks off", _breaks_off)),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-5747"), "https://github.com/apache/kafka/pull/3688"),
    module=__name__,
)
