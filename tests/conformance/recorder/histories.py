"""Random scenarios, the same for the same seed: producers that go on, repeat, skip, bump and do everything wrong.

What a step sends is worked out when it is played (`tests/conformance/recorder/topic.py`), so a history goes on sensibly
whatever the broker answers.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.conformance.recorder.topic import SEQUENCES, Step

FIRST_PRODUCER_ID = 900_001
"""Never allocated by a broker; the data path does not care."""
SHORT_TIMEOUT_MS = 2_000
TIMED_OUT_MS = 6_000
"""Long enough for the coordinator to have looked, and to have written its markers."""
EXPIRED_MS = 5_500
PLAIN_VERSIONS = (3, 5, 7, 8, 8, 8, 9, 11, 12)
TRANSACTION_VERSIONS = (3, 7, 8, 8, 9, 10, 11, 12)
TOPIC_CONFIGS: tuple[dict[str, str], ...] = (
    {"compression.type": "gzip"},
    {"compression.type": "lz4"},
    {"compression.type": "uncompressed"},
    {"message.timestamp.type": "LogAppendTime"},
    {"cleanup.policy": "compact"},
    {"segment.bytes": "600"},
    {"max.message.bytes": "300"},
)
TAMPERINGS: dict[str, tuple[Step, ...]] = {
    "clean": ({"delete_snapshots": True}, {"corrupt_snapshots": True}),
    "kill9": (
        {"truncate_batches": 1},
        {"truncate_batches": 2},
        {"tear_last": True},
        {"corrupt_last": True},
        {"delete_snapshots": True},
        {"corrupt_snapshots": True},
    ),
}
"""What may have happened to the files; a broker that stopped cleanly does not look at its log again."""
ROUNDS = ((), ("clean",), ("kill9",))
"""The restarts of the histories that are played together; a round of two comes on top, since restarts take longest."""
TWICE = (("kill9", "clean"), ("clean", "kill9"))
_RETURN: Step = {"kind": "failover", "how": "clean", "via": "restarted_old_leader"}
_SHUTDOWN: Step = {"kind": "failover", "how": "clean", "via": "controlled_shutdown"}
FAIL_OVERS: tuple[tuple[Step, ...], ...] = (
    ({"kind": "failover", "how": "clean", "via": "preferred_election"},),
    (_SHUTDOWN, _RETURN),
    ({"kind": "failover", "how": "kill9"}, _RETURN),
    ({"kind": "follower_restart", "how": "clean"}, _SHUTDOWN),
    ({"kind": "follower_restart", "how": "kill9"}, {"kind": "failover", "how": "kill9"}),
    (
        {"kind": "lag", "how": "stop", "isr": "unchanged"},
        {"kind": "failover", "how": "kill9", "lagging": True},
        _RETURN,
    ),
    ({"kind": "lag", "how": "stop", "isr": "leader_only"}, {"kind": "failover", "how": "unclean"}, _RETURN),
    (
        {"kind": "lag", "how": "stop", "isr": "unchanged"},
        {"kind": "failover", "how": "paused", "lagging": True},
        {"kind": "failover", "how": "clean", "via": "resumed_old_leader"},
    ),
)
"""What happens to the brokers, as the scenarios written by hand have it: those that see the same are played together."""
Turn = Callable[["History"], list[Step]]


@dataclass
class History:
    """What the turns of one history share."""

    random: random.Random
    name: str
    partitions: int
    expires: bool
    writers: list[Step] = field(default_factory=list)
    transactional: list[str] = field(default_factory=list)
    codec: int = 0
    newest: int = 0
    """TV2's names of producers are numbered."""

    def partition(self) -> int:
        return self.random.randrange(self.partitions)

    def writer(self) -> Step:
        return self.random.choice(self.writers)

    def transactional_id(self) -> str:
        return self.random.choice(self.transactional)

    def identifier(self, producer: str) -> str:
        return f"tx-{self.name}-{producer[0]}"


def histories(seed: int, count: int, *, expires: bool = False) -> list[list[Step]]:
    """`count` random scenarios in rounds: those of a round see the same restarts.

    With `expires` they wait now and then until a broker with a short expiry has forgotten producers.
    """
    source = random.Random(f"{seed} {expires}")
    order = [*ROUNDS[:1], *source.sample(ROUNDS[1:], len(ROUNDS) - 1)]
    if not expires:
        order.append(source.choice(TWICE))
    shares = min(len(order), count)
    rounds: list[list[Step]] = [[] for _ in range(shares)]
    for number in range(count):
        name = f"{'x' if expires else 'h'}{seed}-{number}"
        rounds[number % shares].append(_history(source, name, order[number % shares], expires=expires))
    return rounds


