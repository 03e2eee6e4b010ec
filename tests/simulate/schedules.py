"""Random scenarios within bounds, and what is true of the logs they leave: derived from what the model wrote down."""

import random
from collections import Counter
from dataclasses import dataclass, field

from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.simulate.cluster.replica_log import StoredBatch
from kaudit.simulate.scenario.model import Scenario
from kaudit.simulate.scenario.reading import parse_scenario

VERSIONS = ("2.0.1", "2.8.2", "3.9.1", "4.2.0")
CLIENTS = ("java 1.1.1", "java 2.0.1", "java 2.4.1", "java 2.6.2", "java 2.8.2", "java 3.9.1", "java 4.2.0")
"""Of the generations that react in their own ways to broken sequences, any with any broker."""
WITHOUT_DELIVERY_TIMEOUT = ("java 1.1.1", "java 2.0.1")


def drawn_scenario(seed: int, *, forgetful: bool = False, unclean: bool = False, all_faults: bool = False) -> Scenario:
    """A scenario of its own for each seed.

    `forgetful`: brokers also lose their producer snapshots. `unclean`: leaders die while their followers are behind.
    `all_faults`: besides lost produce requests and brokers and clients that die, whatever else a scenario can have.
    """
    chance = random.Random(f"schedule {seed}")
    version = chance.choice(VERSIONS)
    client = "java 2.0.1" if version == "2.0.1" else "java 4.2.0"
    if all_faults:
        client = random.Random(f"client {seed}").choice(CLIENTS)
    brokers = chance.choice((1, 2, 3))
    enabled = str(chance.random() < 0.3).lower()
    segment = chance.choice((1 << 20, 2048))
    producers = []
    for number in range(chance.randint(1, 3)):
        kind = chance.choice(("idempotent", "transactional", "plain"))
        settings = [f'"linger.ms" = {chance.choice((0, 0, 7))}', f'"batch.size" = {chance.choice((120, 400, 16384))}']
        more = ""
        if kind == "transactional":
            timeout = chance.choice((900, 3000, 60000))
            settings += [f'"transactional.id" = "t{number}"', f'"transaction.timeout.ms" = {timeout}']
            pause = chance.choice((0, 0, 1200))
            more = f'transaction = {{ records = {chance.randint(1, 6)}, outcomes = ["commit", "abort"], pause_ms = {pause} }}'
        elif kind == "plain":
            settings += [f'acks = "{chance.choice(("0", "1", "all"))}"', '"enable.idempotence" = false']
            settings += [f"retries = {chance.choice((0, 5, 2147483647))}"]
        else:
            settings += ['"enable.idempotence" = true']
            settings += [f'"max.in.flight.requests.per.connection" = {chance.choice((1, 5, 5, 8))}']
        delivery = chance.choice((1500, 120000)) if version != "2.0.1" else None
        request = chance.choice((400, 30000))
        if delivery is not None and client not in WITHOUT_DELIVERY_TIMEOUT:
            settings += [f'"delivery.timeout.ms" = {delivery}']
            request = min(request, 1000) if delivery == 1500 else request
        settings += [
            f'"request.timeout.ms" = {request}',
        ]
        producers.append(
            f'[[producers]]\nname = "p{number}"\nclient = "{client}"\nrefuse_invalid_config = false\ntopic = "{chance.choice(("orders", "events"))}"\n'
            f"records = {chance.randint(5, 60)}\nevery_ms = {chance.choice((1, 5, 30))}\n{more}\n"
            f"config = {{ {', '.join(settings)} }}\n"
        )
    faults = [
        f'[[faults]]\nkind = "stop-broker"\nat_ms = {chance.randint(120, 900)}\n'
        f"broker = {chance.randint(1, brokers)}\nrestart_after_ms = {chance.randint(10, 300)}\n"
        "without_snapshots = true\n"
        for _ in range(chance.randint(1, 2) if forgetful else 0)
    ]
    if unclean:
        brokers, enabled = max(brokers, 2), "true"
        faults.append(_unclean_election(random.Random(f"unclean {seed}"), brokers))
    in_sync = min(brokers, chance.choice((1, 2)))
    topic = f'"segment.bytes" = {segment}, "min.insync.replicas" = {1 if unclean else in_sync}'
    elections = f'"unclean.leader.election.enable" = {enabled}, "replica.lag.time.max.ms" = 200'
    text = f"""
[cluster]
version = "{version}"
brokers = {brokers}
detect_ms = {chance.choice((100, 400))}
[[topics]]
name = "orders"
partitions = {chance.choice((1, 2))}
config = {{ {topic}{f", {elections}" if unclean else ""} }}
[[topics]]
name = "events"
config = {{ "segment.bytes" = {segment}, {elections} }}
{"".join(producers)}
{"".join(faults)}
[network]
delay_ms = [1, {chance.choice((2, 9))}]
[random]
request_loss = {chance.choice((0, 0.02, 0.1))}
response_loss = {chance.choice((0, 0.02, 0.15))}
silent_share = {chance.choice((0, 0.3))}
within_ms = [100, 1500]
kill_brokers = [0, {chance.choice((0, 2))}]
stop_brokers = [0, {chance.choice((0, 2))}]
pause_brokers = [0, {chance.choice((0, 2))}]
down_ms = [50, 1500]
pause_ms = [50, 900]
kill_producers = [0, {chance.choice((0, 1))}]
resend = [0, 3]
delete_records = [0, {chance.choice((0, 0, 1))}]
{_all_faults(random.Random(f"all faults {seed}")) if all_faults else ""}
"""
    return parse_scenario(text, f"schedule-{seed}")


