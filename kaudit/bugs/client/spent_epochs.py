"""What the traits of clients that use up their epochs share."""

from kaudit.bugs.bug import Case, Trait

_AGAIN_AND_AGAIN = 5


def _raised_often(case: Case) -> bool:
    """Whether the log itself shows the producer raise its epoch several times."""
    raised = (other.evidence.get("count", 1) for other in case.others("KA203", "producer_id"))
    return sum(count for count in raised if isinstance(count, int)) >= _AGAIN_AND_AGAIN


NEARLY_SPENT = Trait(
    "an idempotent producer without transactions is near the last epoch",
    lambda case: case.value("offending", "is_transactional") is False,
)
RAISED_OFTEN = Trait("the log shows it raise its epoch again and again", _raised_often)
