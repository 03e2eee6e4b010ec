"""What the clients, replicas and the transaction coordinator of a run hold at one moment. Times in ms since the run began."""

from msgspec import Struct

from kaudit.broker.producer_state.producer_state_entry import ProducerStateEntry


class BatchState(Struct, frozen=True):
    """A batch of a client: the application's numbers of its records, and its sequences, -1 while it has none."""

    first_record: int
    last_record: int
    epoch: int
    first_sequence: int
    last_sequence: int
    attempts: int
    """How often sending it has failed."""


class ClientPartitionState(Struct, frozen=True):
    """What a client holds for one partition: the first batches that wait, those sent and not answered, and how many."""

    partition: str
    queue: tuple[BatchState, ...]
    queued: int
    in_flight: tuple[BatchState, ...]
    sent: int
    is_muted: bool
    """Nothing more is sent while a request is under way (max.in.flight.requests.per.connection=1)."""
    next_sequence: int
    """-1 without idempotence."""
    last_acknowledged: int
    is_unresolved: bool
    """A batch was given up after it had been sent: nothing new is sent until the rest is answered."""


class ClientState(Struct, frozen=True):
    """One producer; ids and epochs are -1 while it has none, `transaction_state` is None without a transactional.id."""

    name: str
    process: str
    producer_id: int
    epoch: int
    max_in_flight: int
    transactional_id: str | None
    transaction_state: str | None
    partitions: tuple[ClientPartitionState, ...]


class ReplicaState(Struct, frozen=True):
    """One replica's log."""

    broker: int
    process: str
    log_start: int
    log_end: int
    high_watermark: int


class PartitionState(Struct, frozen=True):
    """One partition over its replicas; `last_stable_offset` is the leader's."""

    name: str
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    min_insync_replicas: int
    replicas: tuple[ReplicaState, ...]
    last_stable_offset: int


class RememberedProducer(Struct, frozen=True):
    """What a partition's leader remembers of one producer id."""

    partition: str
    producer_id: int
    entry: ProducerStateEntry


class TransactionState(Struct, frozen=True):
    """What the coordinator holds of one transactional id; `started_at` is None while no transaction is open."""

    transactional_id: str
    producer_id: int
    epoch: int
    status: str
    partitions: tuple[str, ...]
    started_at: int | None
    timeout_ms: int


class RunState(Struct, frozen=True):
    """Everything at one moment."""

    clients: tuple[ClientState, ...] = ()
    partitions: tuple[PartitionState, ...] = ()
    producers: tuple[RememberedProducer, ...] = ()
    transactions: tuple[TransactionState, ...] = ()


NO_STATE = RunState()
