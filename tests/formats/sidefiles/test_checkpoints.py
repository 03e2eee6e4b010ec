import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaudit.formats.errors import Reason, WireError
from kaudit.formats.sidefiles.checkpoints import (
    MetaProperties,
    PartitionMetadata,
    PartitionOffset,
    meta_properties,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from kaudit.model.leader_epochs import EpochEntry
from kaudit.source.file_kinds import OFFSET_CHECKPOINT_NAMES
from tests.formats.archives import files
from tests.formats.fuzz import damaged, outcome, quick

topics = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=12)
offsets = st.builds(PartitionOffset, topics, st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
epochs = st.builds(EpochEntry, st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))


def _lines(*lines):
    return "".join(f"{line}\n" for line in lines).encode()


@given(st.lists(offsets, max_size=8))
@quick
def test_offset_checkpoints_round_trip(rows):
    data = _lines(0, len(rows), *(f"{row.topic} {row.partition} {row.offset}" for row in rows))
    parsed = parse_offset_checkpoint(data)
    assert (parsed.rows, parsed.damage) == (tuple(rows), ())


@given(st.lists(epochs, max_size=8))
@quick
def test_leader_epoch_checkpoints_round_trip(rows):
    parsed = parse_leader_epoch_checkpoint(_lines(0, len(rows), *(f"{row.epoch} {row.start_offset}" for row in rows)))
    assert (parsed.rows, parsed.damage) == (tuple(rows), ())


def test_a_file_without_bytes_is_how_brokers_create_them():
    assert parse_offset_checkpoint(b"").damage == parse_leader_epoch_checkpoint(b"").damage == ()


@pytest.mark.parametrize(
    ("data", "rows", "reasons"),
    [
        (b"1\n1\nt 0 5\n", 0, [Reason.VERSION]),
        (b"zero\n1\nt 0 5\n", 0, [Reason.VERSION]),
        (b"0\n", 0, [Reason.TRUNCATED]),
        (b"0\n2\nt 0 5\n", 1, [Reason.COUNT]),
        (b"0\n1\nt 0 5\nu 0 6\n", 2, [Reason.COUNT]),
        (b"0\nx\nt 0 5\n", 1, [Reason.TEXT]),
        (b"0\n3\nt 0 5\nt 5\nu 1 6\n", 2, [Reason.TEXT]),
        (b"0\n1\nt 0 99999999999999999999\n", 0, [Reason.TEXT]),
        (b"0\n1\nt 0 9223372036854775808\n", 0, [Reason.VALUE]),
        (b"0\n1\nt 0 -9223372036854775809\n", 0, [Reason.VALUE]),
        (b"0\n2\nt 0 9223372036854775807\nt 1 -9223372036854775808\n", 2, []),
        (b"0\n1\nt 2147483648 0\n", 0, [Reason.VALUE]),
        (b"0\n1\nt -2147483649 0\n", 0, [Reason.VALUE]),
        (b"0\n2\nt 2147483647 0\nt -2147483648 0\n", 2, []),
        (b"0\n1\nt 0 1_0\n", 0, [Reason.TEXT]),
        (b"0\n1\n\xff\xfe 0 1\n", 0, [Reason.TEXT]),
        (b"0\r\n1\r\nt 0 5\r\n", 1, []),
        (bytes(40), 0, [Reason.VERSION]),
    ],
)
def test_damage_is_reported_and_the_rest_is_read(data, rows, reasons):
    parsed = parse_offset_checkpoint(data)
    assert len(parsed.rows) == rows
    assert [damage.reason for damage in parsed.damage] == reasons


def test_damage_says_where():
    data = b"0\n3\nt 0 5\nt 5\nu 1 6\n"
    (damage,) = parse_offset_checkpoint(data).damage
    assert data[damage.position : damage.end] == b"t 5"


