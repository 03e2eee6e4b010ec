"""Followers keep records that their new leader does not have."""

from kaudit.bugs.broker.divergence import GOES_ON, NOT_CUT
from kaudit.bugs.bug import Affected, Bug, Program, codes, jira
from kaudit.model.finding import Confidence

BUG = Bug(
    id="KAFKA-6361",
    title="Fast leader fail over can lead to log divergence between leader and follower",
    summary="a leader that does not know the follower's last leader epoch answers with its own end, and the follower cuts too little",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "1.1.1"),),
    fixed_in=("2.0.0",),
    fix="KIP-279",
    codes=codes("KA009", "KA601"),
    traits=(GOES_ON, NOT_CUT),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-6361"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-279"),
    alike=("KAFKA-7415",),
    module=__name__,
)
