"""What each source says of blocks, field by field, and how histories of several sources become one timeline."""

import pytest

from kaudit.broker.producer_ids.allocation_faults import Burn, BurnMeter
from kaudit.broker.producer_ids.allocation_rules import Step, StepKind
from kaudit.broker.producer_ids.allocators import Controller, ControllerBroker, Grant, Znode
from kaudit.broker.producer_ids.block_history import (
    BlockHistory,
    ProducerIdsRecord,
    combine,
    from_lines,
    from_records,
    from_znode,
)
from kaudit.formats.zookeeper.pid_block import AnswerLine, PidBlockLine, ZnodeLine
from kaudit.formats.zookeeper.transaction_log import ZnodeChange, ZnodeEvent
from kaudit.model.producer_ids import BlockEntry, EntryKind

PATH = "/latest_producer_id_block"
MAX = 2**63 - 1


def change(event, data, version=4):
    return ZnodeChange(PATH, event, 77, 9000, version, data, 120), "log.5"


@pytest.mark.parametrize(
    ("changed", "kind", "block"),
    [
        (change(ZnodeEvent.SET, Grant(3, 5000, 5999).value()), EntryKind.GRANTED, (5000, 5999, 3)),
        (change(ZnodeEvent.SET, Grant(-1, 6000, 6999).value()), EntryKind.RESERVED, (6000, 6999, -1)),
        (change(ZnodeEvent.CREATED, b""), EntryKind.EMPTY, (None, None, None)),
        (change(ZnodeEvent.SNAPSHOT, None), EntryKind.EMPTY, (None, None, None)),
        (change(ZnodeEvent.DELETED, None, None), EntryKind.DELETED, (None, None, None)),
        (change(ZnodeEvent.SET, b"x"), EntryKind.UNREADABLE, (None, None, None)),
    ],
)
def test_a_change_of_the_znode(changed, kind, block):
    history = from_znode([changed], 9500)
    (entry,) = history.entries
    assert history.observed_until_ms == 9500
    assert (entry.kind, (entry.start, entry.end, entry.broker)) == (kind, block)
    known = (entry.source, entry.zxid, entry.at_ms, entry.position, entry.version)
    assert known == ("log.5", 77, 9000, 120, changed[0].version)
    assert (entry.broker_epoch, entry.offset, bool(entry.oddities)) == (None, None, kind is EntryKind.UNREADABLE)


def test_records_of_the_metadata_log():
    """A ProducerIdsRecord names the first id behind the block; a migration writes one with the broker epoch -1."""
    history = from_records(
        [ProducerIdsRecord(8, 900, 2, 41, 3000), ProducerIdsRecord(9, None, -1, -1, 4000)], "00.log", 950
    )
    assert history == BlockHistory(
        (
            BlockEntry(EntryKind.GRANTED, "00.log", 2000, 2999, 2, 41, offset=8, at_ms=900),
            BlockEntry(EntryKind.RESERVED, "00.log", 4000, 4999, -1, -1, offset=9),
        ),
        950,
    )


def test_saved_lines_of_which_some_saw_the_same():
    value = Grant(1, 1000, 1999).value()
    lines: list[PidBlockLine] = [
        AnswerLine(1, 0, 1000, 5, 700),
        AnswerLine(2, 0, 1000, 5, 800),
        AnswerLine(3, 0, 1000, 6, 800),
        ZnodeLine(4, value, 2, 50, 900),
        ZnodeLine(5, value, 2, 50, 950),
        ZnodeLine(6, value, 3, 50, 950),
        ZnodeLine(7, None, 3, 51),
    ]
    history, bad = from_lines(lines, "saved")
    assert bad == []
    assert [(entry.source, entry.start, entry.end, entry.broker) for entry in history.entries] == [
        ("saved:1", 0, 999, 5),
        ("saved:3", 0, 999, 6),
        ("saved:4", 1000, 1999, 1),
        ("saved:6", 1000, 1999, 1),
        ("saved:7", None, None, None),
    ]
    assert [entry.at_ms for entry in history.entries] == [700, 800, 900, 950, None]


def entry(start, **known):
    return BlockEntry(EntryKind.GRANTED, f"at {start}", start, start + 999, **known)


