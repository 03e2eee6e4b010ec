"""--state on the command line: where it may lie, what it says on stderr, that stdout is that of a full audit."""

import shutil
from pathlib import Path

import pytest

from kaudit.cli.app import run
from tests.logs import Log, data

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def logs(tmp_path):
    shutil.copytree(SAMPLES / "duplicates", tmp_path / "logs")
    return tmp_path / "logs"


def output(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    "command",
    [
        ("scan",),
        ("scan", "--output-format", "json", "--reproducible"),
        ("scan", "--output-format", "sarif", "--reproducible"),
        ("scan", "--output-format", "html", "--reproducible"),
        ("timeline", "--output-format", "json", "--reproducible"),
        ("producers",),
    ],
    ids=" ".join,
)
def test_stdout_is_that_of_a_full_audit(logs, tmp_path, capsys, command, monkeypatch):
    monkeypatch.setattr("sys.argv", ["kaudit", *command])  # reports name the command
    code, expected, _ = output(capsys, *command, logs)
    for _ in range(2):
        found = output(capsys, *command, logs, "--state", tmp_path / "state")
        assert found[:2] == (code, expected)
    assert "kaudit: --state: segments: " in found[2]
    assert "new" not in found[2]


def test_tables_are_those_of_a_full_audit(logs, tmp_path, capsys):
    import pyarrow.parquet as pq

    for name in ("full", "first", "second"):
        state = () if name == "full" else ("--state", tmp_path / "state")
        output(capsys, "scan", logs, "--output-format", "parquet", "-o", tmp_path / name, "--reproducible", *state)
    for file in (tmp_path / "full").rglob("*.parquet"):
        for other in ("first", "second"):
            assert pq.read_table(file).equals(pq.read_table(tmp_path / other / file.relative_to(tmp_path / "full")))


def test_quiet_says_only_what_is_wrong(logs, tmp_path, capsys):
    arguments = ("scan", "-q", logs, "--state", tmp_path / "state")
    assert output(capsys, *arguments)[2] == ""
    for index in (tmp_path / "state" / "partitions").glob("*/index"):
        index.write_bytes(b"")
    assert "kaudit: --state: damaged in " in output(capsys, *arguments)[2]


@pytest.mark.parametrize("place", ["logs", "logs/state", "link/state", "logs/orders-0/state"])
def test_a_state_in_what_is_audited_is_refused(logs, tmp_path, capsys, place):
    (tmp_path / "link").symlink_to(logs)
    code, _, err = output(capsys, "scan", logs, "--state", tmp_path / place)
    assert code == 2
    assert "where kaudit never writes" in err
    assert not (logs / "state").exists()


def test_a_state_beside_the_partition_that_is_audited_is_refused(tmp_path, capsys):
    log = Log()
    log.append(data(7, 0, 0))
    log.write(tmp_path / "orders-0")
    code, _, err = output(capsys, "scan", tmp_path / "orders-0", "--state", tmp_path / "state")
    assert (code, "where kaudit never writes" in err) == (2, True)


def test_a_directory_of_something_else_is_refused(logs, tmp_path, capsys):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    code, _, err = output(capsys, "scan", logs, "--state", tmp_path / "other")
    assert (code, "holds something else than a state of kaudit" in err) == (2, True)


def test_a_file_and_an_unknown_scheme_are_refused(logs, tmp_path, capsys):
    (tmp_path / "file").touch()
    code, _, err = output(capsys, "scan", logs, "--state", tmp_path / "file")
    assert (code, err.count("\n")) == (2, 1)
    code, _, err = output(capsys, "scan", logs, "--state", "webhdfs://namenode:9870/state")
    assert (code, "kaudit writes to local paths" in err) == (2, True)


def test_a_live_cluster_has_no_state(tmp_path):
    from kaudit.errors import UsageError
    from kaudit.scanning.opened_state import open_state
    from kaudit.scanning.options import ScanOptions
    from kaudit.source.layout import Layout

    with pytest.raises(UsageError, match="kaudit watch"):
        open_state(str(tmp_path / "state"), ScanOptions(["kafka://localhost:9092/orders"]), Layout([]))
