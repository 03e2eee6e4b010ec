"""What a ZooKeeper data directory says of blocks, by cluster, and what it leaves open."""

from pathlib import Path

import pytest

from kaudit.audits.producer_ids import block_sources
from kaudit.audits.producer_ids.block_sources import MetadataLog, read_zookeeper
from kaudit.formats.errors import Damage, Reason
from kaudit.formats.zookeeper.transaction_log import ZnodeChange, ZnodeEvent
from kaudit.source.zookeeper import FileDamage, Sighting, ZnodeEvidence, ZooKeeperFiles

LOG, SNAPSHOT = Path("/zk/log/version-2/log.1"), Path("/zk/snap/version-2/snapshot.5")
BOTH = ZooKeeperFiles((LOG,), (SNAPSHOT,))
BLOCK, CLUSTER = "/latest_producer_id_block", "/cluster/id"
ONLY_SNAPSHOTS = "no transaction log: only the block current at each snapshot is known"
NO_ZNODE = f"no znode {BLOCK} in it: producer ids are not compared with their blocks"


def sighting(path, data, zxid=1, position=0, file=LOG):
    return Sighting(ZnodeChange(path, ZnodeEvent.SET, zxid, 1_700_000_000_000, 1, data, position), file)


def block(first, broker=1):
    return b'{"version":1,"broker":%d,"block_start":"%d","block_end":"%d"}' % (broker, first, first + 999)


@pytest.fixture
def evidence(monkeypatch):
    """What the files say of blocks and of cluster ids."""
    said = {BLOCK: ZnodeEvidence(observed_until_ms=1_700_000_000_500), CLUSTER: ZnodeEvidence()}
    monkeypatch.setattr(block_sources, "read_znode", lambda _, suffix: said[suffix])
    return said


def notes_of(sources):
    return [[(note.path, note.reason, note.unreadable) for note in source.notes] for source in sources]


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        (BOTH, LOG.parent),
        (ZooKeeperFiles((LOG,)), LOG.parent),
        (ZooKeeperFiles((), (SNAPSHOT,)), SNAPSHOT.parent),
    ],
)
def test_without_the_znode_nothing_is_known(evidence, files, folder):
    (source,) = read_zookeeper(files)
    without_log = [] if files.logs else [(str(folder), ONLY_SNAPSHOTS, False)]
    assert (source.origin, list(source.history.entries)) == (str(folder), [])
    assert notes_of([source]) == [[*without_log, (str(folder), NO_ZNODE, False)]]


def test_every_chroot_is_a_cluster_with_its_id_and_blocks(evidence):
    evidence[BLOCK].sightings = {
        f"/a{BLOCK}": [sighting(f"/a{BLOCK}", block(0)), sighting(f"/a{BLOCK}", block(1000), zxid=2)],
        f"/b{BLOCK}": [sighting(f"/b{BLOCK}", block(5000))],
    }
    older, newer = b'{"version":"1","id":"older"}', b'{"version":"1","id":"newer"}'
    evidence[CLUSTER].sightings = {f"/a{CLUSTER}": [sighting("", older), sighting("", newer, zxid=2)]}
    evidence[BLOCK].gaps = [(0x10, 0x2F)]
    sources = read_zookeeper(BOTH)
    assert [(source.origin, source.cluster) for source in sources] == [
        (f"{LOG.parent}/a{BLOCK}", "newer"), (f"{LOG.parent}/b{BLOCK}", ""),
    ]  # fmt: skip
    assert [[entry.start for entry in source.history.entries] for source in sources] == [[0, 1000], [5000]]
    # what concerns the files is said once
    assert notes_of(sources) == [[(str(LOG.parent), "transactions between 0x10 and 0x2f are in no log", False)], []]


def test_only_snapshots_name_their_own_folder(evidence):
    evidence[BLOCK].sightings = {BLOCK: [sighting(BLOCK, block(0), file=SNAPSHOT)]}
    (source,) = read_zookeeper(ZooKeeperFiles((), (SNAPSHOT,)))
    assert source.origin == f"{SNAPSHOT.parent}{BLOCK}"
    assert notes_of([source]) == [[(str(SNAPSHOT.parent), ONLY_SNAPSHOTS, False)]]


def test_what_could_not_be_read_of_the_files(evidence):
    found = evidence[BLOCK]
    found.sightings = {BLOCK: [sighting(BLOCK, block(0))]}
    found.unreadable = [(LOG, "Permission denied")]
    found.damages = [FileDamage(Damage(77, 90, Reason.TRUNCATED, "cut off"), LOG)]
    found.conflicts = [(sighting(BLOCK, b"1", 0x1A), sighting(BLOCK, b"2", 0x1A, position=44, file=SNAPSHOT))]
    folder = SNAPSHOT.parent
    unknown = [folder / name for name in ("snapshot.9.gz", "snapshot.a.snappy", "snapshot.b.tar", "log.c.gz", "x.gz")]
    (source,) = read_zookeeper(ZooKeeperFiles((LOG,), (SNAPSHOT,), tuple(unknown)))
    assert notes_of([source]) == [
        [
            (str(LOG), "Permission denied", True),
            (str(LOG), "byte 77: cut off", False),
            (str(SNAPSHOT), "byte 44: contradicts log.1 on transaction 0x1a", False),
            (str(unknown[0]), "a compressed snapshot, not read", False),
            (str(unknown[1]), "a compressed snapshot, not read", False),
        ]
    ]


def test_what_is_seen_of_a_metadata_log():
    """Its first and last offset, and its newest time; a batch without a time has none."""
    log = MetadataLog()
    assert (log.extent, log.newest_ms) == (None, None)
    for timestamp, first, last, extent, newest in (
        (-1, 3, 4, (3, 4), None),
        (0, 5, 6, (3, 6), 0),
        (20, 7, 7, (3, 7), 20),
        (10, 8, 9, (3, 9), 20),
        (-1, 10, 10, (3, 10), 20),
        (21, 11, 12, (3, 12), 21),
    ):
        log.see(timestamp, first, last)
        assert (log.extent, log.newest_ms) == (extent, newest)