def _history(source: random.Random, name: str, restarts: tuple[str, ...], *, expires: bool) -> Step:
    history = History(source, name, source.choice((1, 1, 2)), expires)
    config = source.choice(TOPIC_CONFIGS) if source.random() < 0.25 else {}
    history.codec = 1 if source.random() < 0.15 else 0
    turns, steps = cast(history)
    for kind in (None, *restarts):
        if kind is not None:
            steps.append(restart(history, kind))
        for _ in range(source.randint(6, 16)):
            (turn,) = source.choices(list(turns), list(turns.values()))
            steps.extend(turn(history))
    return {"name": name, "partitions": history.partitions, "topic_config": config, "steps": steps}


def fail_overs(seed: int, count: int) -> list[Step]:
    """`count` random scenarios of one partition whose leader changes, every way in turn."""
    source = random.Random(f"{seed} fail-over")
    return [_fail_over(source, f"l{seed}-{number}", FAIL_OVERS[number % len(FAIL_OVERS)]) for number in range(count)]


def _fail_over(source: random.Random, name: str, barriers: tuple[Step, ...]) -> Step:
    history = History(source, name, 1, expires=False)
    turns, steps = cast(history)
    lagging: dict[Turn, int] = {_next: 6, _again: 2, _wrong: 1, _bump: 1}
    for barrier in (None, *barriers):
        behind = barrier is not None and barrier["kind"] == "lag"
        if barrier is not None:
            steps.append({"op": "barrier", **barrier})
        for _ in range(source.randint(2, 4) if behind else source.randint(6, 12)):
            chosen = lagging if behind else turns
            (turn,) = source.choices(list(chosen), list(chosen.values()))
            # an append nobody waits for shows in the log's end only when the followers have it
            steps += [{**step, "acks": 1 if behind else -1} if "acks" in step else step for step in turn(history)]
    unclean = any(barrier["how"] == "unclean" for barrier in barriers)
    config = {"unclean.leader.election.enable": "true"} if unclean else {}
    return {"name": name, "partitions": 1, "topic_config": config, "steps": steps}


def cast(history: History, *, transactions: bool | None = None) -> tuple[dict[Turn, int], list[Step]]:
    """What happens how often in a history, and how its producers begin; with `transactions`, without, or as it falls."""
    source = history.random
    turns: dict[Turn, int] = {_next: 14, _again: 6, _wrong: 5, _bump: 2, _stale: 2, _several: 1}
    turns |= {_delete: 1, _describe: 1, _odd: 1}
    steps: list[Step] = []
    for number in range(source.randint(1, 3)):
        if source.random() < 0.2:
            name = f"W{number}"
            steps.append({"op": "init_pid", "as": name})
            history.writers.append({"pid": name, "epoch": name})
        else:
            history.writers.append({"pid": FIRST_PRODUCER_ID + number, "epoch": source.choice((0, 0, 0, 1, 5))})
    if source.random() < 0.6 if transactions is None else transactions:
        for producer in ("A", "B")[: source.randint(1, 2)]:
            history.transactional.append(producer)
            steps.append(init(history, producer))
        turns |= {_transaction: 6, _send: 6, _end: 4, _add: 3, _begin_again: 2, _wrong_turn: 4, _marker: 1}
        turns |= {_transaction_version_2: 4}
    if history.expires:
        turns |= {_expire: 2}
    return turns, steps


def restart(history: History, kind: str) -> Step:
    """A stop of the broker, and what is done to the files before it starts again."""
    source = history.random
    step: Step = {"op": "barrier", "kind": kind, "partition": history.partition()}
    if source.random() < 0.2:
        step["tamper"] = source.choice(TAMPERINGS[kind])
    elif kind == "kill9" and source.random() < 0.3:
        # a producer of its own: old releases do not load a log in which an epoch goes back
        writer = {"pid": FIRST_PRODUCER_ID + len(history.writers), "epoch": source.choice((0, 1, 5))}
        history.writers.append(writer)
        step["inject"] = [{**writer, "seq": SEQUENCES - source.randint(1, 4), "count": source.randint(1, 3)}]
    return step


# -- idempotent producers --------------------------------------------------------------------------------------------
def produce(history: History, writer: Step, **more: object) -> Step:
    """A batch in some partition, with any acks and version; `more` says it otherwise."""
    source = history.random
    step: Step = {"op": "produce", **writer, "count": source.choice((1, 1, 1, 2, 3)), "partition": history.partition()}
    step |= {"acks": source.choice((-1, -1, -1, -1, 1, 1, 0)), "version": source.choice(PLAIN_VERSIONS)}
    if history.codec:
        step["codec"] = history.codec
    return {**step, **more}


