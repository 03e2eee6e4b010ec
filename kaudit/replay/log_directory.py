"""Reading a partition's log from a log directory, for a broker to begin with."""

from pathlib import Path

from kaudit.broker.recorded_log import RecordedLog
from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.checkpoints import parse_offset_checkpoint
from kaudit.source.file_kinds import segment_base_offset


class NoSegmentsError(ValueError):
    """A directory that should be a partition's has no segments."""


def read_recorded_log(directory: Path, topic: str, partition: int, *, restarts: bool) -> RecordedLog:
    """Return what a partition's log holds; `directory` is the log directory or the partition's own.

    `restarts`: the broker has just been restarted. Raises OSError, and NoSegmentsError where there is no log.
    """
    name = f"{topic}-{partition}"
    home = directory if directory.name == name else directory / name
    segments = sorted(path for path in home.iterdir() if segment_base_offset(path.name) is not None)
    if not segments:
        raise NoSegmentsError(f"{home}: no segments")
    first = segment_base_offset(segments[0].name)
    log_start = max(first or 0, _checkpointed_log_start(home.parent, topic, partition))
    buffers = (memoryview(path.read_bytes()) for path in segments)
    return RecordedLog.of_segments((topic, partition), buffers, log_start, restarts=restarts)


def _checkpointed_log_start(directory: Path, topic: str, partition: int) -> int:
    """Return the log start in the broker's checkpoint, 0 when it is not there: then the first segment begins the log."""
    try:
        checkpoint = parse_offset_checkpoint((directory / "log-start-offset-checkpoint").read_bytes())
    except (FileNotFoundError, WireError):
        return 0
    offsets = [entry.offset for entry in checkpoint.rows if (entry.topic, entry.partition) == (topic, partition)]
    return max(offsets, default=0)
