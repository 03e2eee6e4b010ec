import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import WireError
from kaudit.formats.zookeeper.pid_block import (
    AnswerLine,
    BadLine,
    PidBlockValue,
    ZnodeLine,
    parse_cluster_id,
    parse_pid_block,
    parse_pid_block_lines,
)
from kaudit.formats.zookeeper.transaction_log import MAX_KEPT_VALUE


def test_a_value_as_brokers_write_it():
    raw = b'{"version":1,"broker":35,"block_start":"0","block_end":"999"}'
    assert parse_pid_block(raw) == PidBlockValue(35, 0, 999, 1)


def test_what_is_odd_is_said():
    def oddities(**fields):
        return parse_pid_block(
            json.dumps({"broker": 9, "block_start": "3", "block_end": "4", **fields}).encode()
        ).oddities

    assert oddities(version=1) == ()
    assert oddities(version=2) == ("the value has version 2, brokers write 1",)
    assert oddities() == oddities(version="1") == oddities(version=True) == ("the value has no integer field version",)
    assert oddities(version=1, block_end=4) == ("block_end is a number, brokers read and write a string",)


@pytest.mark.parametrize(
    ("raw", "oddities"),
    [
        ('{"version":2,"broker":99,"block_start":"777000","block_end":"777999"}', 1),
        ('{"broker":99,"block_start":"777000","block_end":"777999"}', 1),
        ('{"version":1,"broker":99,"block_start":777000,"block_end":777999}', 2),
    ],
)
def test_what_no_broker_writes_is_read_and_named(raw: str, oddities: int):
    value = parse_pid_block(raw.encode())
    assert (value.broker, value.start, value.end, len(value.oddities)) == (99, 777000, 777999, oddities)


@pytest.mark.parametrize(
    "raw",
    [
        b"garbage",
        b"",
        b"\xff\xfe",
        b"[1]",
        b"1",
        b'{"version":1}',
        b'{"version":1,"broker":"1","block_start":"0","block_end":"999"}',
        b'{"version":1,"broker":true,"block_start":"0","block_end":"999"}',
        b'{"version":1,"broker":1,"block_start":"0"}',
        b'{"version":1,"broker":1,"block_start":"x","block_end":"999"}',
        b'{"version":1,"broker":1,"block_start":"0","block_end":"9223372036854775808"}',
        b'{"version":1,"broker":4294967296,"block_start":"0","block_end":"999"}',
        '{"version":1,"broker":1,"block_start":"\u0660","block_end":"999"}'.encode(),  # a digit to Python, not in ASCII
        b'{"version":1,"broker":1,"block_start":"%s","block_end":"999"}' % (b"0" * 65),
        b'{"version":1,"broker":1,"block_start":"+","block_end":"999"}',
        b'{"version":1,"broker":1,"block_start":"+x1","block_end":"999"}',
        b'{"version":1,"broker":1,"block_start":"--1","block_end":"999"}',
        b'{"version":1,"broker":1,"block_start":"1.0","block_end":"999"}',
        b'{"version":1,"broker":1,"block_start":null,"block_end":"999"}',
        b"[" * 4000,
        b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}' + b" " * 4096,
    ],
)
def test_what_no_broker_could_continue_from_is_refused(raw: bytes):
    with pytest.raises(WireError):
        parse_pid_block(raw)


@given(
    st.binary(max_size=200)
    | st.from_regex(r'\{"broker":-?\d{1,12},"block_start":"[-+]?\d{1,70}","block_end":"\d{0,30}"\}').map(str.encode)
)
def test_any_value_parses_within_its_types_or_is_refused(raw: bytes):
    try:
        value = parse_pid_block(raw)
    except WireError:
        return
    assert -(2**63) <= value.start < 2**63
    assert -(2**63) <= value.end < 2**63
    assert -(2**31) <= value.broker < 2**31


