"""What makes two records the same one: the grammar, the presets, JSON's values, and many at once against one by one."""

import json
from typing import Any

import pytest

from kaudit.errors import UsageError
from kaudit.formats.log.record_spans import BatchBytes
from kaudit.formats.payloads.json_values import PayloadError, canonical, decode_json
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from tests.formats import encoders


def _columns(text, *records, **header):
    """The records of one batch: (key, value, headers, timestamp delta) each."""
    encoded = [
        encoders.record(delta, time, key, value, headers) for delta, (key, value, headers, time) in enumerate(records)
    ]
    found, undecoded = IdentityReader(parse_identity(text)).columns(
        BatchBytes.of([encoders.batch(encoded, 100, **header)])
    )
    assert not undecoded
    return found


def _groups(text, *records, **header):
    """The records as letters: the same letter, the same record."""
    seen = [tuple(row) for row in _columns(text, *records, **header).identities.tolist()]
    firsts = list(dict.fromkeys(seen))
    return "".join("abcdefgh"[firsts.index(row)] for row in seen)


BASE = (b"k", b"v", [(b"h", b"1")], 5)
OTHERS: tuple[Any, ...] = (
    (b"l", b"v", [(b"h", b"1")], 5),
    (b"k", b"w", [(b"h", b"1")], 5),
    (b"k", b"v", [], 5),
    (b"k", b"v", BASE[2], 6),
)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("key,value,headers,timestamp", "aabcde"),
        ("key,value,headers", "aabcda"),
        ("headers,key", "aabaca"),
        ("key", "aabaaa"),
        ("value", "aaabaa"),
        ("timestamp", "aaaaab"),
        ("header:h,value", "aaabca"),
    ],
)
def test_only_the_named_parts_count(text, groups):
    assert _groups(text, BASE, BASE, *OTHERS) == groups


def test_null_is_not_empty():
    assert (
        _groups("key,value", (None, b"", [], 0), (b"", None, [], 0), (None, None, [], 0), (b"", b"", [], 0)) == "abcd"
    )


def test_a_record_without_the_part_is_compared_whole_and_counted():
    rows = [
        (b"k", b"v", [(b"id", b"1")], 0),
        (b"k", b"w", [(b"id", b"1")], 1),
        (b"k", b"v", [], 0),
        (b"k", b"v", [], 0),
    ]
    found = _columns("header:id", *rows)
    assert found.whole.tolist() == [False, False, True, True]
    assert _groups("header:id", *rows) == "aabb"
    assert _columns("key,value,headers,timestamp", *rows).identities[2:].tolist() == found.identities[2:].tolist()


def test_old_messages_are_the_records_they_were_upgraded_to():
    new = encoders.batch([encoders.record(0, 7, b"k", b"v")], 100)
    old = encoders.message(33, 1, b"k", b"v", timestamp=1_700_000_000_007)
    both, _ = IdentityReader().columns(BatchBytes.of([old, new]))
    assert both.identities[0].tolist() == both.identities[1].tolist()
    assert both.keys[0] == both.keys[1]
    assert both.offsets.tolist() == [33, 100]


def test_under_log_append_time_all_records_have_the_brokers_time():
    rows: list[Any] = [(b"k", b"v", [], 0), (b"k", b"v", [], 9)]
    assert _groups("key,timestamp", *rows, flags=encoders.LOG_APPEND_TIME) == "aa"


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("1", "1.0", True),
        ("10", "1e1", True),
        ("0.10", "0.1", True),
        ("-0", "0.0", True),
        ("9007199254740993", "9007199254740992", False),
        ("1e400", "1e401", False),
        ("123456789012345678901234567890", "1.23456789012345678901234567890e29", True),
        ('{"a": 1, "b": [2, null]}', '{"b":[2.0,null],"a":1}', True),
        ('"1"', "1", False),
        ("true", "1", False),
        ('["a","b"]', '["ab"]', False),
        ('{"a": {}}', '{"a": []}', False),
        ('"\\u00e9"', '"\u00e9"', True),
    ],
)
def test_json_is_compared_by_value(one, other, equal):
    assert (canonical(decode_json(one.encode())) == canonical(decode_json(other.encode()))) is equal


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000, b'"\\ud800"', b"NaN"], ids=str)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(PayloadError):
        decode_json(text[:40] if len(text) < 41 else text)


def _change(lsn, ts_ms, op="c", **source):
    return {"op": op, "ts_ms": ts_ms, "source": {"connector": "postgresql", "lsn": lsn, "ts_ms": ts_ms, **source}}


@pytest.mark.parametrize(
    ("text", "one", "other", "groups"),
    [
        ("value:id", {"id": 7, "at": 1}, {"id": 7.0, "at": 2}, "aa"),
        ("value:a.b.1", {"a": {"b": [0, "x"]}}, {"a": {"b": [1, "x"]}}, "aa"),
        ("value:a\\.b", {"a.b": 1}, {"a": {"b": 1}, "a.b": 1}, "aa"),
        ("debezium", _change(5, 1), _change(5, 2), "aa"),
        ("debezium", {"schema": {}, "payload": _change(5, 1)}, {"payload": _change(5, 2)}, "aa"),
        ("debezium", _change(5, 1), _change(6, 1), "ab"),
        ("debezium", _change(5, 1, "r"), _change(5, 1, "u"), "ab"),
        ("debezium", _change(5, 1, connector="new", slot=3), _change(5, 2, connector="new", slot=3), "aa"),
        ("debezium", _change(5, 1, connector="new", slot=3), _change(5, 1, connector="new", slot=4), "ab"),
        ("cloudevents", {"id": "1", "source": "/s", "specversion": "1.0", "time": 1}, {"id": "1", "source": "/s", "specversion": "1.0"}, "aa"),
    ],
)  # fmt: skip
def test_parts_of_json_values(text, one, other, groups):
    rows: list[Any] = [(b"k", json.dumps(value).encode(), [], time) for time, value in enumerate((one, other))]
    assert _groups(text, *rows) == groups
    assert not _columns(text, *rows).whole.any()


def test_the_outbox_event_router_names_events_in_a_header():
    rows = [(b"k", b"%d" % time, [(b"id", b"e-1")], time) for time in range(2)]
    assert _groups("outbox", *rows) == "aa"


def test_cloud_events_in_binary_mode_are_named_by_headers():
    rows = [(b"k", b"%d" % time, [(b"ce_id", b"1"), (b"ce_source", b"/s")], time) for time in range(2)]
    assert _groups("cloudevents", *rows) == "aa"


def test_confluents_magic_byte_and_schema_id_are_passed_over_in_json():
    rows: list[Any] = [(None, b"\0\0\0\0%c" % schema + b'{"id":1}', [], schema) for schema in (1, 2)]
    assert _groups("value:id", *rows) == "aa"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kye", "did you mean key"),
        ("value:", "no such part"),
        ("value:a..b", "no such part"),
        ("header", "did you mean headers"),
        ("key,key", "named twice"),
        ("", "no such part"),
        ("offset", "no such part"),
    ],
)
def test_other_identities_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_identity(text)
