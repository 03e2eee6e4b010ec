"""Random scenarios that each see much of one kind of event, besides what every history has (`histories.py`).

The table of docs/broker-rules.md counts attempts by these kinds: a scenario is named by its kind, seed and number.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.recorder.histories import (
    History,
    Turn,
    added,
    cast,
    ended,
    init,
    of,
    produce,
    restart,
    transactional,
)
from tests.conformance.recorder.topic import Step

EPOCHS, EVENTS, LEVELS = "epochs", "events", "levels"
"""Names of recordings, of which the first is of scenarios by hand (`scenarios.py`)."""
FIRST_TO_LAST_PRODUCE = (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 99)
"""0 to 2 have no transactional id, and left in 4.0 (KIP-896); 13 names topics by id (KIP-516); no release has 99."""
ODD_ACKS = (2, -2, 7, 32767, -32768)
FORMATS = ("0.8.2", "0.9.0", "0.10.0", "0.10.2", "0.11.0")
"""message.format.version; releases from 4.0 on do not have it."""


@dataclass(frozen=True)
class Kind:
    """A kind of event: its turns and how often they come, and what its histories are played in."""

    turns: dict[Turn, int]
    partitions: tuple[int, ...] = (1, 2)
    configs: tuple[dict[str, str], ...] = ({},)
    restarts: tuple[tuple[str, ...], ...] = ((),)
    transactions: bool = False
    """Whether every history has transactional producers; else most have."""
    rivals: bool = False
    """Two instances under each transactional id."""


def events(seed: int, count: int) -> list[Step]:
    """`count` random scenarios of each kind."""
    return [_history(f"{name}-{seed}-{number}", kind) for name, kind in KINDS.items() for number in range(count)]


def kind_of(scenario: str) -> str | None:
    """The kind a scenario is of by its name, None where it is of none."""
    name = scenario.partition("-")[0]
    return name if name in KINDS or name == LEVELS else None


def levels(seed: int, count: int, level: str) -> list[Step]:
    """`count` random scenarios of all kinds of turns for a broker of an older feature level."""
    return [_history(f"{LEVELS}-{level}-{seed}-{number}", _LEVELS) for number in range(count)]


def _history(name: str, kind: Kind) -> Step:
    source = random.Random(name)
    history = History(source, name, source.choice(kind.partitions), expires=False)
    usual, steps = cast(history, transactions=source.random() < 0.7 or kind.transactions)
    if kind.rivals:
        for producer in tuple(history.transactional):
            history.transactional.append(f"{producer}2")
            steps.append(init(history, f"{producer}2"))
    turns = usual | kind.turns
    for stop in (None, *source.choice(kind.restarts)):
        if stop is not None:
            steps.append(restart(history, stop))
        for _ in range(source.randint(8, 14)):
            (turn,) = source.choices(list(turns), list(turns.values()))
            steps.extend(turn(history))
    config = source.choice(kind.configs)
    return {"name": name, "partitions": history.partitions, "topic_config": config, "steps": steps}


# -- rivals of one transactional id --------------------------------------------------------------------------------
def _take_over(history: History) -> list[Step]:
    """A rival begins while the other has a transaction open; both go on."""
    producer = history.transactional_id()
    rival = producer[:1] if len(producer) > 1 else f"{producer}2"
    partition = history.partition()
    steps = [added(history, producer, partition), transactional(history, producer, partition=partition)]
    steps.append(init(history, rival, version=history.random.choice((0, 2, 4, 5))))
    late: tuple[Callable[[], Step], ...] = (
        lambda: transactional(history, producer, partition=partition),
        lambda: transactional(history, producer, partition=partition, seq="back:1"),
        lambda: added(history, producer, partition),
        lambda: ended(history, producer),
        lambda: init(history, producer, version=4, with_pid=producer, with_epoch=producer),
    )
    steps += [history.random.choice(late)() for _ in range(history.random.randint(1, 3))]
    if history.random.random() < 0.6:
        steps += [added(history, rival, partition), transactional(history, rival, partition=partition, seq=0)]
    return steps


def _foreign(history: History) -> list[Step]:
    """One producer under the transactional id of another, or of nobody."""
    producer = history.transactional_id()
    epoch = history.random.choice((0, 0, -1, 1))
    whose = history.identifier(history.transactional_id()) if history.random.random() < 0.7 else f"tx-{history.name}-Z"
    who = {**of(producer, epoch), "txn_id": whose}
    foreign: tuple[Callable[[], Step], ...] = (
        lambda: transactional(history, producer, **who),
        lambda: {**added(history, producer, history.partition()), **who},
        lambda: {**ended(history, producer), **who},
    )
    return [history.random.choice(foreign)() for _ in range(2)]


_WRONG_PARTS: tuple[dict[str, object], ...] = ({}, {}, {}, {"bad_crc": True}, {"seq": "next+1"}, {"seq": "back:1"})


# -- several partitions in one request ------------------------------------------------------------------------------
def _together(history: History) -> list[Step]:
    """One request for several partitions: of one producer or several, some of it refused."""
    source = history.random
    partitions = source.sample(range(history.partitions), source.randint(2, history.partitions))
    writer = history.writer()
    parts = []
    for partition in partitions:
        wrong = source.choice(_WRONG_PARTS)
        who = writer if source.random() < 0.7 else history.writer()
        parts.append(produce(history, who, **{"seq": "next", "partition": partition, **wrong}))
    first, *others = parts
    return [{**first, "also": others}]


def _transaction_together(history: History) -> list[Step]:
    """A transactional request for several partitions, all, some or none of which were added."""
    source = history.random
    producer = history.transactional_id()
    partitions = source.sample(range(history.partitions), source.randint(2, history.partitions))
    steps = [added(history, producer, partition) for partition in partitions if source.random() < 0.6]
    version = source.choice((3, 7, 8, 9, 10, 11, 12))
    wrong: tuple[dict[str, object], ...] = (*_WRONG_PARTS, {}, {"epoch": f"{producer}+-1"}, {"txn": False})
    parts = []
    for partition in partitions:
        other = source.choice(wrong)
        parts.append(transactional(history, producer, **{"partition": partition, "version": version, **other}))
    if source.random() < 0.15:
        parts[-1] |= of(history.transactional_id())
    first, *others = parts
    steps.append({**first, "also": others})
    return [*steps, *([ended(history, producer)] if source.random() < 0.5 else [])]


# -- odd acks and API versions --------------------------------------------------------------------------------------
def _odd_acks(history: History) -> list[Step]:
    """Acks that do not exist, in whatever batch; then the same batch as it should be."""
    source = history.random
    acks = source.choice(ODD_ACKS)
    if history.transactional and source.random() < 0.6:
        producer, partition = history.transactional_id(), history.partition()
        steps = [added(history, producer, partition)] if source.random() < 0.5 else []
        epoch = source.choice((0, 0, -1))
        sent = transactional(history, producer, partition=partition, **of(producer, epoch))
        steps += [{**sent, "acks": acks}, transactional(history, producer, partition=partition)]
        return [*steps, *([ended(history, producer)] if source.random() < 0.5 else [])]
    step = produce(history, history.writer(), seq=source.choice(("next", "next", "back:1", "next+1")))
    return [{**step, "acks": acks}, step]


def _odd_version(history: History) -> list[Step]:
    """Produce in any version, also those a release does not have; the same afterwards in one that it has."""
    source = history.random
    step = produce(history, history.writer(), seq=source.choice(("next", "next", "back:1", "next+1")))
    exact = {**step, "version": source.choice(FIRST_TO_LAST_PRODUCE), "exact": True}
    return [exact, step] if source.random() < 0.5 else [exact]


def _odd_coordinator_version(history: History) -> list[Step]:
    """A coordinator's request in a version that no release has, or that old ones lack."""
    source = history.random
    producer = history.transactional_id()
    asked: tuple[tuple[Step, tuple[int, ...]], ...] = (
        (init(history, producer), (5, 6, 99)),
        (added(history, producer, history.partition()), (3, 99)),
        (ended(history, producer), (4, 5, 99)),
    )
    step, versions = source.choice(asked)
    return [{**step, "version": source.choice(versions), "exact": True}]


