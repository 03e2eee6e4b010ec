"""A log on stores that die while they send it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engines.webhdfs_server import WebHdfs

SEGMENT = "s02-dup-last-0/00000000000000000000.log"
_LOG = Path("samples/duplicates", SEGMENT)
DEATHS = [("s3", "silent"), ("s3", "cut"), ("webhdfs", "silent"), ("webhdfs", "cut"), ("webhdfs", "short")]
"""A store, and how it dies after half of the bytes: it says nothing more, cuts the connection off, or ends an answer that told no length."""


@contextmanager
def dying(
    store: str, death: str, request: pytest.FixtureRequest, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, str]]:
    """Give the URL of the log of one partition, and what a reader is to say; a silent store has a second to answer."""
    monkeypatch.setenv("KAUDIT_ANSWER_SECONDS", "1" if death == "silent" else "20")
    content = _LOG.read_bytes()
    copy = directory / "root" / SEGMENT
    copy.parent.mkdir(parents=True)
    copy.write_bytes(content)
    half = len(content) // 2
    silent = "no answer within 1 s"
    if store == "s3":
        server = request.getfixturevalue("s3_server")
        server.upload(directory / "root", "logs")
        server.dies = death
        yield "s3://kafka/logs", {"silent": silent, "cut": f"end of response with {half} bytes missing"}[death]
        server.killed.set()
        return
    with WebHdfs(directory / "root") as served:
        served.dies = death
        said = {
            "silent": silent,
            "cut": f"WebHDFS cut the connection off after {half} bytes",
            "short": f"only {half} of {len(content)} bytes arrived",
        }
        yield f"{served.url}/", said[death]
