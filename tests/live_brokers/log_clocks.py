"""Record brokers whose clocks and time zones are known: python -m tests.live_brokers.log_clocks [NAME ...].

Each broker runs under a time zone that is not UTC (TZ), some with a clock that is wrong by a known number of seconds
(shifted_clock.c, as libfaketime), while a Java client writes transactions and consumes in groups. What they leave goes to
tests/data/log-clocks: NAME.tar.xz with the server logs and the segments of each broker, and clocks.json with what was set.
It needs Java 17, Maven, a C compiler and ten minutes, and is no part of the tests.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kaudit.broker.releases.version import Version
from tests.live_brokers.cluster import QUICK_CHANGES
from tests.live_brokers.jars import CACHE, jars_of
from tests.live_brokers.java_producer import logging_jars
from tests.live_brokers.jvm import Broker

DATA = Path(__file__).parents[1] / "data" / "log-clocks"
CLOCKS = DATA / "clocks.json"
_SOURCE = Path(__file__).with_name("ClockLoad.java")
_CLIENT = "3.9.2"
_FIRST_WITH_LARGE_SEGMENTS = Version.parse("4.1.0")
_SHIFTED = CACHE / "shifted_clock.so"
_LEFT_OUT = (".index", ".timeindex", ".txnindex", ".lock", ".kafka_cleanshutdown")
_TOPIC = "clocked"


class Setting(NamedTuple):
    """One cluster: (zone, seconds its clock is ahead) by node; the first node has the controller or ZooKeeper.

    `began` is the second since the epoch its clocks show when they start, None for now; the client has the true time, or
    `began` too.
    """

    version: str
    clocks: Mapping[int, tuple[str, int]]
    zookeeper: bool = False
    protocol: str = "classic"
    rounds: int = 4
    pause: int = 1
    began: int | None = None


SETTINGS = {
    "kolkata-0.11": Setting("0.11.0.3", {1: ("Asia/Kolkata", 0)}),
    "new-york-1.1": Setting("1.1.1", {1: ("America/New_York", 0)}),
    "eucla-2.0": Setting("2.0.1", {1: ("Australia/Eucla", 0)}),
    "kathmandu-2.5": Setting("2.5.1", {1: ("Asia/Kathmandu", 37)}),
    "chatham-2.8": Setting("2.8.2", {1: ("Pacific/Chatham", 0)}),
    "st-johns-3.6": Setting("3.6.2", {1: ("America/St_Johns", 0)}),
    "tehran-3.9": Setting("3.9.2", {1: ("Asia/Tehran", -90)}, zookeeper=True),
    "marquesas-4.0": Setting("4.0.2", {1: ("Pacific/Marquesas", 0)}),
    "kiritimati-4.4": Setting("4.4.0", {1: ("Pacific/Kiritimati", 0)}, protocol="consumer"),
    "three-zones-4.1": Setting(
        "4.1.2", {4: ("America/New_York", 0), 1: ("Asia/Kathmandu", 7), 2: ("Australia/Lord_Howe", -3)}
    ),
    # Central European Summer Time ended on 2026-10-25 at 01:00 UTC
    "autumn-3.7": Setting("3.7.2", {1: ("Europe/Berlin", 0)}, rounds=8, pause=8, began=1792889940),
    # Eastern Daylight Time began on 2026-03-08 at 07:00 UTC
    "spring-3.8": Setting("3.8.1", {1: ("America/New_York", 0)}, rounds=8, pause=8, began=1772953140),
}


def record(name: str, setting: Setting) -> None:
    """Run one cluster and keep what it leaves."""
    jars = jars_of(setting.version).resolve()
    with tempfile.TemporaryDirectory(prefix="kaudit-clocks-") as folder:
        home = Path(folder)
        (first, *others) = setting.clocks
        shift = 0 if setting.began is None else setting.began - int(_now())
        config = dict(QUICK_CHANGES) | {
            "offsets.topic.replication.factor": 1 + len(others[:1]),
            "transaction.state.log.replication.factor": 1 + len(others[:1]),
            "offsets.topic.num.partitions": 2,
            "transaction.state.log.num.partitions": 2,
        }
        brokers = {first: _broker(setting, first, jars, home, config, shift, None)}
        for node in others:
            brokers[node] = _broker(setting, node, jars, home, config, shift, brokers[first])
        try:
            for broker in brokers.values():
                broker.start()
            _load(setting, brokers[others[0] if others else first].port, shift, 1 + len(others))
        finally:
            for broker in reversed(brokers.values()):
                broker.end()
        DATA.mkdir(parents=True, exist_ok=True)
        with tarfile.open(DATA / f"{name}.tar.xz", "w:xz") as archive:
            for node, broker in brokers.items():
                for path in _kept(broker.home):
                    archive.add(path, f"broker{node}/{path.relative_to(broker.home)}", filter=_nobodys)
    known = json.loads(CLOCKS.read_text()) if CLOCKS.exists() else {}
    known[name] = {
        "version": setting.version,
        "clocks": {str(node): list(clock) for node, clock in setting.clocks.items()},
    }
    CLOCKS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def _broker(
    setting: Setting, node: int, jars: Path, home: Path, config: dict[str, object], shift: int, beside: Broker | None
) -> Broker:
    zone, ahead = setting.clocks[node]
    return Broker(
        setting.version, jars, home / f"broker{node}", config, node=node, beside=beside, server_logs="stock",
        zookeeper=setting.zookeeper, environment={"TZ": zone, **shifted(shift + ahead)},
    )  # fmt: skip


def shifted(seconds: int) -> dict[str, str]:
    """Return the variables under which a process has a clock that is wrong by so many seconds."""
    if not seconds:
        return {}
    subprocess.run(["cc", "-shared", "-fPIC", "-o", _SHIFTED, _SOURCE.with_name("shifted_clock.c"), "-ldl"], check=True)
    return {"LD_PRELOAD": str(_SHIFTED), "SHIFT": str(seconds)}


def _load(setting: Setting, port: int, shift: int, replicas: int) -> None:
    jars = jars_of(_CLIENT).resolve()
    folder = CACHE / "clock-load"
    path = f"{folder}:{logging_jars()}:{jars}/*"
    subprocess.run(["javac", "-d", folder, "-cp", f"{jars}/*", _SOURCE], check=True, timeout=120)
    least = 1 << 20 if Version.parse(setting.version) >= _FIRST_WITH_LARGE_SEGMENTS else 1 << 14
    arguments = [port, _TOPIC, replicas, setting.rounds, setting.pause, setting.protocol, least]
    subprocess.run(
        ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", path, "ClockLoad", *map(str, arguments)],
        check=True, timeout=600, stdout=sys.stderr, env={**os.environ, **shifted(shift)},
    )  # fmt: skip


def _kept(home: Path) -> Iterator[Path]:
    yield from sorted(path for path in (home / "logs").iterdir() if path.stat().st_size)
    for path in sorted((home / "data").rglob("*")):
        if path.is_file() and not path.name.endswith(_LEFT_OUT) and path.stat().st_size:
            yield path


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _now() -> float:
    return float(subprocess.run(["date", "+%s"], check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or SETTINGS:
        record(chosen, SETTINGS[chosen])
        sys.stderr.write(f"{chosen}\n")