def test_the_labelled_garbage(evidence):
    path = evidence.capture("torn-writes") / "artificial/leader-epoch-garbage/explosion-0/leader-epoch-checkpoint"
    parsed = parse_leader_epoch_checkpoint(path.read_bytes())
    assert parsed.rows == (EpochEntry(0, 0),)
    assert [damage.reason for damage in parsed.damage] == [Reason.COUNT]


def test_every_checkpoint_of_real_brokers(evidence):
    """Read again by hand: first line 0, second the number of lines that follow, each three (two) words."""
    read = 0
    for path in files(evidence, "*-checkpoint", without=["leader-epoch-garbage"]):
        words = [line.split(" ") for line in path.read_text().splitlines()]
        if path.name in OFFSET_CHECKPOINT_NAMES:
            offsets = parse_offset_checkpoint(path.read_bytes())
            damage = offsets.damage
            rows = [[row.topic, str(row.partition), str(row.offset)] for row in offsets.rows]
        else:
            epochs = parse_leader_epoch_checkpoint(path.read_bytes())
            damage = epochs.damage
            rows = [[str(row.epoch), str(row.start_offset)] for row in epochs.rows]
        assert (damage, rows) == ((), words[2:]), path
        read += 1
    assert read > 1100


def test_meta_properties_of_real_brokers(evidence):
    versions = set()
    for path in files(evidence, "meta.properties"):
        parsed = parse_meta_properties(path.read_bytes())
        text = path.read_text()
        assert [str(parsed.node_id)] == re.findall(r"^(?:node|broker)\.id=(\d+)$", text, re.MULTILINE)
        cluster = re.search(r"^cluster\.id=(.*)$", text, re.MULTILINE)
        assert parsed.cluster_id == (cluster and cluster.group(1))
        assert parsed.others == ()
        versions.add(parsed.version)
    assert versions == {0, 1}


def test_properties_are_java_properties():
    data = (
        "# comment\n! too\n\nversion = 1\nnode.id:7\nbroker.id=8\ncluster.id\tab\\:c\\u00e9\\ud83d\\ude00\\\n   d\\\\\n"
        "directory.id=x\nodd\\ key=\nodd=a=b\n"
    ).encode("latin-1")
    assert parse_meta_properties(data) == MetaProperties(
        1, 7, "ab:cé😀d\\", "x", (("broker.id", "8"), ("odd", "a=b"), ("odd key", ""))
    )
    assert parse_meta_properties(b"version=0\nbroker.id=-1\nnode.id=4").node_id == -1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TEXT),
        (b"broker.id=1\n", Reason.TEXT),
        (b"version=2\nnode.id=1\n", Reason.VERSION),
        (b"version=one\n", Reason.TEXT),
        (b"version=1\nnode.id=one\n", Reason.TEXT),
        (b"version=1\nnode.id=2147483648\n", Reason.VALUE),
        (b"version=1\ncluster.id=\\u12\n", Reason.TEXT),
        (b"version=1\ncluster.id=\\ud83d\n", Reason.TEXT),
    ],
)
def test_meta_properties_nobody_can_use(data, reason):
    with pytest.raises(WireError) as caught:
        parse_meta_properties(data)
    assert caught.value.reason is reason