def _all_faults(chance: random.Random) -> str:
    """Bounds of the faults of [random] that the rest of a schedule does not draw."""
    return f"""
error_responses = {chance.choice((0, 0, 0.02, 0.1))}
transactional_request_loss = {chance.choice((0, 0, 0.05, 0.2))}
transactional_response_loss = {chance.choice((0, 0, 0.05, 0.2))}
marker_loss = {chance.choice((0, 0, 0.1, 0.4))}
disconnect_brokers = [0, {chance.choice((0, 1, 2))}]
slow_disks = [0, {chance.choice((0, 1, 2))}]
disk_delay_ms = [5, {chance.choice((20, 400))}]
jump_clocks = [0, {chance.choice((0, 1, 2))}]
jump_ms = {chance.choice(("[-2000, 2000]", "[-3600000, 3600000]", "[-200000000, 200000000]"))}
move_leaders = [0, {chance.choice((0, 1, 3))}]
use_producer_ids = [0, {chance.choice((0, 1))}]
"""


def _unclean_election(chance: random.Random, brokers: int) -> str:
    """Every follower of broker 1 stops fetching; then broker 1 dies, and one of them is elected all the same."""
    at, paused = chance.randint(150, 900), chance.randint(350, 900)
    down = chance.choice((200, 1500, 4000))
    followers = [
        f'[[faults]]\nkind = "pause-broker"\nat_ms = {at}\nbroker = {broker}\nfor_ms = {paused}\n'
        for broker in range(2, brokers + 1)
    ]
    dies = at + paused - chance.randint(10, 200)
    return "".join(
        [*followers, f'[[faults]]\nkind = "kill-broker"\nat_ms = {dies}\nbroker = 1\nrestart_after_ms = {down}\n']
    )


