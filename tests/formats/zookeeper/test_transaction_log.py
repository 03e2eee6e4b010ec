import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Damage, Reason, WireError
from kaudit.formats.zookeeper import records as operations
from kaudit.formats.zookeeper.records import Create, Delete, Failed, Multi, Other, SetData
from kaudit.formats.zookeeper.transaction_log import (
    MAX_KEPT_VALUE,
    Transaction,
    ZnodeEvent,
    decoded,
    read_transactions,
    scan_log,
)
from tests.formats.zookeeper import zookeeper_bytes as zk

ZNODE = "/latest_producer_id_block"


def read(data: bytes) -> list[Transaction | Damage]:
    return list(read_transactions(memoryview(data)))


def records(*transactions: bytes) -> list[object]:
    return [decoded(item) for item in read(zk.log(*transactions)) if isinstance(item, Transaction)]


def test_every_record_type_is_decoded():
    acl = zk.string("/a") + zk.acl() + struct.pack(">i", 4)
    container = zk.string("/c") + zk.buffer(None) + zk.acl() + struct.pack(">i", 7)
    bodies = [
        (1, zk.create("/a", b"x"), Create("/a", b"x")),
        (15, zk.create("/b", None), Create("/b", None)),
        (19, container, Create("/c", None)),
        (21, container + struct.pack(">q", 60_000), Create("/c", None)),
        (2, zk.string("/a"), Delete("/a")),
        (20, zk.string("/c"), Delete("/c")),
        (5, zk.set_data("/a", b"y", 3), SetData("/a", b"y", 3)),
        (16, zk.set_data("/zookeeper/config", b"s", 1), SetData("/zookeeper/config", b"s", 1)),
        (7, acl, Other(7)),
        (13, zk.string("/a") + struct.pack(">i", 3), Other(13)),
        (-10, struct.pack(">i", 6000), Other(-10)),
        (-11, b"", Other(-11)),
        (-11, struct.pack(">i", 2) + zk.string("/e/1") + zk.string("/e/2"), Other(-11)),
        (-1, struct.pack(">i", -103), Failed(-103)),
        (77, b"\x01\x02", Other(77)),
        (
            14,
            zk.multi((13, zk.string("/a") + struct.pack(">i", 3)), (5, zk.set_data("/a", b"z", 4))),
            Multi((Other(13), SetData("/a", b"z", 4))),
        ),
    ]
    found = records(*(zk.transaction(9, type_, body) for type_, body, _ in bodies))
    assert found == [expected for _, _, expected in bodies]


def test_a_digest_behind_the_record_is_no_damage():
    digest = struct.pack(">iq", 2, 0x123456789)
    assert records(zk.transaction(1, 5, zk.set_data("/a", b"y", 3) + digest)) == [SetData("/a", b"y", 3)]


def test_a_multi_with_a_refused_member_changes_nothing():
    refused = zk.multi((5, zk.set_data(ZNODE, b"1", 1)), (-1, struct.pack(">i", -103)))
    done = zk.multi((13, zk.string(ZNODE) + struct.pack(">i", 0)), (5, zk.set_data(ZNODE, b"2", 1)))
    scan = scan_log(memoryview(zk.log(zk.transaction(1, 14, refused), zk.transaction(2, 14, done))), ZNODE)
    assert [(change.zxid, change.version, change.data) for change in scan.changes] == [(2, 1, b"2")]
    assert (scan.first_zxid, scan.last_zxid, scan.damages) == (1, 2, [])


def test_nested_multis_end_at_a_depth():
    inner = zk.multi((5, zk.set_data(ZNODE, b"1", 1)))
    for _ in range(3):
        inner = zk.multi((14, inner))
    scan = scan_log(memoryview(zk.log(zk.transaction(1, 14, inner))), ZNODE)
    assert [(damage.reason, damage.position) for damage in scan.damages] == [(Reason.LIMIT, 16)]
    assert scan.changes == []


