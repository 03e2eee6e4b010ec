"""Each fuzz target for a second, and every input that ever broke one."""

from itertools import islice

import pytest

from tests.fuzz.run import FINDINGS, feed, inputs
from tests.fuzz.targets import TARGETS, seeds_of

INPUTS = dict.fromkeys(TARGETS, 1500) | {
    "inspect": 150,
    "scan": 60,
    "scan_text": 150,
    "segment": 500,
    "codecs": 700,
    "dump_text": 400,
    "column_chunk": 400,
    "archives": 700,
    "archive_files": 60,
    "directories": 5,
    "fingerprint_files": 4,
    "watch_states": 4,
    "scan_states": 4,
    "texts": 15,
    "attempt_files": 40,
    "server_logs": 12,
    "saved_files": 6,
}
"""Enough for a second or two each."""


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_it(name):
    for data in islice(inputs(name, seed=5), INPUTS[name]):
        feed(name, data)


@pytest.mark.parametrize("path", sorted(FINDINGS.rglob("*.bin")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_found_stays_mended(path):
    feed(path.parent.name, path.read_bytes())


def test_seeds_are_inputs_that_parse():
    assert all(seeds_of(name) for name in TARGETS)