def test_saved_lines_of_every_form():
    value = '{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}'
    lines = [
        value,
        json.dumps({"t": 1795241298.25, "data": value, "version": 2, "mzxid": 46, "mtime": 1795241297869}),
        json.dumps({"event": "x", "at_ms": 5, "znode": {"data": value, "version": 3, "mzxid": 50}}),
        json.dumps({"event": "x", "at_ms": 5, "znode": {"missing": "NoNodeError"}}),
        json.dumps({"producerIdStart": 5000, "producerIdLen": 1000, "broker": 1, "at_ms": 9}),
        "",
        value,
        "cZxid = 0x10",
        "mZxid = 0x2e",
        "dataVersion = 7",
        "hello",
        '{"other": 1}',
        '{"data": 5}',
        "[1]",
        json.dumps({"data": None, "version": 0}),
    ]
    raw = value.encode()
    assert list(parse_pid_block_lines(lines)) == [
        ZnodeLine(1, raw),
        ZnodeLine(2, raw, 2, 46, 1795241297869),
        ZnodeLine(3, raw, 3, 50, 5, read_ms=5),
        AnswerLine(5, 5000, 1000, 1, 9),
        ZnodeLine(7, raw, 7, 46),
        BadLine(11, "neither JSON nor a line of zkCli's stat"),
        BadLine(12, "neither a znode's value nor an answer to AllocateProducerIds"),
        BadLine(13, "data is neither a string nor null"),
        BadLine(14, "not a JSON object"),
        ZnodeLine(15, None, 0),
    ]


@given(
    st.lists(
        st.text(max_size=40) | st.sampled_from(['{"data":"x"}', "mZxid = 0xfffffffffffffffff", '{"t":1e400,"data":""}'])
    )
)
def test_any_lines_are_parsed_or_named(lines: list[str]):
    numbers = [line.number for line in parse_pid_block_lines(lines)]
    assert numbers == sorted(set(numbers))
    assert all(1 <= number <= len(lines) for number in numbers)


@pytest.mark.parametrize(
    ("fields", "parsed"),
    [
        ({"producer_id_start": 5000, "producer_id_len": 1000}, AnswerLine(1, 5000, 1000)),
        ({"producerIdStart": 5000, "producerIdLen": 1000, "broker": 3}, AnswerLine(1, 5000, 1000, 3)),
        ({"producer_id_start": 0, "producerIdLen": 0, "broker": "3"}, AnswerLine(1, 0, 0)),
        ({"producer_id_start": 5, "producer_id_len": 1, "mtime": 7, "at_ms": 8}, AnswerLine(1, 5, 1, None, 7)),
        ({"producer_id_start": 5, "producer_id_len": 1, "at_ms": "8", "at": 9}, AnswerLine(1, 5, 1, None, 9)),
        ({"producer_id_start": 5, "producer_id_len": 1, "t": 1.5}, AnswerLine(1, 5, 1, None, 1500)),
        ({"producer_id_start": 5, "producer_id_len": 1, "t": 2**53}, AnswerLine(1, 5, 1)),
        ({"producer_id_start": 5, "producer_id_len": 1, "t": 2**53 - 1}, AnswerLine(1, 5, 1, None, (2**53 - 1) * 1000)),
        ({"producer_id_start": "5000", "producer_id_len": 1000}, None),
        ({"producer_id_start": 5000, "producer_id_len": 1.0}, None),
        ({"producer_id_start": 5000, "producer_id_len": True}, None),
        ({"producer_id_start": 5000}, None),
        ({"producer_id_len": 1000}, None),
        ({}, None),
        ({"data": 5}, None),
        ({"data": None, "version": 4}, ZnodeLine(1, None, 4)),
        ({"data": "x", "version": True, "mzxid": "5"}, ZnodeLine(1, b"x")),
        ({"znode": {"missing": True}}, ()),
        ({"at_ms": 9, "znode": {"data": "x"}}, ZnodeLine(1, b"x", at_ms=9, read_ms=9)),
        ({"at_ms": 9, "znode": {"data": "x", "mtime": 0}}, ZnodeLine(1, b"x", at_ms=0, read_ms=9)),
        ({"at_ms": 9, "znode": 5, "data": "x"}, ZnodeLine(1, b"x", at_ms=9)),
        ({"at_ms": 9, "znode": {"block_end": 5}}, ZnodeLine(1, b'{"block_end": 5}', at_ms=9, read_ms=9)),
    ],
)
def test_a_saved_line(fields, parsed):
    found = list(parse_pid_block_lines([json.dumps(fields)]))
    if parsed is None:
        assert [type(line) for line in found] == [BadLine]
    else:
        assert found == ([parsed] if parsed else [])


