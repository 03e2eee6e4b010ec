"""The recordings of tests/data/client-logs/refusals, section by section."""

import lzma
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import LogEvent
from tests.client_logs.cases import CASES, Case

FOLDER = Path(__file__).parents[1] / "data" / "client-logs" / "refusals"
_BY_NAME = {case.name: case for case in CASES}


class Section(Struct, frozen=True):
    """What a client wrote while one case was played: `client` is it by kaudit's name, `release` its, `layout` that of its log."""

    client: str
    release: str
    layout: str
    case: Case
    text: str

    @property
    def name(self) -> str:
        """Return what identifies it."""
        return f"{self.client}-{self.release}.{self.layout} {self.case.name}"

    def events(self) -> tuple[list[LogEvent], LogCounts]:
        """Return the events that kaudit reads in it."""
        counts = LogCounts()
        return list(read_events([self.text.encode()], "client", path=self.name, counts=counts)), counts


def recordings() -> list[Path]:
    """All recordings, one for each client, release and layout."""
    return sorted(FOLDER.glob("*.log.xz"))


def sections(recording: Path) -> Iterator[Section]:
    """Yield the sections of a recording."""
    of, layout = recording.name.removesuffix(".log.xz").rsplit(".", 1)
    client, _, release = of.rpartition("-")
    for part in lzma.decompress(recording.read_bytes()).decode().split("=== ")[1:]:
        name, _, text = part.partition("\n")
        yield Section(client, release, layout, _BY_NAME[name], text)