def test_partition_metadata_of_real_brokers(evidence):
    ids = set()
    for path in files(evidence, "partition.metadata"):
        parsed = parse_partition_metadata(path.read_bytes())
        assert parsed == PartitionMetadata(0, path.read_text().split()[-1])
        ids.add(parsed.topic_id)
    assert len(ids) > 100


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED),
        (b"version: 0", Reason.TRUNCATED),
        (b"version: 1\ntopic_id: foB6ZpjfTtyrPW3p9fXYZQ", Reason.VERSION),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", Reason.VALUE),
        (b"version: 0\ntopic_id: foB6Zpj", Reason.VALUE),
        (b"version: 0\ntopic_id: foB6ZpjfTtyrPW3p9fXYZ+", Reason.VALUE),
        (b"version: 0\nversion: 0\n", Reason.TEXT),
        (bytes(43), Reason.TEXT),
        (b"version: 0\ntopic_id: foB6ZpjfTtyrPW3p9fXYZQ\nowner: me\n", Reason.TEXT),
        (b"owner: me\ntopic_id: foB6ZpjfTtyrPW3p9fXYZQ\n", Reason.TEXT),
        (b"version: 0\ntopic_id=foB6ZpjfTtyrPW3p9fXYZQ\n", Reason.TEXT),
        (b"version\ntopic_id: foB6ZpjfTtyrPW3p9fXYZQ\n", Reason.TEXT),
        (b"version: 0\ntopic_id: foB6ZpjfTtyrPW3p9fXYZQ\ntopic_id: foB6ZpjfTtyrPW3p9fXYZQ\n", Reason.TEXT),
        (b"topic_id: foB6ZpjfTtyrPW3p9fXYZQ\n", Reason.TRUNCATED),
    ],
)
def test_partition_metadata_nobody_can_use(data, reason):
    with pytest.raises(WireError) as caught:
        parse_partition_metadata(data)
    assert caught.value.reason is reason


def test_clean_shutdown_files(evidence):
    epochs = set()
    for path in files(evidence, ".kafka_cleanshutdown"):
        raw = path.read_bytes()
        assert parse_clean_shutdown(raw) == (json.loads(raw)["brokerEpoch"] if raw else None)
        epochs.add(parse_clean_shutdown(raw))
    assert None in epochs
    assert len(epochs) > 3
    for epoch in (-(2**63), -1, 0, 2**63 - 1):
        assert parse_clean_shutdown(b'{"brokerEpoch": %d}' % epoch) == epoch


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", Reason.TEXT),
        (b"[" * 9000, Reason.TEXT),
        (b"[]", Reason.VALUE),
        (b"{}", Reason.VALUE),
        (b'{"brokerEpoch": "1"}', Reason.VALUE),
        (b'{"brokerEpoch": true}', Reason.VALUE),
        (b'{"brokerEpoch": 9223372036854775808}', Reason.VALUE),
        (b'{"brokerEpoch": -9223372036854775809}', Reason.VALUE),
    ],
)
def test_clean_shutdown_files_nobody_can_use(data, reason):
    with pytest.raises(WireError) as caught:
        parse_clean_shutdown(data)
    assert (caught.value.reason, caught.value.position) == (reason, 0)


SAMPLES = [
    b"0\n3\n__transaction_state 4 77\nt 0 5\nu 1 6\n",
    b"0\n2\n0 0\n5 1000\n",
    b"#\n#Sat Nov 21\nnode.id=1\ndirectory.id=zTOi\nversion=1\ncluster.id=a\\:b\\u0041\n",
    b"version: 0\ntopic_id: foB6ZpjfTtyrPW3p9fXYZQ",
    b'{"version":0,"brokerEpoch":6}',
]


@given(damaged(SAMPLES))
@quick
def test_fuzz(data):
    for parse in (parse_offset_checkpoint, parse_leader_epoch_checkpoint):
        for damage in parse(data).damage:
            assert 0 <= damage.position <= damage.end <= len(data)
    for read in (parse_meta_properties, parse_partition_metadata, parse_clean_shutdown):
        _, error = outcome(read, data)
        assert error is None or 0 <= error.position <= len(data)


def test_what_meta_properties_do_not_say_is_not_written():
    properties = MetaProperties(0, 7, None, None, (("a", "b"),))
    assert meta_properties(properties, "made") == "#made\nversion=0\nbroker.id=7\na=b\n"
    properties = MetaProperties(1, None, "c", "d", ())
    assert meta_properties(properties) == "#\nversion=1\ncluster.id=c\ndirectory.id=d\n"
    assert "node.id=9\n" in meta_properties(MetaProperties(1, 9, None, None, ()))
