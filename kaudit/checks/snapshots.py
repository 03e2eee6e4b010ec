"""KA501: producer snapshots a broker cannot read."""

from kaudit.checks.sidefiles import SideFileFact
from kaudit.formats.errors import WireError
from kaudit.model.finding import Explanation

_RULE = "a snapshot has version 1, a CRC-32C over count and entries, and 46 bytes an entry (ProducerStateManager.readSnapshot)"


def corrupt_snapshot(file: str, segment: int | None, size: int, error: WireError, older: str | None) -> SideFileFact:
    """Return the fact of a snapshot that does not decode; `older` is the sound one before it, if any."""
    then = f"and starts from {older}, reading the log from there on" if older else "and reads the log from its start"
    return SideFileFact(
        "KA501",
        file,
        f"the producer snapshot is corrupt: {error.detail}",
        _RULE,
        f"warns, deletes the file {then}: more of the past is remembered than without damage, nothing is lost",
        segment=segment,
        position=min(error.position, max(size - 1, 0)),
        evidence={"reason": error.reason.value, "detail": error.detail, "size": size, "older_snapshot": older},
        explanations=(
            Explanation(
                "the broker or its host stopped before the file reached the disk (before 2.8 it was never synced; from 3.7 on "
                "only above the recovery point)",
                speaks_for=("the file is empty",) if size == 0 else (),
            ),
            Explanation("bits flipped on disk, or the file was cut by a copy"),
        ),
    )