def _next(history: History) -> list[Step]:
    writer = history.writer()
    if history.random.random() < 0.3:
        partition = history.partition()
        return [produce(history, writer, seq="next", partition=partition) for _ in range(history.random.randint(2, 6))]
    return [produce(history, writer, seq="next")]


def _again(history: History) -> list[Step]:
    """A batch of those written comes again, or several as one, or one with a record more."""
    source = history.random
    depth = source.randint(1, 7)
    span = f":{source.randint(2, 3)}" if depth > 1 and source.random() < 0.2 else ""
    more = {"more": 1} if source.random() < 0.1 else {}
    return [produce(history, history.writer(), seq=f"back:{depth}{span}", **more)]


def _wrong(history: History) -> list[Step]:
    step = history.random.choice(("next+1", "next+-1", "next+5", f"next+{SEQUENCES - 3}"))
    return [produce(history, history.writer(), seq=step)]


def _bump(history: History) -> list[Step]:
    """A writer goes on in a new epoch, at sequence 0 or, wrongly, where it was."""
    writer = history.writer()
    if isinstance(writer["epoch"], str):
        epoch: object = f"{writer['pid']}+{history.random.choice((1, 2))}"
        return [produce(history, {**writer, "epoch": epoch}, seq=history.random.choice(("next", 0, 3)))]
    old = dict(writer)
    writer["epoch"] += history.random.choice((1, 1, 2))
    steps = [produce(history, dict(writer), seq=history.random.choice((0, 0, 0, 2)))]
    if history.random.random() < 0.3:
        steps.append(produce(history, old, seq=history.random.choice(("next", "back:1"))))
    return steps


def _stale(history: History) -> list[Step]:
    """An epoch of before, or none, or a negative one."""
    writer = history.writer()
    epoch = history.random.choice((0, 0, -1, -2))
    return [produce(history, {**writer, "epoch": epoch}, seq=history.random.choice(("next", "back:1", 0)))]


def _several(history: History) -> list[Step]:
    """Two batches in one request: refused since there are producer ids."""
    writer = history.writer()
    parts = [produce(history, writer, seq=seq, partition=0, acks=-1, version=8) for seq in ("next", "next+1")]
    return [{"op": "produce", "batches": parts}]


def _odd(history: History) -> list[Step]:
    """What no client should send: no producer, broken bytes, a negative sequence, an old or future time."""
    odd: tuple[Step, ...] = (
        {"pid": -1, "epoch": -1, "seq": -1},
        {"bad_crc": True, "seq": "next"},
        {"seq": -1},
        {"last_offset_delta": 4, "seq": "next"},
        {"ts_ago": 90_000_000, "seq": "next"},
        {"ts_ago": -90_000_000, "seq": "next"},
        {"txn": True, "seq": "next"},
        {"no_records": True, "seq": "next", "count_header": 0},
        {"value_size": 400, "seq": "next"},
    )
    return [produce(history, history.writer(), **history.random.choice(odd))]


def _delete(history: History) -> list[Step]:
    before = history.random.choice((-1, 1, 2, 0.5, 0.5, 0.9))
    return [{"op": "delete_records", "offset": before, "partition": history.partition()}]


def _describe(history: History) -> list[Step]:
    return [{"op": "check_txn", "partition": history.partition()}]


def _expire(history: History) -> list[Step]:
    return [{"op": "sleep", "ms": EXPIRED_MS}, *_describe(history)]


# -- transactions ----------------------------------------------------------------------------------------------------
def init(history: History, producer: str, **more: object) -> Step:
    """InitProducerId of a transactional producer."""
    version = history.random.choice((0, 1, 2, 3, 4))
    return {"op": "init_pid", "txn_id": history.identifier(producer), "as": producer, "version": version, **more}


def of(producer: str, epoch: int = 0) -> Step:
    """Producer id and epoch of a producer by name; `epoch` is added to its own."""
    return {"pid": producer, "epoch": f"{producer}+{epoch}" if epoch else producer}


def transactional(history: History, producer: str, **more: object) -> Step:
    """A transactional batch; `more` says it otherwise."""
    version = history.random.choice(TRANSACTION_VERSIONS)
    return produce(
        history, of(producer), **{"seq": "next", "txn": True, "txn_id": history.identifier(producer), "acks": -1,
        "version": version, **more},
    )  # fmt: skip