def test_a_chroot_and_a_long_value_are_kept_within_bounds():
    long = bytes(10_000)
    log = zk.log(
        zk.transaction(1, 1, zk.create("/kafka" + ZNODE, long)),
        zk.transaction(2, 5, zk.set_data("/other", ZNODE.encode(), 1)),
        zk.transaction(3, 2, zk.string("/kafka" + ZNODE)),
    )
    scan = scan_log(memoryview(log), ZNODE)
    assert [(change.path, change.event, change.version) for change in scan.changes] == [
        ("/kafka" + ZNODE, ZnodeEvent.CREATED, 0),
        ("/kafka" + ZNODE, ZnodeEvent.DELETED, None),
    ]
    assert len(scan.changes[0].data or b"") == MAX_KEPT_VALUE + 1


def three() -> tuple[bytes, list[int]]:
    """A log of three transactions and where each entry starts."""
    txns = [zk.transaction(zxid, 5, zk.set_data(ZNODE, b"v%d" % zxid, zxid)) for zxid in (1, 2, 3)]
    starts = [16]
    for txn in txns:
        starts.append(starts[-1] + len(zk.entry(txn)))
    return zk.log(*txns), starts


def zxids(items: list[Transaction | Damage]) -> list[int]:
    return [item.zxid for item in items if isinstance(item, Transaction)]


def damages(items: list[Transaction | Damage]) -> list[tuple[Reason, int, int]]:
    return [(item.reason, item.position, item.end - item.position) for item in items if isinstance(item, Damage)]


def test_a_wrong_checksum_costs_one_transaction():
    data, starts = three()
    broken = bytearray(data)
    broken[starts[1] + 40] ^= 0xFF
    items = read(bytes(broken))
    assert zxids(items) == [1, 3]
    assert damages(items) == [(Reason.CRC, starts[1], starts[2] - starts[1])]


@pytest.mark.parametrize("length", [5, 10_000, -7, 2**31 - 1])
def test_a_wrong_length_is_passed_by_finding_the_next_transaction(length: int):
    data, starts = three()
    broken = bytearray(data)
    struct.pack_into(">i", broken, starts[1] + 8, length)
    items = read(bytes(broken))
    assert zxids(items) == [1, 3]
    assert damages(items) == [(Reason.LENGTH, starts[1], starts[2] - starts[1])]


def test_a_torn_tail_in_a_preallocated_file():
    data, starts = three()
    torn = data[: starts[2] + 30] + bytes(len(data) - starts[2] - 30)
    items = read(torn)
    assert zxids(items) == [1, 2]
    assert damages(items) == [(Reason.TRUNCATED, starts[2], len(data) - starts[2])]


@pytest.mark.parametrize("left", [1, 11, 12, 40])
def test_a_truncated_file(left: int):
    data, starts = three()
    items = read(data[: starts[2] + left])
    assert zxids(items) == [1, 2]
    # A lone zero byte cannot be distinguished from the zeros that end the file.
    expected = [] if left == 1 else [(Reason.TRUNCATED, starts[2], left)]
    assert damages(items) == expected


def test_transactions_behind_a_zeroed_page_are_found():
    data, starts = three()
    zeroed = bytearray(data)
    zeroed[starts[1] : starts[2]] = bytes(starts[2] - starts[1])
    items = read(bytes(zeroed))
    assert zxids(items) == [1, 3]
    # The checksum of the third transaction begins with four zeros of its own.
    assert [kind for kind, _, _ in damages(items)] == [Reason.TRAILING]


@pytest.mark.parametrize(
    ("data", "position"), [(b"", 0), (b"ZKLG", 0), (b"ZKSN" + bytes(12), 0), (b"ZKLG" + struct.pack(">iq", 3, 0), 4)]
)
def test_a_file_that_is_no_log_is_refused(data: bytes, position: int):
    with pytest.raises(WireError) as caught:
        read(data)
    assert caught.value.position == position


def test_a_recorded_log_read_whole(evidence):
    data = (evidence.capture("zk-pid-blocks") / "zk" / "version-2" / "log.91").read_bytes()
    items = read(data)
    # Counted with a dozen lines of struct and zlib, apart from this reader.
    assert zxids(items) == list(range(0x91, 0xAE))
    assert damages(items) == []
    types = Counter(item.type for item in items if isinstance(item, Transaction))
    assert types == {-1: 10, 1: 2, 5: 14, 2: 1, -11: 1, -10: 1}


