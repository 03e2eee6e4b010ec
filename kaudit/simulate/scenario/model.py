"""A scenario, and the schema of its TOML. Times are ms since the run begins, sizes bytes."""

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from kaudit.model.sequence import MAX_SEQUENCE
from kaudit.simulate.clock import BASE_TIMESTAMP
from kaudit.simulate.producer.config import DAY_MS, MAX_RECORDS, Count, Ms, PositiveMs, ProducerConfig, Text

Rate = Annotated[float, Meta(ge=0, le=1)]
"""A share of all messages."""
_Few = Annotated[int, Meta(ge=0, le=100)]
_Records = Annotated[int, Meta(ge=0, le=MAX_RECORDS)]
_Delay = Annotated[int, Meta(ge=0, le=60_000)]
_Jump = Annotated[int, Meta(ge=-30 * DAY_MS, le=30 * DAY_MS)]
Api = Literal["Produce", "InitProducerId", "AddPartitionsToTxn", "EndTxn"]
"""Requests of a producer, by Kafka's names."""
TRANSACTION_PARTITION = "__transaction_state-0"
"""The one partition of the transaction log: whose leader coordinates all transactions."""
IntRange = tuple[int, int]
"""Bounds of a whole number drawn per run, both included."""


class ClusterSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """Brokers 1 to `brokers` of one release, and their configuration under Kafka's names."""

    version: Text = "4.2.0"
    brokers: Annotated[int, Meta(ge=1, le=9)] = 1
    detect_ms: PositiveMs = 1_000
    """How long the controller takes to notice that a broker died."""
    config: dict[str, str] = {}


class TopicSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """One topic; partition p is led by broker p mod brokers + 1 at first."""

    name: Text
    replication_factor: Annotated[int, Meta(ge=1, le=9)]
    partitions: Annotated[int, Meta(ge=1, le=1000)] = 1
    config: dict[str, str] = {}


class TransactionSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """How an application cuts its records into transactions and ends each; the outcomes repeat."""

    records: Count = 5
    outcomes: Annotated[tuple[Literal["commit", "abort"], ...], Meta(min_length=1)] = ("commit",)
    pause_ms: Ms = 0
    """How long the application waits between the last record and the end."""


class ProducerSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """An application with a producer: `records` of them, `burst` at once every `every_ms`, round robin."""

    name: Text
    topic: Text
    config: ProducerConfig
    client: str = ""
    """The library and release, such as `java 2.4.1`."""
    refuse_invalid_config: bool = True
    """Whether a configuration that contradicts idempotence is refused, as the client does."""
    application: str = ""
    """Whose records they are; by default the producer's name."""
    records: Count = 10
    first_sequence: Annotated[int, Meta(ge=0, le=MAX_SEQUENCE)] = 0
    """The sequence each partition begins with: its first session goes on where an earlier log, deleted since, ended."""
    start_ms: Ms = 0
    every_ms: Ms = 10
    burst: Count = 1
    record_bytes: Annotated[int, Meta(ge=1, le=1 << 20)] = 24
    transaction: TransactionSpec | None = None
    initializations: Annotated[int, Meta(ge=1, le=32_766)] = 1
    """How often initTransactions is called before the first record: each raises the epoch."""
    sessions: Annotated[int, Meta(ge=1, le=100_000)] = 1
    """Producers opened one after the other, each for its share of the records: each takes a new producer id."""


# -- faults: what a scenario can do to a cluster and its clients, by `kind` ---------------------------------------------
class _Fault(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag=lambda name: re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower(),
):
    pass


class RequestFault(_Fault, frozen=True, kw_only=True):
    """What happens to requests of one kind; `request` counts a producer's from 1, `times` is how many from there on."""

    request: Count
    producer: str = ""
    api: Api = "Produce"
    times: Count = 1


class MessageLoss(RequestFault, frozen=True, kw_only=True):
    """A message is lost."""

    silent: bool = False
    behind: bool = True


