"""Whether processes pay, as the first range of a log tells: what is read side by side must still be taken by one."""

import os

from msgspec import Struct

START_SECONDS = {"fork": 0.15, "spawn": 0.7}
"""What processes cost before they gain anything: starting, their first memory, an end they do not reach together."""
_PASSING_SECONDS = 2.5e-9
"""For each byte of rows that comes from another process (measured: copied twice, into fresh memory)."""


class Trial(Struct, frozen=True):
    """What the first range of a log cost in this process, seconds, and how many bytes of rows came of how many."""

    bytes: int
    row_bytes: int
    read_seconds: float
    take_seconds: float

    def processes_pay(self, left: int, processes: int, start_method: str) -> bool:
        """Tell whether the `left` bytes are sooner done by so many processes, if they are like those of the range.

        The rows of all of them are taken by one process: where that is as much work as reading, nothing is gained.
        """
        processes = min(processes, os.cpu_count() or 1)
        taken = self.take_seconds + self.row_bytes * _PASSING_SECONDS
        beside = max((self.read_seconds + taken) / processes, taken)
        gained = self.read_seconds + self.take_seconds - beside
        return gained * left > START_SECONDS[start_method] * self.bytes