def test_zkclis_stat_belongs_to_the_value_above_it():
    value, stat = (
        '{"block_end":"999"}',
        ["mZxid = 0x2e", "dataVersion = 4", "ctime = Mon", "dataVersion = x", "mZxid = 5"],
    )
    expected = ZnodeLine(2, value.encode(), 4, 0x2E)
    assert list(parse_pid_block_lines(["mZxid = 0x1", value, *stat, "", "mZxid = 0x2f"])) == [
        ZnodeLine(2, value.encode(), 4, 0x2F)
    ]
    assert list(parse_pid_block_lines([" ", value, *stat, value, "dataVersion = 5"])) == [
        expected,
        ZnodeLine(8, value.encode(), 5),
    ]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"version":"1","id":"kLc5ZrOkSuWQ3Jc6ek4IvA"}', "kLc5ZrOkSuWQ3Jc6ek4IvA"),
        (b'{"version":"1","id":""}', None),
        (b'{"version":"1","id":5}', None),
        (b'{"version":"1"}', None),
        (b'["id"]', None),
        (b"{", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
        (b"", None),
        (None, None),
    ],
)
def test_the_id_of_the_cluster_that_uses_the_ensemble(data, found):
    assert parse_cluster_id(data) == found


@pytest.mark.parametrize("name", ["block_start", "block_end"])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", None),
        ("+5", 5),
        ("0" * 63 + "7", 7),
        ("-" + "0" * 63 + "7", -7),
        ("0" * 64 + "7", None),
    ],
)
def test_ends_have_64_bits(name, text, value):
    """Java's Long.parseLong, for a number too."""
    fields = {"version": 1, "broker": 1, "block_start": "3", "block_end": "4"}
    for written, oddities in ((text, 0), (int(text), 1)):
        raw = json.dumps({**fields, name: written}).encode()
        if value is None and (oddities == 0 or abs(int(text)) > 2**62):
            with pytest.raises(WireError):
                parse_pid_block(raw)
        elif value is not None:
            found = parse_pid_block(raw)
            expected = {"block_start": 3, "block_end": 4, name: value}
            assert (found.start, found.end, len(found.oddities)) == (
                expected["block_start"],
                expected["block_end"],
                oddities,
            )


@pytest.mark.parametrize(
    ("broker", "good"), [(-(2**31), True), (-(2**31) - 1, False), (2**31 - 1, True), (2**31, False)]
)
def test_brokers_have_32_bits(broker, good):
    raw = json.dumps({"version": 1, "broker": broker, "block_start": "3", "block_end": "4"}).encode()
    if good:
        assert parse_pid_block(raw) == PidBlockValue(broker, 3, 4, 1)
    else:
        with pytest.raises(WireError, match="32-bit"):
            parse_pid_block(raw)


@pytest.mark.parametrize(("blanks", "good"), [(0, True), (1, False)])
def test_the_longest_value(blanks, good):
    raw = b'{"version":1,"broker":35,"block_start":"0","block_end":"999"}'
    raw = raw.ljust(MAX_KEPT_VALUE + blanks)
    if good:
        assert parse_pid_block(raw).end == 999
    else:
        with pytest.raises(WireError, match=f"a value of more than {MAX_KEPT_VALUE} bytes"):
            parse_pid_block(raw)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (None, None),
        (b"", None),
        (b"{", None),
        (b"[" * 100_000, None),
        (b"[]", None),
        (b"{}", None),
        (b'{"id":5}', None),
        (b'{"id":""}', None),
        (b'{"version":"1","id":"abc"}', "abc"),
    ],
)
def test_the_id_of_a_cluster(data, found):
    assert parse_cluster_id(data) == found
