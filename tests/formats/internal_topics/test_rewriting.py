"""Records of internal topics with other texts: with the same texts they are the recorded bytes, with others nothing of the old ones is left."""

import re
from pathlib import Path

import pytest

from kaudit.formats.errors import WireError
from kaudit.formats.internal_topics.rewriting import rewritten_control, rewritten_record
from kaudit.formats.internal_topics.transaction_state import parse_transaction_record
from kaudit.formats.log.control import parse_control
from kaudit.formats.log.records import read_records
from kaudit.model.internal_topics import CLUSTER, GROUPS, REMOTE_LOG, SHARE_STATE, TRANSACTIONS
from tests.formats.log.raw_batches import batches

RECORDED = Path(__file__).parents[2] / "data/internal-topics"
LOGS = {
    str(path.parent.relative_to(RECORDED)): path
    for path in sorted(RECORDED.rglob("00000000000000000000.log"))
    if re.match("__", path.parent.name)
}
SAMPLES = Path("samples")
LOGS["samples"] = SAMPLES / "hanging-transaction/__transaction_state-0/00000000000000000000.log"


class Same:
    """Texts stay."""

    def text(self, record: str, field: str, value: str) -> str:
        return value

    def content(self, value: bytes) -> bytes:
        return value


class Longer(Same):
    """All texts and bytes are replaced, and none has its length."""

    def __init__(self) -> None:
        self.replaced: set[bytes] = set()

    def text(self, record: str, field: str, value: str) -> str:
        self.replaced.add(value.encode())
        return "Z" * (len(value) + 200)

    def content(self, value: bytes) -> bytes:
        return b"Z" * (len(value) + 200)


def records_of(name):
    raw = LOGS[name].read_bytes()
    return [(bool(batch[22] & 0x20), record) for _, batch in batches(raw) for record in read_records(batch)]


def rewritten(topic, is_control, record, change):
    if not is_control:
        return rewritten_record(topic, record.key, record.value, change)
    number = parse_control(record.key, record.value).type_id
    return record.key, record.value if number < 2 else rewritten_control(number, record.value, change)


@pytest.mark.parametrize("name", LOGS)
def test_the_same_texts_give_the_recorded_bytes(name):
    topic = LOGS[name].parent.name.rpartition("-")[0]
    assert topic in {GROUPS, SHARE_STATE, REMOTE_LOG, CLUSTER, TRANSACTIONS}
    records = records_of(name)
    assert records
    for is_control, record in records:
        assert rewritten(topic, is_control, record, Same()) == (record.key, record.value)


@pytest.mark.parametrize("name", LOGS)
def test_nothing_of_a_text_is_left_and_all_numbers_are(name):
    topic = LOGS[name].parent.name.rpartition("-")[0]
    for is_control, record in records_of(name):
        change = Longer()
        key, value = rewritten(topic, is_control, record, change)
        again = rewritten(topic, is_control, record._replace(key=key, value=value), Longer())
        assert [part and len(part) > 0 for part in again] == [part and len(part) > 0 for part in (key, value)]
        assert not [text for text in change.replaced if len(text) > 3 and text in (key or b"") + (value or b"")]
        if topic == TRANSACTIONS and record.value is not None:
            old, new = (parse_transaction_record(*pair).value for pair in ((record.key, record.value), (key, value)))
            assert old is not None
            assert new is not None
            assert (old.producer_id, old.producer_epoch, old.status_id, old.start_timestamp) == (
                new.producer_id,
                new.producer_epoch,
                new.status_id,
                new.start_timestamp,
            )


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        (TRANSACTIONS, None, b"\0\0"),
        (TRANSACTIONS, b"\0\0\0\1a", b"\0\7"),
        (GROUPS, b"\0\1\0", None),
        (GROUPS, b"\0\x63\0\1a", None),
        (CLUSTER, None, b"\1\2"),
        (REMOTE_LOG, None, None),
        ("orders", b"\0\0", b"\0\0"),
    ],
    ids=["no key", "version", "cut", "type", "cut value", "no value", "topic"],
)
def test_what_is_not_known_is_refused(topic, key, value):
    with pytest.raises(WireError):
        rewritten_record(topic, key, value, Same())