@dataclass
class LogTruth:
    """What an auditor of one replica's log should know. Offsets are base offsets."""

    repeats: set[int] = field(default_factory=set)
    gaps: set[int] = field(default_factory=set)
    restarts: set[int] = field(default_factory=set)
    unknown_starts: set[int] = field(default_factory=set)
    stale: set[int] = field(default_factory=set)
    bumps_beyond_zero: set[int] = field(default_factory=set)
    bumps_at_leader_change: set[int] = field(default_factory=set)
    """First batches of an epoch that a client raised itself, the batch before being of an older leader epoch."""
    repeated_epochs: set[int] = field(default_factory=set)
    """Such batches, and those under one leader, that are copies of one of the epoch before."""
    open_transactions: dict[int, int] = field(default_factory=dict)
    outside_transaction: set[int] = field(default_factory=set)
    batches: Counter[int] = field(default_factory=Counter)
    records: Counter[int] = field(default_factory=Counter)
    epochs: dict[int, set[int]] = field(default_factory=dict)
    last_offset: dict[int, int] = field(default_factory=dict)
    plain_repeats: set[int] = field(default_factory=set)
    """Copies of batches without a producer id."""
    sent_again: set[int] = field(default_factory=set)
    """Batches without a producer id whose records the application had sent before, in another batch."""
    resent: set[int] = field(default_factory=set)
    """Offsets of records that the application had written before under another producer id."""
    copied_records: int = 0
    """Records in `repeats` that are copies of batches sent before."""
    log_end: int = 0
    reordered: set[int] = field(default_factory=set)
    """Batches whose first copy lies behind that of a later one of their session."""
    older: set[int] = field(default_factory=set)
    """Batches without a producer id that have older records than one before them, of whichever producer."""
    fences: set[int] = field(default_factory=set)
    """Batches and markers of a higher epoch than their producer's before them."""

    @property
    def anomalies(self) -> set[int]:
        """Everything about sequences and epochs that no healthy broker writes in one life of its memory."""
        return self.repeats | self.gaps | self.stale | self.bumps_beyond_zero


def truth_of(log) -> LogTruth:
    """Walk the batches the model stored, each known to be what a producer sent, and compare neighbours."""
    truth = LogTruth()
    last: dict[int, tuple[int, int]] = {}
    newest: dict[int, tuple[int, int]] = {}
    seen: dict[tuple[int, int], set[tuple[int, int]]] = {}
    _compare_payloads(truth, log)
    _compare_times(truth, log)
    for stored in log.batches:
        state = stored.state
        if state is None:
            continue
        producer = state.producer_id
        deleted = stored.last_offset < log.log_start
        if state.producer_epoch > max(truth.epochs.get(producer, ()), default=-1):
            truth.fences.add(stored.base_offset)
        if isinstance(state, MarkerBatch):
            truth.open_transactions.pop(producer, None)
            truth.epochs.setdefault(producer, set()).add(state.producer_epoch)
            if deleted:
                continue
            epoch, _ = last.get(producer, (-1, -1))
            if state.producer_epoch != epoch:
                last[producer] = (state.producer_epoch, -1)
            continue
        assert isinstance(state, DataBatch)
        _count(truth, state)
        if deleted:
            continue  # deleted records are no evidence
        _open_transaction(truth, state)
        _compare_epochs(truth, stored, newest.get(producer), log)
        _compare(truth, state, last, seen.setdefault((producer, state.producer_epoch), set()))
        if stored.base_offset not in truth.repeats:
            newest[producer] = max(newest.get(producer, (-1, -1)), (state.producer_epoch, stored.leader_epoch))
    truth.copied_records = _copied_records(truth, log)
    truth.log_end = log.batches[-1].last_offset + 1 if log.batches else 0
    return truth


def _count(truth: LogTruth, state: DataBatch) -> None:
    """Count a batch for its producer."""
    producer = state.producer_id
    truth.batches[producer] += 1
    truth.records[producer] += state.last_offset - state.base_offset + 1
    truth.epochs.setdefault(producer, set()).add(state.producer_epoch)
    truth.last_offset[producer] = state.last_offset


