"""Generated histories of a partition: what producers and brokers do right, and everything that can go wrong."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.logs import WRAP, Batch, Log, data, marker

PRODUCERS = 3
STEPS = (
    "next",
    "next",
    "next",
    "resend",
    "gap",
    "bump",
    "regress",
    "restart",
    "overlap",
    "marker",
    "marker-bump",
    "abort-bump",
    "stale-marker",
    "lose",
    "toggle",
    "silence",
    "no-producer",
    "new-leader",
    "jump",
)

step = st.tuples(st.sampled_from(STEPS), st.integers(0, PRODUCERS - 1), st.integers(1, 7), st.booleans())
steps = st.lists(step, min_size=1, max_size=60)
starts = st.lists(st.sampled_from([0, 0, 5, WRAP - 3, WRAP - 12]), min_size=PRODUCERS, max_size=PRODUCERS)


@dataclass
class Producer:
    """What a producer would send next, and what it sent."""

    producer_id: int
    sequence: int
    epoch: int = 0
    transactional: bool = False
    coordinator_epoch: int = 0
    sent: list[Batch] = field(default_factory=list)


def build(actions: list[tuple[str, int, int, bool]], first: list[int]) -> Log:
    """Play the actions; the log holds whatever came of them."""
    log = Log()
    producers = [Producer(100 + index, sequence) for index, sequence in enumerate(first)]
    leader_epoch = 0
    for number, (action, who, amount, flag) in enumerate(actions):
        producer = producers[who]
        payload = str(number).encode()
        if action == "no-producer":
            log.append(Batch(count=amount, payload=payload, leader_epoch=leader_epoch))
        elif action == "new-leader":
            leader_epoch += 1
        elif action == "silence":
            log.clock += 2 * 3_600_000
        elif action == "toggle":
            producer.transactional = not producer.transactional
        elif action == "resend":
            for batch in producer.sent[-amount:]:
                log.append(batch, keep_time=True)
        elif action in ("marker", "marker-bump", "abort-bump", "stale-marker"):
            _end(log, producer, action, amount, commit=flag)
        else:
            _send(log, producer, action, amount, payload, leader_epoch)
    return log


def _end(log: Log, producer: Producer, action: str, amount: int, *, commit: bool) -> None:
    epoch = producer.epoch
    if action == "stale-marker":
        log.append(
            marker(producer.producer_id, max(epoch - 1, 0), coordinator_epoch=max(producer.coordinator_epoch - 1, 0))
        )
        return
    if action != "marker":
        epoch = producer.epoch = producer.epoch + 1
        producer.sequence = 0
        producer.sent = []
        commit = action == "marker-bump"
    producer.coordinator_epoch += amount > 5
    log.append(marker(producer.producer_id, epoch, commit=commit, coordinator_epoch=producer.coordinator_epoch))


def _send(log: Log, producer: Producer, action: str, amount: int, payload: bytes, leader_epoch: int) -> None:
    sequence, epoch = producer.sequence, producer.epoch
    if action == "gap":
        sequence += amount
    elif action == "bump":
        epoch, sequence, producer.sent = epoch + 1, 0, []
    elif action == "jump":
        epoch, sequence, producer.sent = epoch + 1, amount, []
    elif action == "regress":
        epoch, sequence = max(epoch - 1, 0), amount
    elif action == "restart":
        sequence = 0
    elif action == "overlap":
        sequence = (sequence - amount) % WRAP
    batch = data(
        producer.producer_id,
        epoch,
        sequence,
        amount,
        transactional=producer.transactional,
        payload=payload,
        leader_epoch=leader_epoch,
    )
    if action == "lose":
        log.skip(amount)
    else:
        batch = log.append(batch)
        producer.sent.append(batch)
    if action != "regress":
        producer.epoch, producer.sequence = epoch, (sequence + amount) % WRAP