@given(
    edits=st.lists(st.tuples(st.integers(0, 4199), st.integers(0, 255)), max_size=12),
    cut=st.none() | st.integers(0, 4200),
)
def test_damaged_recordings_raise_nothing_else(evidence, edits: list[tuple[int, int]], cut: int | None):
    real = (evidence.capture("zk-pid-blocks") / "zk" / "version-2" / "log.91").read_bytes()[:4200]
    intact = {item.position: item.zxid for item in read(real) if isinstance(item, Transaction)}
    ends = dict(zip(intact, [*list(intact)[1:], 3537], strict=True))
    data = bytearray(real)
    for position, value in edits:
        data[position] = value
    changed = {position for position, _ in edits if data[position] != real[position]}
    data = data[:cut]
    if data[:8] != real[:8] or len(data) < 16:
        with pytest.raises(WireError):
            read(bytes(data))
        return
    items = read(bytes(data))
    found = {item.position: item.zxid for item in items if isinstance(item, Transaction)}
    untouched = {
        position: zxid
        for position, zxid in intact.items()
        if ends[position] <= len(data) and not changed & set(range(position, ends[position]))
    }
    assert untouched.items() <= found.items()
    for item in items:
        if isinstance(item, Damage):
            assert item.position >= 16
            assert item.end <= len(data)
        else:
            assert not isinstance(decoded(item), Exception)


@given(body=st.binary(max_size=80), type_=st.sampled_from([-11, -10, -1, 1, 2, 5, 7, 13, 14, 15, 16, 19, 20, 21, 99]))
def test_any_record_decodes_or_is_named(body: bytes, type_: int):
    for item in read(zk.log(zk.transaction(1, type_, body))):
        assert isinstance(item, Transaction)
        record = decoded(item)
        if isinstance(record, Damage):
            assert (record.position, record.end) == (16, 16 + len(zk.entry(zk.transaction(1, type_, body))))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (struct.pack(">i", 2) + b"\xff\xfe" + ZNODE.encode(), Reason.TEXT),
        (zk.string(ZNODE) + struct.pack(">i", -2), Reason.LENGTH),
        (zk.string(ZNODE) + struct.pack(">i", 1000) + b"v", Reason.TRUNCATED),
    ],
)
def test_a_record_that_does_not_decode_is_damage_and_the_next_is_read(body: bytes, reason: Reason):
    good = zk.transaction(2, 5, zk.set_data(ZNODE, b"v", 2))
    broken = zk.transaction(1, 5, body)
    scan = scan_log(memoryview(zk.log(broken, good)), ZNODE)
    assert [(damage.reason, damage.position, damage.end) for damage in scan.damages] == [
        (reason, 16, 16 + len(zk.entry(broken)))
    ]
    assert [change.zxid for change in scan.changes] == [2]


def test_null_strings_and_buffers_are_read_as_nothing():
    assert records(zk.transaction(1, 2, zk.string(None))) == [Delete("")]
    assert records(zk.transaction(1, 5, zk.set_data("/a", None, 1))) == [SetData("/a", None, 1)]


def test_operations_have_zookeepers_numbers():
    """ZooDefs.OpCode."""
    numbers = {name: value for name, value in vars(operations).items() if name.startswith("OP_")}
    assert numbers == {
        "OP_CREATE": 1,
        "OP_DELETE": 2,
        "OP_SET_DATA": 5,
        "OP_MULTI": 14,
        "OP_CREATE2": 15,
        "OP_RECONFIG": 16,
        "OP_CREATE_CONTAINER": 19,
        "OP_DELETE_CONTAINER": 20,
        "OP_CREATE_TTL": 21,
        "OP_ERROR": -1,
    }


def test_a_file_cut_anywhere_in_its_last_transaction_keeps_those_before():
    data, starts = three()
    # a checksum begins with four zeros, which are those that end the file
    for end in range(starts[2] + 5, starts[3]):
        items = read(data[:end])
        assert zxids(items) == [1, 2]
        assert damages(items) == [(Reason.TRUNCATED, starts[2], end - starts[2])], end
    assert zxids(read(data)) == [1, 2, 3]


def test_a_scan_says_which_transactions_a_log_holds():
    data, starts = three()
    scan = scan_log(memoryview(data), ZNODE)
    assert (scan.first_zxid, scan.last_zxid) == (1, 3)
    scan = scan_log(memoryview(data[: starts[0]]), ZNODE)
    assert (scan.first_zxid, scan.last_zxid) == (None, None)
