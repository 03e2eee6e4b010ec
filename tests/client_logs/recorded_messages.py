"""Which releases of brokers and clients wrote which messages, in the recordings of tests/data."""

import json
import lzma
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import LogEvent
from tests.client_logs.recordings import recordings, sections
from tests.live_brokers.accidents.truth import truths

DATA = Path(__file__).parents[1] / "data"


@cache
def recorded_releases() -> Mapping[tuple[str, str], frozenset[str]]:
    """Return the releases by program and pattern."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for release, event in _events():
        found[event.client or "server", event.pattern].add(release)
    return {key: frozenset(releases) for key, releases in found.items()}


def _events() -> Iterator[tuple[str, LogEvent]]:
    for section in (section for recording in recordings() for section in sections(recording)):
        yield from ((section.release, event) for event in section.events()[0])
    for path in sorted((DATA / "client-logs").glob("*.log.xz")):
        release = path.name.split("-")[-1 if path.name[0] != "j" else 1].removesuffix(".log.xz")
        for event in read_events([lzma.decompress(path.read_bytes())], "client", path=path.name):
            yield release, event
    for path in sorted((DATA / "server-logs").glob("*/*.server-logs.tar.xz")):
        yield from ((path.parent.name, event) for event in _of_brokers(path))
    for name in ("tiered", "tiered-holes", "tiered-4.3", "tiered-holes-4.3"):
        yield from ((truths()[name].brokers, event) for event in _of_brokers(DATA / "accidents" / f"{name}.tar.xz"))
    for name, known in json.loads((DATA / "log-clocks" / "clocks.json").read_text()).items():
        yield from ((known["version"], event) for event in _of_brokers(DATA / "log-clocks" / f"{name}.tar.xz"))


def _of_brokers(path: Path) -> Iterator[LogEvent]:
    with tarfile.open(path) as archive:
        for member in archive:
            is_log = "/logs/" in member.name or "/server-b" in member.name
            if member.isfile() and is_log and (log := archive.extractfile(member)) is not None:
                yield from read_events([log.read()], "server", path=member.name)
