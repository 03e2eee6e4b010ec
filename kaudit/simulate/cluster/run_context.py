"""What the parts of a cluster share in one run: its clock, its network, and where it is recorded."""

from msgspec import Struct

from kaudit.simulate.clock import Clock
from kaudit.simulate.cluster.attempt_recorder import AttemptRecorder
from kaudit.simulate.network import Network
from kaudit.simulate.trace import Trace


class RunContext(Struct, frozen=True):
    """Simulated time, connections, the attempts recorded so far, and the events of the sequence diagram."""

    clock: Clock
    network: Network
    recorder: AttemptRecorder
    trace: Trace
