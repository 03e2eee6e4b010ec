"""What the documentation shows is what kaudit prints."""

from pathlib import Path

import pytest

from kaudit.checks.registry import CHECKS
from tests import crafted_sample, distress_sample, remote_storage, replica_sample, witness_samples
from tests.examples import SAMPLES, commands, page_of, pages

IN_WORDS = {
    *("unreadable-segment", "uncleaned-gap", "index-beyond-log-end"),
    *("mixed-clusters", "duplicate-log-directories", "several-topic-ids"),
    *("records-cut-off", "transaction-rolled-back", "markers-stopped", "state-rebuilt"),
    *("fresh-records-deleted", "future-timestamps", "recreated-topic"),
    *("orphaned-remote-segments", "offsets-not-copied", "overlapping-remote-segments", "failing-copies"),
    *(
        "epochs-exhausted",
        "keyless-records-removed",
        "share-records-stay-acquired",
        "committed-below-log-start",
        "commits-never-decided",
    ),
}
"""No sample has a file that must not be read, and no recorded broker lost offsets of these kinds: their pages describe one."""


def test_every_example_and_sample_page_still_comes_out():
    stale = [str(path) for path, content in pages() if path.read_text(encoding="utf-8") != content]
    assert stale == [], "run `python -m tests.examples`, then read the diff"


def test_every_sample_directory_has_its_page():
    assert [path.name for path in SAMPLES.iterdir() if path.is_dir() and not (path / "README.md").exists()] == []


def test_the_example_of_a_check_shows_that_check():
    for code in commands():
        assert f"[{code}]" in page_of(code).read_text(encoding="utf-8").split("## Example")[1], code


def test_the_crafted_sample_is_what_its_maker_writes(tmp_path: Path):
    crafted_sample.write(tmp_path)
    for written in tmp_path.rglob("*.log"):
        assert (crafted_sample.TARGET / written.relative_to(tmp_path)).read_bytes() == written.read_bytes()


@pytest.mark.parametrize("maker", [witness_samples, replica_sample, distress_sample, remote_storage])
def test_samples_are_what_their_makers_write(tmp_path: Path, maker):
    maker.write(tmp_path)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    for path in written:
        assert (SAMPLES / path.relative_to(tmp_path)).read_bytes() == path.read_bytes()


def test_every_check_has_an_example_from_a_sample():
    shown = commands()
    assert {check.name for check in CHECKS.values()} - {CHECKS[code].name for code in shown} == IN_WORDS
    for code, command in shown.items():
        assert "samples/" in command, code
        assert f"--select {code}" in command, code