def _open_transaction(truth: LogTruth, state: DataBatch) -> None:
    """Begin or go on with the transaction of a batch's producer; note what is written outside of one that is open."""
    if state.is_transactional:
        truth.open_transactions.setdefault(state.producer_id, state.base_offset)
    elif state.producer_id in truth.open_transactions:
        truth.outside_transaction.add(state.base_offset)


def _copied_records(truth: LogTruth, log) -> int:
    known: set[int] = set()
    records = 0
    for stored in log.batches:
        if stored.base_offset in truth.repeats and id(stored.sent) in known:
            records += len(stored.sent.numbers)
        known.add(id(stored.sent))
    return records


def _compare_epochs(truth: LogTruth, stored: StoredBatch, before: tuple[int, int] | None, log) -> None:
    """Look at the first batch of an epoch that a client raised itself; `before`: producer and leader epoch of its last one."""
    state = stored.state
    assert isinstance(state, DataBatch)
    if before is None or state.is_transactional or state.producer_epoch <= before[0]:
        return
    if before[1] < stored.leader_epoch:
        truth.bumps_at_leader_change.add(stored.base_offset)
    if any(other.sent is stored.sent for other in log.batches if other.base_offset < stored.base_offset):
        truth.repeated_epochs.add(stored.base_offset)


def _compare_times(truth: LogTruth, log) -> None:
    """Compare the times of batches without a producer id, which are all that orders their producers' records."""
    newest = 0
    for stored in log.batches:
        if stored.sent is not None and stored.state is None:
            if min(stored.sent.timestamps) < newest:
                truth.older.add(stored.base_offset)
            newest = max(newest, stored.max_timestamp)


def _compare_payloads(truth: LogTruth, log) -> None:
    """Compare what producers handed over, which no sequence shows."""
    copied: set[int] = set()
    written: set[tuple[str, tuple[int, ...]]] = set()
    writers: dict[tuple[str, int], set[int | None]] = {}
    highest: dict[tuple[str, int], int] = {}
    for stored in log.batches:
        sent = stored.sent
        if sent is None or stored.last_offset < log.log_start:
            continue
        owner = None if stored.state is None else stored.state.producer_id
        for offset, number in enumerate(sent.numbers, start=stored.base_offset):
            owners = writers.setdefault((sent.payload.producer, number), set())
            if owners - {owner}:
                truth.resent.add(offset)
            owners.add(owner)
        if id(sent) in copied:
            if stored.state is None:
                truth.plain_repeats.add(stored.base_offset)
            continue
        copied.add(id(sent))
        records = (sent.payload.producer, tuple(sent.numbers))
        if stored.state is None and records in written:
            truth.sent_again.add(stored.base_offset)
        written.add(records)
        session = (sent.payload.producer, sent.payload.session)
        if sent.numbers[0] < highest.get(session, -1):
            truth.reordered.add(stored.base_offset)
        highest[session] = max(highest.get(session, -1), sent.numbers[-1])


def _compare(truth: LogTruth, state: DataBatch, last, seen) -> None:
    producer, first, offset = state.producer_id, state.base_sequence, state.base_offset
    epoch, sequence = last.get(producer, (None, -1))
    span = (first, state.last_sequence)
    if epoch is None or (epoch == state.producer_epoch and sequence == -1):
        if first != 0:
            truth.unknown_starts.add(offset)
    elif state.producer_epoch < epoch:
        truth.stale.add(offset)
        return
    elif state.producer_epoch > epoch:
        if first != 0:
            truth.bumps_beyond_zero.add(offset)
    elif first == sequence + 1:
        pass
    elif span in seen or any(low <= first and state.last_sequence <= high for low, high in seen):
        truth.repeats.add(offset)
        return
    elif first == 0:
        truth.restarts.add(offset)
    elif first > sequence:
        truth.gaps.add(offset)
    else:
        truth.repeats.add(offset)
    seen.add(span)
    last[producer] = (state.producer_epoch, state.last_sequence)