@pytest.mark.parametrize(
    ("histories", "starts"),
    [
        ([[entry(0, zxid=5, at_ms=90), entry(1000, zxid=6, at_ms=10)]], [0, 1000]),  # zxids, not clocks
        ([[entry(1000, zxid=6)], [entry(0, zxid=5)]], [0, 1000]),
        ([[entry(0, zxid=5)], [entry(0, zxid=5)]], [0]),  # one write in two files
        ([[entry(1000, offset=6)], [entry(0, offset=5)], [entry(1000, offset=6)]], [0, 1000]),
        (
            [[entry(0, zxid=5, at_ms=10), entry(2000, zxid=6, at_ms=30)], [entry(1000, offset=3, at_ms=20)]],
            [0, 1000, 2000],
        ),
        ([[entry(0, zxid=5, at_ms=20)], [entry(1000, offset=3, at_ms=20)]], [0, 1000]),  # ZooKeeper was before KRaft
        ([[entry(0, zxid=5, at_ms=10), entry(2000, zxid=6, at_ms=30)], [entry(1000, at_ms=20)]], [0, 1000, 2000]),
        ([[entry(0, zxid=5, at_ms=10)], [entry(0, at_ms=90)]], [0]),  # known with its zxid
        ([[entry(0, zxid=5, version=1), entry(2000, zxid=6, version=3)], [entry(1000, version=2)]], [0, 1000, 2000]),
        ([[entry(0, zxid=5, version=1), entry(2000, zxid=6, version=3)], [entry(1000)]], [0, 2000, 1000]),
    ],
)
def test_histories_become_one_timeline(histories, starts):
    combined = combine([BlockHistory(tuple(entries)) for entries in histories])
    assert [each.start for each in combined.entries] == starts
    assert combined.observed_until_ms is None


def test_the_latest_time_of_observation_counts():
    assert (
        combine([BlockHistory((), 5), BlockHistory(), BlockHistory((), 9), BlockHistory((), 7)]).observed_until_ms == 9
    )
    assert combine([]) == BlockHistory()


def test_the_rate_at_which_blocks_are_granted():
    meter = BurnMeter()
    day = 86_400_000
    assert meter.read() is None
    steps = [
        (StepKind.BEGINS_LATER, entry(MAX - 5_000_999, at_ms=1000)),
        (StepKind.NEXT, entry(MAX - 4_000_999, at_ms=None)),
        (StepKind.NEXT, entry(MAX - 3_000_999, at_ms=1000)),
        (StepKind.JUMPED, entry(MAX - 2_000_999, at_ms=1000 + day)),
        (StepKind.NEXT, entry(MAX - 1_000_999, at_ms=1000 + 2 * day)),
        (StepKind.NO_BLOCK, BlockEntry(EntryKind.DELETED, "x", at_ms=1000 + 9 * day)),
    ]
    read = []
    for kind, found in steps:
        meter.note(Step(found, kind))
        read.append(meter.read())
    first = Burn(1, 1000, 1000 + day, 2_000_000)
    assert read == [
        None,
        None,
        None,
        first,
        Burn(2, 1000, 1000 + 2 * day, 1_000_000),
        Burn(2, 1000, 1000 + 2 * day, 1_000_000),
    ]
    assert (first.blocks_per_day, first.days_left) == (1.0, 2000.0)


def test_a_controllers_record_names_broker_and_epoch():
    controller = Controller()
    broker = ControllerBroker(4, 17, controller)
    assert broker.generate() is None
    controller.commit()
    assert broker.receive() == Grant(4, 0, 999)
    assert controller.committed == [ProducerIdsRecord(0, None, 4, 17, 1000)]
    ids = [broker.generate() for _ in range(1000)]
    assert ids == list(range(1000))
    controller.commit()
    assert controller.committed[1:] == [ProducerIdsRecord(1, None, 4, 17, 2000)]  # asked for at id 900
    assert broker.generate() is None  # the answer has not arrived
    assert broker.receive() == Grant(4, 1000, 1999)
    assert broker.receive() is None
    assert broker.generate() == 1000


def test_versions_of_a_znode_count_from_0():
    znode = Znode(version=None)
    assert not znode.update(b"x", None)
    assert znode.read() == (None, None)
    znode.set_by_hand(b"a")
    assert znode.read() == (b"a", 0)
    assert not znode.update(b"b", 1)
    assert znode.update(b"b", 0)
    assert znode.read() == (b"b", 1)
