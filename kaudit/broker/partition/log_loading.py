"""What a broker does when it loads a log with this damage, in the words of what real ones did (LogSegment.recover).

A broker reads segments when it was not stopped cleanly, from the recovery point on; after a clean stop it reads none, and
damage shows when somebody fetches it. That is the same from 0.11 to 4.3; what differs is said for the version asked about,
or for all where none is (Log.loadSegmentFiles, LogSegment.sanityCheck, LogDirFailureChannel of the releases).
"""

from collections.abc import Callable, Mapping

from kaudit.broker.releases.version import Version
from kaudit.model.damage import DamageKind, LogDamage

_UNNOTICED = "does not notice when it loads the log, and serves it as it is"
_CLEAN = "after a clean stop it does not look, and fetches fail here"


def truncates(damage: LogDamage, *, was_batch: bool) -> bool:
    """Return whether a broker that recovers a segment with this damage truncates the log there, later segments included.

    `was_batch`: offsets are missing exactly here, so a batch was there. Brokers that take any magic above 2 for 2 do not
    notice such a one; newer ones do.
    """
    return damage.kind is not DamageKind.OUT_OF_ORDER and not _is_unknown_magic(damage, was_batch=was_batch)


def _is_unknown_magic(damage: LogDamage, *, was_batch: bool) -> bool:
    named = was_batch and damage.resynchronised and damage.detail.startswith("unknown magic")
    return damage.kind is DamageKind.UNPARSABLE and named


def loading_effect(damage: LogDamage, later_segments: int, *, was_batch: bool, version: Version | None = None) -> str:
    """Say what happens to this log in a broker of `version`, any if None; `later_segments` follow the damaged one.

    `was_batch`: as in `truncates`.
    """
    if _is_unknown_magic(damage, was_batch=was_batch):
        known = version is not None and version < _MAGIC_UNKNOWN_FROM
        until = "" if known else "up to 2.8 " if version is None else "up to 3.9 "
        return f"{until}does not notice when it loads the log (any magic above 2 is read as 2); consumers fail here"
    if not truncates(damage, was_batch=was_batch):
        return _disorder_effect(version)
    if damage.kind is DamageKind.ZEROS and not damage.resynchronised and not later_segments:
        return "cuts the zeros off when it was not stopped cleanly; with a clean-shutdown marker it may fail to start (2.8)"
    deleted = ""
    if later_segments:
        deleted = f" and deletes {later_segments} later segment{'s' if later_segments > 1 else ''}"
    return f"after an unclean stop, from the recovery point on, truncates the log at byte {damage.position}{deleted}; {_CLEAN}"


def _disorder_effect(version: Version | None) -> str:
    """Say what happens to offsets that go back: recovery rebuilds the offset index, which refuses them.

    Recorded on 2.0.1, 2.5.1, 2.8.2 and 4.4.0; OffsetIndex.append, Log.recoverLog, LogLoader.recoverLog (KAFKA-3919).
    """
    empties, stops = "empties the segment and deletes later ones", "does not start"
    effect = f"{empties} (up to 2.2 {stops})" if version is None else stops if version < _LAZY_INDEXES else empties
    return (
        "does not notice when it loads the log, and goes on from the last batch's offset; "
        f"where an index row falls due at an offset below the row before, recovery after an unclean stop {effect}"
    )


def gap_effect() -> str:
    """Return what a broker does with a log whose offsets or leader epochs have a break."""
    return _UNNOTICED


_MAGIC_UNKNOWN_FROM = Version((4, 0, 0))
"""Nobody has looked at what newer ones do with a magic above 2."""
_LAZY_INDEXES = Version((2, 3, 0))
"""From here on indexes are mapped when they are used, and not checked at start (KAFKA-7283)."""
_DIRECTORIES_FAIL_ALONE = Version((1, 0, 0))
"""From here on a broker goes on without a log directory that fails (KIP-112)."""

_UNPARSABLE_FILES = {
    ".txnindex": "rebuilds it when it recovers the segment: after an unclean stop, from the recovery point on",
    ".snapshot": "drops it, and builds the producers' state from an older one and the log after that",
    "leader-epoch-checkpoint": "fails the whole log directory at start; with no other directory it stops",
    "recovery-point-offset-checkpoint": "warns and recovers every segment of the directory from its first offset",
    "replication-offset-checkpoint": "takes the log directory offline",
    "log-start-offset-checkpoint": "warns and takes each log's first segment as its start: deleted records come back",
    "cleaner-offset-checkpoint": "stops cleaning the directory's logs",
}


def _index_effect(version: Version | None) -> str:
    recovers = "after an unclean stop, from the recovery point on, rebuilds it from the segment"
    if version is None:
        return f"{recovers}; after a clean stop does so up to 2.2, and from 2.3 on reads it as it is"
    if version < _LAZY_INDEXES:
        return "checks it at every start, and rebuilds it from the segment"
    return f"{recovers}; after a clean stop reads it as it is"


def _directory_effect(name: str) -> Callable[[Version | None], str]:
    def effect(version: Version | None) -> str:
        return (
            "does not start" if version is not None and version < _DIRECTORIES_FAIL_ALONE else _UNPARSABLE_FILES[name]
        )

    return effect


_BY_VERSION: Mapping[str, Callable[[Version | None], str]] = {
    ".index": _index_effect,
    ".timeindex": _index_effect,
    "leader-epoch-checkpoint": _directory_effect("leader-epoch-checkpoint"),
    "replication-offset-checkpoint": _directory_effect("replication-offset-checkpoint"),
}


def file_effect(name: str, version: Version | None = None) -> str | None:
    """Return what a broker of `version`, any if None, does with a log whose file of this name cannot be read.

    None where nobody has seen it.
    """
    for ending, effect in _BY_VERSION.items():
        if name.endswith(ending):
            return effect(version)
    return next((effect for ending, effect in _UNPARSABLE_FILES.items() if name.endswith(ending)), None)


def unparsable_checkpoint_effect(name: str) -> str:
    """Return what a broker does with a log directory whose offset checkpoint of this name cannot be read."""
    return _UNPARSABLE_FILES[name]
