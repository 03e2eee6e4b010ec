"""Play accidents on real brokers and keep what they leave: python -m tests.live_brokers.accidents [NAME ...].

Each is played on a cluster of its own: tests/data/accidents/NAME.tar.xz has the directories and server logs of its brokers at each
moment, truth.json what the producers were told and a consumer reads. It needs Java 17, Maven, a C compiler and a minute
for each, root for the one with a small disk, and is no part of the tests.
"""

import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.live_brokers.accidents import disks_and_elections, healthy, losses, tiered
from tests.live_brokers.accidents.stage import INDEX_BYTES, Stage
from tests.live_brokers.accidents.truth import DATA, Accident, keep

ZOOKEEPER, OLD, NEW, TIERED = "2.8.2", "3.9.1", "4.1.1", "4.3.1"
"""The last is the newest release whose tests' classes, with remote storage in a directory, are on Maven Central."""
_DISKS: Mapping[str, object] = {"log.dirs": "data/d1,data/d2"}


class Play(NamedTuple):
    """An accident, the release it is played on, how many replicas the cluster has beside its controller, and their configuration."""

    act: Callable[[Stage], None]
    version: str
    replicas: int
    config: Mapping[str, object] = {}
    tiered: bool = False
    """The cluster has remote storage."""


PLAYS = {
    "acks1-failover": Play(losses.acks1_failover, NEW, 3),
    "clock-ahead": Play(losses.clock_ahead, OLD, 1),
    "clock-behind": Play(losses.clock_behind, OLD, 1),
    "compacted-without-keys": Play(disks_and_elections.compacted_without_keys, OLD, 2),
    "deleted-records": Play(healthy.deleted_records, OLD, 2),
    "deleted-topic": Play(losses.deleted_topic, NEW, 2),
    "deleted-while-written": Play(
        disks_and_elections.deleted_while_written, OLD, 2, {"auto.create.topics.enable": "true"}
    ),
    "distressed-producer": Play(losses.distressed_producer, OLD, 1),
    "emptied-disk": Play(disks_and_elections.emptied_disk, NEW, 2),
    "failed-disk": Play(disks_and_elections.failed_disk, OLD, 2, _DISKS),
    "fenced-zombie": Play(healthy.fenced_zombie, OLD, 2),
    "full-disk": Play(losses.full_disk, NEW, 1, {"log.dirs": "data/d1", "metadata.log.dir": "data/metadata"}),
    "lagging-follower": Play(healthy.lagging_follower, NEW, 2),
    "leader-storm": Play(disks_and_elections.leader_storm, NEW, 2),
    "live-copy": Play(healthy.live_copy, OLD, 2),
    "lost-coordinator": Play(losses.lost_coordinator, NEW, 2),
    "lost-log-directory": Play(losses.lost_log_directory, OLD, 2),
    "metadata-restored": Play(disks_and_elections.metadata_restored, NEW, 2),
    "moved-coordinator": Play(healthy.moved_coordinator, NEW, 2, {"transaction.state.log.replication.factor": 2}),
    "moved-between-brokers": Play(healthy.moved_between_brokers, NEW, 3),
    "moved-between-disks": Play(healthy.moved_between_disks, OLD, 2, {**_DISKS, "replica.fetch.max.bytes": 2048}),
    "power-everywhere": Play(disks_and_elections.power_everywhere, OLD, 2),
    "recreated-topic": Play(losses.recreated_topic, NEW, 2),
    "restart-loop": Play(losses.restart_loop, NEW, 1),
    "restored-backup": Play(losses.restored_backup, OLD, 2),
    "rolling-restart": Play(healthy.rolling_restart, NEW, 3),
    "snapshots-restored": Play(disks_and_elections.snapshots_restored, NEW, 2),
    "stalled-broker": Play(losses.stalled_broker, NEW, 1),
    "tiered": Play(tiered.copied_and_deleted, OLD, 1, tiered=True),
    "tiered-fail-over": Play(tiered.failed_over, OLD, 1, tiered=True),
    "tiered-fail-over-4.3": Play(tiered.failed_over, TIERED, 1, tiered=True),
    "tiered-holes": Play(tiered.holes, OLD, 1, tiered=True),
    "tiered-holes-4.3": Play(tiered.holes, TIERED, 1, tiered=True),
    "tiered-4.3": Play(tiered.copied_and_deleted, TIERED, 1, tiered=True),
    "timestamps-in-seconds": Play(losses.timestamps_in_seconds, OLD, 2),
    "torn-leader": Play(losses.torn_leader, NEW, 2),
    "torn-tail": Play(losses.torn_tail, NEW, 1),
    "two-tails": Play(disks_and_elections.two_tails, NEW, 3),
    "two-instances": Play(losses.two_instances, NEW, 1),
    "unclean-twice": Play(disks_and_elections.unclean_twice, NEW, 2),
    "unclean-election": Play(losses.unclean_election, OLD, 2),
    "unclean-with-zookeeper": Play(disks_and_elections.unclean_with_zookeeper, ZOOKEEPER, 2),
    "upgrade-in-transaction": Play(healthy.upgrade_in_transaction, OLD, 3),
}


def play(name: str, chosen: Play) -> None:
    """Play one accident and keep what it leaves."""
    with tempfile.TemporaryDirectory(prefix="kaudit-accident-") as folder:
        home, kept = Path(folder) / "cluster", Path(folder) / "kept"
        nodes = range(1, chosen.replicas + 1)
        stage = Stage(chosen.version, home, kept, nodes, dict(chosen.config), tiered=chosen.tiered)
        try:
            stage.start()
            chosen.act(stage)
        finally:
            stage.end()
        for index in (*kept.rglob("*.index"), *kept.rglob("*.timeindex")):
            _cut(index)
        DATA.mkdir(parents=True, exist_ok=True)
        with tarfile.open(DATA / f"{name}.tar.xz", "w:xz", preset=9) as archive:
            for path in sorted(kept.rglob("*")):
                archive.add(path, path.relative_to(kept), recursive=False, filter=_nobodys)
        played = " ".join((chosen.act.__doc__ or "").split())
        keep(
            name, Accident(played=played, brokers=chosen.version, clients=sorted(stage.clients), moments=stage.moments)
        )


def _cut(index: Path) -> None:
    """Cut the index of a metadata log, allocated in advance with ten megabytes, to what those of data are allocated with."""
    if index.stat().st_size > INDEX_BYTES:
        row = 8 if index.suffix == ".index" else 12
        used = len(index.read_bytes().rstrip(b"\0"))
        with index.open("r+b") as data:
            data.truncate(max(-(-used // row), INDEX_BYTES // row) * row)


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(entry.mtime)
    return entry


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PLAYS:
        play(wanted, PLAYS[wanted])
        sys.stderr.write(f"{wanted}\n")
