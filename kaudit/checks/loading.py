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


_UNPARSABLE_FILES = {
    ".index": "rebuilds it from the segment when it loads the log",
    ".timeindex": "rebuilds it from the segment when it loads the log",
    ".txnindex": "rebuilds it when it recovers the segment: after an unclean stop, from the recovery point on",
    ".snapshot": "drops it, and builds the producers' state from an older one and the log behind that",
    "leader-epoch-checkpoint": "fails the whole log directory at start; with no other directory it stops",
    "recovery-point-offset-checkpoint": "warns and recovers every segment of the directory from its first offset",
    "replication-offset-checkpoint": "takes the log directory offline",
    "log-start-offset-checkpoint": "warns and takes each log's first segment as its start: deleted records come back",
    "cleaner-offset-checkpoint": "stops cleaning the directory's logs",
}


def file_verdict(name: str) -> str | None:
    """What happens to a log beside which a file of this name cannot be read; None where nobody has seen it."""
    return next((verdict for ending, verdict in _UNPARSABLE_FILES.items() if name.endswith(ending)), None)


def unparsable_checkpoint_verdict(name: str) -> str:
    """What happens to a log directory whose offset checkpoint of this name cannot be read."""
    return _UNPARSABLE_FILES[name]
