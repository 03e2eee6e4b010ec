"""`kaudit inspect` of URLs shows what it shows of the same files on a disk."""

import shutil

import pytest

from kaudit.errors import NothingToAuditError, UsageError
from kaudit.inspect.row_filter import RowFilter
from kaudit.inspect.walk import InspectOptions, inspect_rows
from tests.cli.conftest import kaudit, plain_environment  # noqa: F401 - fixtures
from tests.engines.webhdfs_server import WebHdfs


@pytest.fixture
def store(tmp_path):
    (tmp_path / "store").mkdir()
    with WebHdfs(tmp_path / "store") as server:
        yield server


def rows(path, *, batches=False, **options):
    return list(inspect_rows(InspectOptions([str(path)], **options), batches=batches))


@pytest.fixture
def logs(evidence, store):
    """Every kind of file: segments, damaged ones, side files, checkpoints, a text."""
    capture = evidence.capture("torn-writes")
    target = store.root / "logs"
    for source in sorted((capture / "artificial").iterdir())[:6]:
        shutil.copytree(source, target / source.name)
    shutil.copyfile(next((capture / "dumps").glob("*.deep.txt")), target / "dump.txt")
    return target, f"{store.url}/logs"


def test_a_directory_is_the_same_rows(logs):
    near, far = logs
    assert rows(far) == rows(near)
    assert {row["kind"] for row in rows(far)} >= {"segment", "index", "snapshot", "dump"}


@pytest.mark.parametrize("options", [{"records": True}, {"around": 40}, {"wanted": RowFilter(first_offset=10)}])
def test_batches_of_a_directory_are_the_same_rows(logs, options):
    near, far = logs
    assert rows(far, batches=True, **options) == rows(near, batches=True, **options)


def test_every_file_is_the_same_rows(logs):
    near, far = logs
    compared = 0
    for path in sorted(near.rglob("*")):
        if path.is_file():
            try:
                own = rows(path, records=True)
            except NothingToAuditError:
                continue
            assert rows(f"{far}/{path.relative_to(near)}", records=True) == own
            compared += len(own)
    assert compared > 500


def test_a_header_of_a_file_elsewhere(logs):
    near, far = logs
    segment = next(path for path in sorted(near.rglob("*.log")) if path.stat().st_size)
    assert rows(f"{far}/{segment.relative_to(near)}", at=0) == rows(segment, at=0)
    with pytest.raises(UsageError, match="is a directory"):
        rows(far, at=0)


def test_what_is_not_there_and_what_nobody_serves(store):
    with pytest.raises(UsageError, match=f"no such file or directory: {store.url}/nothing"):
        rows(f"{store.url}/nothing")
    with pytest.raises(UsageError, match="reads local paths"):
        rows("gopher://host/logs")
    with pytest.raises(UsageError, match="three slashes"):
        rows("file://host/logs")
    with pytest.raises(NothingToAuditError, match="it holds no files"):
        rows(store.url)


def test_a_file_url_is_a_path(logs):
    near, _ = logs
    assert rows(f"file://{near}") == rows(near)


def test_a_file_whose_bytes_cannot_be_had(logs, store, kaudit):  # noqa: F811
    near, far = logs
    broken = next(path for path in sorted(near.rglob("*.log")) if path.stat().st_size)
    store.broken.add(broken.name)
    unreadable = [row for row in rows(far) if row["status"] == "unreadable"]
    assert {row["detail"] for row in unreadable} == {"WebHDFS answered 500 Internal Server Error (read from byte 0 on)"}
    done = kaudit("inspect", f"{far}/{broken.relative_to(near)}", "--output-format", "jsonl")
    assert (done.code, done.out) == (4, "")
    assert done.err.endswith(f"{broken.name}: WebHDFS answered 500 Internal Server Error (read from byte 0 on)\n")
