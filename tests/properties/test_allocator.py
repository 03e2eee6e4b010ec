"""No race of brokers grants a block twice, and what keeps it so is the condition on the znode's version."""

from hypothesis import find, given, settings
from hypothesis import strategies as st

from kaudit.broker.producer_ids.allocation_rules import Coverage, StepKind, is_complete, replay
from kaudit.broker.producer_ids.allocators import Controller, ControllerBroker, Znode
from kaudit.broker.producer_ids.block_history import from_records, from_znode
from kaudit.formats.zookeeper.transaction_log import ZnodeChange, ZnodeEvent
from tests.broker.producer_ids.race_schedule import Race, race, seeded_choices

CHOICES = st.lists(st.integers(0, 17), max_size=120)


class Recorded(Znode):
    """A znode whose writes ZooKeeper would log."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[ZnodeChange, str]] = []

    def set_by_hand(self, data: bytes) -> None:
        super().set_by_hand(data)
        zxid = len(self.changes) + 1
        self.changes.append((ZnodeChange("/x", ZnodeEvent.SET, zxid, zxid, self.version, data, 0), "log.1"))


class Unconditional(Znode):
    """A znode whose condition on the version was removed."""

    def update(self, data: bytes, expected_version: int | None) -> bool:
        self.set_by_hand(data)
        return True


@given(CHOICES)
@settings(max_examples=400)
def test_brokers_racing_for_blocks_never_share_one(choices: list[int]):
    znode = Recorded()
    outcome = race(znode, 3, choices)
    assert outcome.granted_twice() == []
    # What ZooKeeper would have logged follows the rules without exception, and holds every grant.
    history = from_znode(znode.changes)
    assert {step.kind for step in replay(history)} <= {StepKind.FIRST, StepKind.NEXT}
    assert is_complete(replay(history)) or not znode.changes
    coverage = Coverage(replay(history))
    assert coverage.overlaps == []
    for grant in outcome.grants:
        (holder,) = coverage.holders(grant.start)
        assert (holder.broker, holder.start, holder.end) == (grant.broker, grant.start, grant.end)


def test_without_the_condition_one_block_goes_to_two_brokers():
    choices = find(CHOICES, lambda choices: bool(race(Unconditional(), 3, choices).granted_twice()))
    outcome = race(Unconditional(), 3, choices)
    ((one, two),) = outcome.granted_twice()
    assert (one.start, two.start) == (0, 0)
    assert one.broker != two.broker
    # The shortest interleaving there is: both read before either writes.
    first, second = sorted(line.split()[1] for line in outcome.lines if "has" in line)
    assert sorted(outcome.lines[:2]) == [
        f"broker {first} reads the block: answered",
        f"broker {second} reads the block: answered",
    ]
    assert sorted(outcome.lines[2:]) == sorted(
        line
        for broker in (first, second)
        for line in (f"broker {broker} writes 0-999: answered", f"broker {broker} has 0-999")
    )
    # The same choices against the condition are harmless.
    assert race(Znode(), 3, choices).granted_twice() == []


def test_the_broker_that_lost_the_answer_keeps_its_block():
    # One broker (0): reads, writes with the answer lost, writes again, looks: its own.
    outcome = race(Znode(), 1, [0, 1, 0, 0])
    assert outcome.lines == [
        "broker 0 reads the block: answered",
        "broker 0 writes 0-999: answer-lost",
        "broker 0 writes 0-999: answered",
        "broker 0 reads whether the write was its own: answered",
        "broker 0 has 0-999",
    ]


def test_a_late_write_of_a_dead_process_is_adopted_once():
    # Crash with the write on its way, the new process reads, the late write lands, its own write fails and is found.
    outcome = race(Znode(), 1, [0, 4, 0, 5, 0, 0])
    assert [(grant.start, grant.end) for grant in outcome.grants] == [(0, 999)]
    assert "late: broker 0 writes 0-999: written" in outcome.lines


def test_a_seed_gives_the_same_race_again():
    def run(seed: int) -> Race:
        return race(Znode(), 3, seeded_choices(seed, 2000))

    assert run(7).lines == run(7).lines
    assert run(7).lines != run(8).lines
    assert len(run(7).grants) > 50
    assert run(7).granted_twice() == []


@given(
    st.lists(
        st.tuples(st.sampled_from(["id", "ids", "receive", "lose", "commit", "fail", "restart"]), st.integers(0, 2))
    )
)
def test_brokers_of_a_controller_never_share_an_id(turns: list[tuple[str, int]]):
    controller = Controller()
    brokers = [ControllerBroker(number, 0, controller) for number in range(3)]
    given_out: list[int] = []
    for turn, number in turns:
        broker = brokers[number]
        match turn:
            case "id" | "ids":
                answers = [broker.generate() for _ in range(1 if turn == "id" else 950)]
                given_out += [answer for answer in answers if answer is not None]
            case "receive":
                broker.receive()
            case "lose":
                broker.lose_answer()
            case "commit":
                controller.commit()
            case "fail":
                controller.fail_over()
            case "restart":
                brokers[number] = ControllerBroker(number, 0, controller)
    assert len(given_out) == len(set(given_out))
    history = from_records(controller.committed, "metadata")
    assert all(step.kind in {StepKind.FIRST, StepKind.NEXT} for step in replay(history))
    coverage = Coverage(replay(history))
    assert all(coverage.holders(producer_id) for producer_id in given_out)