class LoseRequest(MessageLoss, frozen=True):
    """Requests do not arrive."""


class LoseResponse(MessageLoss, frozen=True):
    """The responses to requests do not arrive."""


class ErrorResponse(RequestFault, frozen=True, kw_only=True):
    """Requests are answered with `error`, of a produce request all of it or one `partition` (`orders-0`).

    `after_append`: the broker has carried the request out all the same, as with NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    """

    error: Text
    partition: Text | None = None
    after_append: bool = False


class LoseMarker(_Fault, frozen=True, kw_only=True):
    """WriteTxnMarkers to a partition (`orders-0`) is lost; `marker` counts those sent to it from 1.

    `response`: only the response is, so the marker is written again. The coordinator sends it again when the connection is
    closed, `silent`: when request.timeout.ms is over.
    """

    partition: str = ""
    marker: Count = 1
    times: Count = 1
    response: bool = False
    silent: bool = False


class TimedFault(_Fault, frozen=True, kw_only=True):
    """What happens at a time, not to a message."""

    at_ms: Ms


class BrokerFault(TimedFault, frozen=True, kw_only=True):
    """What happens to `broker`, or to the broker that leads the partition `leader_of` (`orders-0`) then."""

    broker: Annotated[int, Meta(ge=1, le=9)] | None = None
    leader_of: Text | None = None


class BrokerEnd(BrokerFault, frozen=True, kw_only=True):
    """A broker's process ends, and starts again after `restart_after_ms` unless that is None."""

    restart_after_ms: Ms | None = None
    without_snapshots: bool = False
    """Whether its producer snapshots are deleted meanwhile."""


class KillBroker(BrokerEnd, frozen=True):
    """Kill -9."""


class StopBroker(BrokerEnd, frozen=True):
    """A controlled shutdown."""


class StartBroker(BrokerFault, frozen=True, kw_only=True):
    """Start a broker that was killed or stopped."""

    without_snapshots: bool = False


class PauseBroker(BrokerFault, frozen=True, kw_only=True):
    """SIGSTOP, and SIGCONT after `for_ms`."""

    for_ms: PositiveMs


class LoseAllocation(BrokerFault, frozen=True):
    """The response to the broker's next allocation of producer ids is lost."""


class UseProducerIds(BrokerFault, frozen=True, kw_only=True):
    """Other clients take `count` producer ids of the broker: its block is used up."""

    count: Annotated[int, Meta(ge=1, le=100_000)] = 1000


class SlowDisk(BrokerFault, frozen=True, kw_only=True):
    """Each request a broker writes for, and each fetch it writes, takes `delay_ms` longer, for `for_ms`."""

    for_ms: PositiveMs
    delay_ms: PositiveMs = 500


class JumpBrokerClock(BrokerFault, frozen=True, kw_only=True):
    """A broker's wall clock is set `by_ms` forward, or back where negative; `for_ms`: and back again."""

    by_ms: _Jump
    for_ms: PositiveMs | None = None


class DisconnectBrokers(TimedFault, frozen=True, kw_only=True):
    """`brokers` and the others cannot reach one another for `for_ms`; clients and the controller reach them all."""

    brokers: Annotated[tuple[Annotated[int, Meta(ge=1, le=9)], ...], Meta(min_length=1)]
    for_ms: PositiveMs


class MoveLeader(TimedFault, frozen=True, kw_only=True):
    """Another in-sync replica is elected: `broker`, or the next one. `__transaction_state-0` moves the coordinator."""

    partition: str = ""
    broker: Annotated[int, Meta(ge=1, le=9)] | None = None


class JumpProducerClock(TimedFault, frozen=True, kw_only=True):
    """The wall clock of an application's machine is set `by_ms` forward, or back where negative."""

    by_ms: _Jump
    producer: str = ""
    for_ms: PositiveMs | None = None


