"""What the traits of batches that were sent again under a new epoch share."""

from kaudit.bugs.bug import Case, Trait, logged
from kaudit.model.application_logs import LogEventKind


def _another_leader(case: Case) -> bool:
    before, after = case.number("copied", "last_leader_epoch"), case.number("again", "first_leader_epoch")
    return before is not None and after is not None and 0 <= before < after


SENT_AGAIN = Trait(
    "the end of the producer's old epoch stands again at the beginning of its new one",
    lambda case: case.finding.code == "KA704",
)
SAME_TIMES = Trait("with the same timestamps", lambda case: case.value("same_timestamps") is True)
ANOTHER_LEADER = Trait("the leader had changed in between", _another_leader, optional=True)
RAISED = logged(
    "the client's log has it raise its epoch or start its sequences again",
    LogEventKind.EPOCH_BUMPED,
    LogEventKind.SEQUENCE_RESET,
)
