"""What was read of a log, whatever it said."""

from msgspec import Struct


class LogCounts(Struct):
    """Counts of one or several log files; the reader adds to them while it reads.

    `entries` are the lines that begin an entry of a layout that is known. `unknown_lines` are neither such a beginning, nor a
    continuation (indented, or of a stack trace), nor a message that is known. `other_entries` are those entries in
    which no class or program of Kafka's is named: another program's, or all where the layout leaves loggers out. `long_lines` were cut at MAX_LINE_BYTES. `damaged` says that a compressed
    file did not decompress to its end. `first_ms` and `last_ms` are the least and the greatest time of the entries
    that were looked at (the first and the last of each MiB and all events), as LogEvent has them.
    """

    lines: int = 0
    entries: int = 0
    events: int = 0
    unknown_lines: int = 0
    other_entries: int = 0
    long_lines: int = 0
    damaged: bool = False
    first_ms: int | None = None
    last_ms: int | None = None

    def saw(self, timestamp_ms: int | None) -> None:
        """Extend the time that the log covers."""
        if timestamp_ms is not None:
            self.first_ms = timestamp_ms if self.first_ms is None else min(self.first_ms, timestamp_ms)
            self.last_ms = timestamp_ms if self.last_ms is None else max(self.last_ms, timestamp_ms)