class KillProducer(TimedFault, frozen=True, kw_only=True):
    """An application dies; a new process sends its last `resend` records again."""

    producer: str = ""
    restart_after_ms: Ms | None = None
    resend: _Records = 0


class PauseProducer(TimedFault, frozen=True, kw_only=True):
    """An application's process stops for a while."""

    for_ms: PositiveMs
    producer: str = ""


class DeleteRecords(TimedFault, frozen=True, kw_only=True):
    """DeleteRecords of a partition (`orders-0`) up to an offset, -1 for the high watermark."""

    partition: str = ""
    before_offset: Annotated[int, Meta(ge=-1, le=2**62)] = -1


Fault = (
    LoseRequest
    | LoseResponse
    | ErrorResponse
    | LoseMarker
    | KillBroker
    | StopBroker
    | StartBroker
    | PauseBroker
    | KillProducer
    | PauseProducer
    | DeleteRecords
    | LoseAllocation
    | UseProducerIds
    | SlowDisk
    | JumpBrokerClock
    | JumpProducerClock
    | DisconnectBrokers
    | MoveLeader
)


class RandomFaults(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of random faults; a seed picks within them."""

    request_loss: Rate = 0.0
    response_loss: Rate = 0.0
    silent_share: Rate = 0.0
    within_ms: tuple[Ms, Ms] = (0, 1000)
    """When the events below happen."""
    kill_brokers: tuple[_Few, _Few] = (0, 0)
    stop_brokers: tuple[_Few, _Few] = (0, 0)
    pause_brokers: tuple[_Few, _Few] = (0, 0)
    down_ms: tuple[Ms, Ms] = (500, 3000)
    pause_ms: tuple[Ms, Ms] = (100, 3000)
    kill_producers: tuple[_Few, _Few] = (0, 0)
    resend: tuple[_Records, _Records] = (0, 0)
    delete_records: tuple[_Few, _Few] = (0, 0)
    error_responses: Rate = 0.0
    transactional_request_loss: Rate = 0.0
    """Of InitProducerId, AddPartitionsToTxn and EndTxn."""
    transactional_response_loss: Rate = 0.0
    marker_loss: Rate = 0.0
    """Of WriteTxnMarkers, half of them requests and half responses."""
    disconnect_brokers: tuple[_Few, _Few] = (0, 0)
    slow_disks: tuple[_Few, _Few] = (0, 0)
    disk_delay_ms: tuple[PositiveMs, PositiveMs] = (50, 1000)
    jump_clocks: tuple[_Few, _Few] = (0, 0)
    jump_ms: tuple[_Jump, _Jump] = (-60_000, 60_000)
    """Of a broker or a producer, and back again after as long as a pause."""
    move_leaders: tuple[_Few, _Few] = (0, 0)
    use_producer_ids: tuple[_Few, _Few] = (0, 0)
    """How often a broker's block of producer ids is used up."""


class NetworkSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of the time each message travels."""

    delay_ms: tuple[_Delay, _Delay] = (1, 3)


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a run needs besides its seed."""

    name: str
    title: Text
    cluster: ClusterSpec
    topics: tuple[TopicSpec, ...]
    producers: tuple[ProducerSpec, ...]
    story: Text = "-"
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    starts_at: int = BASE_TIMESTAMP
    """The wall clock at time 0, ms since 1970."""
    duration_ms: Annotated[int, Meta(ge=1, le=30 * DAY_MS)] = 3_600_000
    """Nothing happens after this."""
    network: NetworkSpec = NetworkSpec()
    faults: tuple[Fault, ...] = ()
    random_faults: RandomFaults | None = field(default=None, name="random")
    stop_at_end: bool = True
    """Whether running brokers are stopped cleanly at the end, before their files are written."""

    @property
    def is_transactional(self) -> bool:
        """Whether any producer has a transactional.id: then there is a transaction log."""
        return any(producer.config.transactional_id is not None for producer in self.producers)