# -- old formats ------------------------------------------------------------------------------------------------------
def _messages(history: History) -> list[Step]:
    """Messages of magic 0 or 1, one or several, in a wrapper or not, with keys or without."""
    source = history.random
    count = source.randint(1, 4)
    keys = [source.choice(("k1", "k2", None)) for _ in range(count)] if source.random() < 0.5 else ["k"] * count
    step: Step = {"op": "produce_raw", "kind": "messages", "magic": source.choice((0, 1, 1)), "keys": keys}
    step |= {"codec": source.choice((0, 0, 1)), "acks": source.choice((-1, 1)), "partition": history.partition()}
    return [{**step, "version": source.choice((0, 1, 2, 3, 7, 9)), "exact": True}]


def _batch_of_any_format(history: History) -> list[Step]:
    """A batch of magic 2 in a topic of an older format: with or without a producer, compressed or not."""
    source = history.random
    writer = history.writer() if source.random() < 0.6 else {"pid": -1, "epoch": -1}
    step = produce(history, writer, seq="next" if "pid" in writer and writer["pid"] != -1 else -1)
    step |= {"codec": source.choice((0, 1)), "acks": -1}
    if source.random() < 0.7:
        step["keys"] = ["k"] * step["count"]
    return [step]


# -- topics recreated -------------------------------------------------------------------------------------------------
def _recreate(history: History) -> list[Step]:
    """The topic is deleted and comes back empty; producers go on as if nothing had been, or begin anew."""
    source = history.random
    steps: list[Step] = [{"op": "recreate"}]
    for _ in range(source.randint(1, 3)):
        seq = source.choice(("next", "next", 0, "back:1"))
        if history.transactional and source.random() < 0.5:
            steps.append(transactional(history, history.transactional_id(), seq=seq))
        else:
            steps.append(produce(history, history.writer(), seq=seq))
    return steps


