"""What a broker does when it loads a log with this damage, in the words of what real ones did (LogSegment.recover).

A broker reads segments when it was not stopped cleanly, from the recovery point on; after a clean stop it reads none, and
damage shows when somebody fetches it.
"""

from kaudit.model.damage import DamageKind, LogDamage

_UNNOTICED = "does not notice when it loads the log, and serves it as it is"
_CLEAN = "after a clean stop it does not look, and fetches fail here"


def loading_verdict(damage: LogDamage, later_segments: int, *, was_batch: bool) -> str:
    """Say what happens to this log; `later_segments` follow the damaged one.

    `was_batch`: offsets are missing exactly here, so a batch was there.
    """
    if damage.kind is DamageKind.OUT_OF_ORDER:
        return _UNNOTICED
    magic_alone = was_batch and damage.resynchronised and damage.detail.startswith("unknown magic")
    if damage.kind is DamageKind.UNPARSABLE and magic_alone:
        return "up to 2.8 does not notice when it loads the log (any magic above 2 is read as 2); consumers fail here"
    if damage.kind is DamageKind.ZEROS and not damage.resynchronised and not later_segments:
        return "cuts the zeros off when it was not stopped cleanly; with a clean-shutdown marker it may fail to start (2.8)"
    deleted = ""
    if later_segments:
        deleted = f" and deletes {later_segments} later segment{'s' if later_segments > 1 else ''}"
    return f"after an unclean stop, from the recovery point on, truncates the log at byte {damage.position}{deleted}; {_CLEAN}"


def gap_verdict() -> str:
    """What happens to a log whose offsets or leader epochs have a break."""
    return _UNNOTICED
