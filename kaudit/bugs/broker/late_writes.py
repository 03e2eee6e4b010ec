"""What the traits of late transactional writes share."""

from kaudit.bugs.bug import Case, Trait


def came_late(case: Case) -> bool:
    """Whether the transaction began after the producer's transaction in the same epoch had ended (KA304)."""
    finding = case.finding
    return finding.code == "KA304" or any(
        other.offset == finding.offset for other in case.others("KA304", "producer_id")
    )


def was_made_later(case: Case) -> bool:
    """Whether the late batch was made after the marker was written: its producer knew nothing of the end."""
    first, marker = case.number("first_timestamp"), case.number("previous_marker_timestamp")
    return first is not None and marker is not None and 0 <= marker < first


def follows_commit(case: Case) -> bool:
    """Whether the coordinator's last decision about this epoch was to commit."""
    return case.value("coordinator_state") == "CompleteCommit"


def follows_abort(case: Case) -> bool:
    """Whether the coordinator's last decision about this epoch was to abort."""
    return case.value("coordinator_state") == "CompleteAbort"


CAME_LATE = Trait("the batch came after its transaction had ended, in the same epoch", came_late)
NO_END = Trait(
    "no coordinator will end the transaction it began",
    lambda case: case.value("coordinator") == "not-ongoing",
    optional=True,
)