def _recreate_in_transaction(history: History) -> list[Step]:
    """The topic goes and comes back while a transaction has written to it, which then goes on or ends."""
    source = history.random
    producer, partition = history.transactional_id(), history.partition()
    steps = [init(history, producer), added(history, producer, partition)]
    steps += [transactional(history, producer, partition=partition) for _ in range(source.randint(0, 2))]
    steps.append({"op": "recreate"})
    if source.random() < 0.6:
        seq = source.choice(("next", 0))
        steps.append(transactional(history, producer, partition=partition, seq=seq))
    late: tuple[Callable[[], Step], ...] = (
        lambda: ended(history, producer),
        lambda: ended(history, producer),
        lambda: init(history, producer),
    )
    return [*steps, source.choice(late)(), {"op": "check_txn", "partition": partition}]


# -- feature levels ---------------------------------------------------------------------------------------------------
def _newest_transaction(history: History) -> list[Step]:
    """A transaction as clients of 4.0 and later make it; then the next one, the producer begun anew or not."""
    source = history.random
    producer = history.transactional_id()
    steps: list[Step] = [init(history, producer)] if source.random() < 0.3 else []
    for _ in range(source.randint(1, 2)):
        partition = history.partition()
        steps += [
            transactional(history, producer, partition=partition, version=12) for _ in range(source.randint(0, 2))
        ]
        version = source.choice((3, 5, 5))
        steps.append({**ended(history, producer), "version": version, **({"as": producer} if version == 5 else {})})
    return steps


_PLAIN: tuple[dict[str, str], ...] = ({},)
_COMPACTED: tuple[dict[str, str], ...] = ({"cleanup.policy": "compact"},)
_OLDER: tuple[dict[str, str], ...] = tuple({"message.format.version": each} for each in FORMATS)
_TOO_FEW_REPLICAS: tuple[dict[str, str], ...] = ({"min.insync.replicas": "2"},)
KINDS: dict[str, Kind] = {
    "rivals": Kind({_take_over: 8, _foreign: 6}, transactions=True, rivals=True),
    "partitions": Kind({_together: 12, _transaction_together: 12}, partitions=(2, 3), transactions=True),
    "requests": Kind(
        {_odd_acks: 12, _odd_version: 10, _odd_coordinator_version: 4},
        configs=_PLAIN * 5 + _TOO_FEW_REPLICAS,
        transactions=True,
    ),
    "formats": Kind({_messages: 14, _batch_of_any_format: 10}, configs=_PLAIN * 3 + _COMPACTED * 3 + _OLDER),
    "recreated": Kind({_recreate: 4, _recreate_in_transaction: 6}, transactions=True),
    "restarts": Kind(
        {},
        restarts=(
            ("clean", "kill9", "clean"),
            ("kill9", "clean", "kill9"),
            ("kill9", "kill9", "kill9"),
            ("clean", "clean", "kill9", "clean"),
        ),
    ),
}
_LEVELS = Kind({_newest_transaction: 12, _odd_acks: 2, _odd_version: 2}, transactions=True)
