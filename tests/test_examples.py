"""What the documentation shows is what kaudit prints."""

from pathlib import Path

import pytest

from kaudit.checks.registry import CHECKS
from tests import crafted_sample, replica_sample, witness_samples
from tests.examples import EXAMPLES, SAMPLE_NAMES, SAMPLES, page_of, pages

BY_HAND = ("KA005", "KA010", "KA012")
"""No sample has a malformed batch, a bomb or a file nobody may read: their pages tell of one in words."""


def test_every_example_and_sample_page_still_comes_out():
    stale = [str(path) for path, content in pages() if path.read_text(encoding="utf-8") != content]
    assert stale == [], "run `python -m tests.examples`, then read the diff"


def test_every_sample_directory_has_its_page():
    assert {path.name for path in SAMPLES.iterdir() if path.is_dir()} == set(SAMPLE_NAMES)


def test_the_example_of_a_check_shows_that_check():
    written = dict(pages())
    for code in EXAMPLES:
        assert f"[{code}]" in written[page_of(code)].split("## Example")[1], code


def test_the_crafted_sample_is_what_its_maker_writes(tmp_path: Path):
    crafted_sample.write(tmp_path)
    for written in tmp_path.rglob("*.log"):
        assert (crafted_sample.TARGET / written.relative_to(tmp_path)).read_bytes() == written.read_bytes()


@pytest.mark.parametrize("maker", [witness_samples, replica_sample])
def test_samples_are_what_their_makers_write(tmp_path: Path, maker):
    maker.write(tmp_path)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    for path in written:
        assert (SAMPLES / path.relative_to(tmp_path)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("code", [code for code in CHECKS if code not in BY_HAND])
def test_every_check_has_an_example(code):
    assert code in EXAMPLES