def added(history: History, producer: str, partition: int, epoch: int = 0) -> Step:
    """AddPartitionsToTxn."""
    step: Step = {"op": "add_partitions", "txn_id": history.identifier(producer), "partition": partition}
    return {**step, **of(producer, epoch), "version": history.random.choice((0, 1, 3))}


def ended(history: History, producer: str, epoch: int = 0) -> Step:
    """EndTxn, one way or the other."""
    step: Step = {"op": "end_txn", "txn_id": history.identifier(producer), **of(producer, epoch)}
    return {**step, "commit": history.random.random() < 0.6, "version": history.random.choice((0, 1, 3))}


def _transaction(history: History) -> list[Step]:
    """A whole transaction as a client does it, in one or all partitions."""
    producer = history.transactional_id()
    partitions = list(range(history.partitions)) if history.random.random() < 0.5 else [history.partition()]
    steps = [added(history, producer, partition) for partition in partitions]
    for partition in partitions:
        count = history.random.randint(1, 3)
        steps += [transactional(history, producer, partition=partition) for _ in range(count)]
    return [*steps, ended(history, producer)]


def _transaction_version_2(history: History) -> list[Step]:
    """The same as clients of 4.0 and later do it: Produce adds the partition, EndTxn hands out the next epoch."""
    producer = history.transactional_id()
    sent = [transactional(history, producer, version=12) for _ in range(history.random.randint(0, 3))]
    return [*sent, {**ended(history, producer), "version": 5, "as": producer}]


def _send(history: History) -> list[Step]:
    """A transactional batch, in a transaction or not, new or again."""
    seq = history.random.choice(("next", "next", "next", "back:1", "back:3", "next+1", 0))
    return [transactional(history, history.transactional_id(), seq=seq)]


def _add(history: History) -> list[Step]:
    return [added(history, history.transactional_id(), history.partition())]


def _end(history: History) -> list[Step]:
    return [ended(history, history.transactional_id())]


def _begin_again(history: History) -> list[Step]:
    """InitProducerId in the middle of whatever there is, with or without what the client has (KIP-360)."""
    producer = history.transactional_id()
    held = history.random.choice((None, None, f"{producer}", f"{producer}+-1", f"{producer}+5"))
    if held is None:
        return [init(history, producer)]
    return [init(history, producer, version=history.random.choice((3, 4)), with_pid=producer, with_epoch=held)]


def _wrong_turn(history: History) -> list[Step]:
    source = history.random
    producer = history.transactional_id()
    turns: tuple[Callable[[], list[Step]], ...] = (
        lambda: [ended(history, producer, source.choice((-1, 1)))],
        lambda: [added(history, producer, history.partition(), source.choice((-1, 1)))],
        lambda: [transactional(history, producer, epoch=f"{producer}+{source.choice((-1, 1))}")],
        lambda: [transactional(history, producer, txn_id=f"tx-{history.name}-nobody")],
        lambda: [transactional(history, producer, txn_id=None)],
        lambda: [produce(history, of(producer), seq="next", acks=-1)],
        lambda: [{**ended(history, producer), "txn_id": f"tx-{history.name}-nobody"}],
        lambda: [transactional(history, producer), init(history, producer), transactional(history, producer)],
        lambda: [ended(history, producer), ended(history, producer)],
        lambda: _timed_out(history, producer),
    )
    return source.choice(turns)()


def _timed_out(history: History, producer: str) -> list[Step]:
    """A transaction whose time is up; its producer goes on, as what it was or as what it became."""
    partition = history.partition()
    steps = [init(history, producer, timeout_ms=SHORT_TIMEOUT_MS), added(history, producer, partition)]
    steps += [transactional(history, producer, partition=partition), {"op": "sleep", "ms": TIMED_OUT_MS}]
    late = history.random.choice((ended, init))(history, producer)
    return [*steps, transactional(history, producer, partition=partition), late, init(history, producer)]


def _marker(history: History) -> list[Step]:
    """A marker by hand, as `kafka-transactions abort` sends it, or as no coordinator would.

    The coordinator's own epoch hangs on the restarts before, so its producers get one that is lower or higher anyway.
    """
    source = history.random
    marker: Step = {"op": "write_marker", "partition": history.partition(), "commit": source.random() < 0.5}
    if source.random() < 0.6:
        return [
            {
                **marker,
                "pid": FIRST_PRODUCER_ID,
                "epoch": source.choice((0, 1, 6)),
                "coord_epoch": source.choice((0, 1)),
            }
        ]
    who = of(history.transactional_id(), source.choice((0, 0, 1, -1)))
    return [{**marker, **who, "coord_epoch": source.choice((-1, -1, 1000))}]
