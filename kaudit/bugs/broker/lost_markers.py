"""What the traits of end markers that the log cleaner removed too early share."""

from kaudit.bugs.bug import Case, Trait


def ended_with(state: str) -> Trait:
    """Return the trait of a transaction that its coordinator ended with this state."""
    return Trait(
        f"its coordinator ended the transaction ({state})", lambda case: case.value("coordinator_state") == state
    )


def _no_marker(case: Case) -> bool:
    return case.number("previous_marker_offset") is None


COMPACTED = Trait("the partition is compacted", lambda case: case.compacted)
NO_MARKER = Trait("the records are there and no marker of the producer is", _no_marker)
