"""The progress of a scan, as engines report it."""

from typing import Protocol


class Progress(Protocol):
    """Receives the progress of a scan; the library itself never prints."""

    def start(self, total_bytes: int) -> None:
        """Take the number of bytes that will be read."""

    def advance(self, read_bytes: int) -> None:
        """Take the number of bytes read since the last call."""


class SilentProgress:
    """Reports nothing."""

    def start(self, total_bytes: int) -> None:
        """Ignore the total."""

    def advance(self, read_bytes: int) -> None:
        """Ignore the step."""
