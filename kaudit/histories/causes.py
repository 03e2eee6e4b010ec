"""The causes in a history in words, and where an operator would see them: by the kind of a scenario's fault."""

from typing import NamedTuple


class Cause(NamedTuple):
    """A cause in words, and where its traces are."""

    happened: str
    look: str


CAUSES = {
    "lose-request": Cause(
        "a request of the producer was lost",
        "the application's log: a disconnect or request timeout at that time, then a retry",
    ),
    "lose-response": Cause(
        "a response to the producer was lost, and it sent again what had been written",
        "the application's log: a disconnect or request timeout at that time, then a retry",
    ),
    "kill-broker": Cause(
        "a broker's process ended at once",
        "server.log of that broker: log recovery at its next start; the controller's log: an election at that time",
    ),
    "stop-broker": Cause(
        "a broker was stopped, and leadership moved",
        "server.log of that broker: a controlled shutdown; the controller's log: an election at that time",
    ),
    "start-broker": Cause("a broker started", "server.log of that broker: its start"),
    "pause-broker": Cause(
        "a broker stood still for a while",
        "that broker's garbage collection log; the leaders' server.log: Shrinking ISR",
    ),
    "slow-disk": Cause(
        "a broker's disk was slow", "that broker's disk metrics; the leaders' server.log: Shrinking ISR"
    ),
    "disconnect-brokers": Cause(
        "brokers could not reach one another",
        "server.log: failed fetches, Shrinking ISR on the one side, and no restart on the other",
    ),
    "move-leader": Cause("leadership of a partition moved", "the controller's log: an election without a broker's end"),
    "lose-marker": Cause(
        "a transaction marker was lost on its way",
        "the coordinator's server.log: a marker that is sent again; __transaction_state: PrepareCommit or PrepareAbort",
    ),
    "kill-producer": Cause(
        "the application died, and another instance went on",
        "the application's log: its start; the deployment's history at that time",
    ),
    "pause-producer": Cause(
        "the application stood still for a while",
        "the application's garbage collection log, or a hole in its log at that time",
    ),
    "delete-records": Cause(
        "records were deleted up to an offset",
        "log-start-offset-checkpoint; server.log: Incremented log start offset",
    ),
    "error-response": Cause("a broker answered with an error", "the application's log names the error"),
}
"""By kind. Other kinds are named by their kind alone."""

WITHOUT_SNAPSHOTS = Cause(
    "its producer snapshots were gone when it started again, so it had forgotten the producer",
    "the broker's directory: .snapshot files younger than their segments; server.log: producer state rebuilt at that start",
)
UNCLEAN = Cause(
    "a replica that lacked records was elected leader",
    "the controller's log: an unclean election; kaudit diff with the old leader's copy, before it is truncated",
)
SLOW_TRANSACTION = Cause(
    "the transaction took longer than transaction.timeout.ms",
    "the coordinator's server.log: a transaction aborted by timeout; the application: ProducerFencedException",
)
ORDINARY = Cause("nothing went wrong", "the application's log: nothing at that time")
LOST = Cause("acknowledged records were lost", "kaudit diff with the other replicas: records that only one of them has")


def cause_of(kind: str) -> Cause:
    """Return the cause for a kind of fault."""
    return CAUSES.get(kind, Cause(kind.replace("-", " "), "the logs of the brokers and the application at that time"))
