"""The processes of the brokers: which run, what their clocks and disks do, and which of them reach one another."""

from collections.abc import Mapping
from enum import Enum

from kaudit.simulate.clock import Clock


class ProcessState(Enum):
    """What a broker's process does."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    KILLED = "killed"


class BrokerProcess:
    """One broker's process. `number` is its node id, from 1."""

    def __init__(self, number: int, clock: Clock) -> None:
        self.number = number
        self.name = f"broker {number}"
        self.process = ProcessState.RUNNING
        self.incarnation = 0
        """Counts the ends of its process: work that one process began does not continue in the next."""
        self.started_at = 0
        """When its process was started, in ms since the run began."""
        self.disk_delay_ms = 0
        """How much longer than usual a write takes."""
        self.clock_offset_ms = 0
        """How far its wall clock is ahead."""
        self._clock = clock

    @property
    def is_up(self) -> bool:
        """Whether it accepts connections: a paused process does."""
        return self.process in (ProcessState.RUNNING, ProcessState.PAUSED)

    @property
    def is_running(self) -> bool:
        """Whether it handles requests."""
        return self.process is ProcessState.RUNNING

    @property
    def timestamp(self) -> int:
        """Its wall clock, ms since 1970."""
        return self._clock.timestamp + self.clock_offset_ms


class Brokers:
    """The state of every broker by node id, and the cuts between them."""

    def __init__(self, processes: Mapping[int, BrokerProcess]) -> None:
        self._processes = processes
        self.cuts: list[frozenset[int]] = []
        """Brokers that cannot reach the others, once for each such fault."""

    def is_up(self, broker: int) -> bool:
        """Return whether a broker's process exists, paused or not."""
        return self._processes[broker].is_up

    def is_running(self, broker: int) -> bool:
        """Return whether a broker handles requests."""
        return self._processes[broker].is_running

    def reaches(self, broker: int, other: int) -> bool:
        """Return whether two brokers can reach one another."""
        return not any((broker in cut) != (other in cut) for cut in self.cuts)

    def disk_delay_ms(self, broker: int) -> int:
        """Return how much longer than usual a broker takes to write."""
        return self._processes[broker].disk_delay_ms

    def timestamp(self, broker: int) -> int:
        """Return a broker's wall clock, ms since 1970."""
        return self._processes[broker].timestamp

    def started_at(self, broker: int) -> int:
        """Return when a broker's process was started, in ms since the run began."""
        return self._processes[broker].started_at
