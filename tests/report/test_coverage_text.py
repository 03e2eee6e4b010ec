"""The account of offsets as sentences."""

import pytest
from msgspec.structs import replace

from kaudit.model.coverage import Coverage, EndWitness, OffsetClass, OffsetRange
from kaudit.model.remote_segments import RemoteAccount
from kaudit.report.console import Console
from kaudit.report.text.coverage import coverage_section
from kaudit.results.scope import coverage_sentence

WHOLE = Coverage(
    "orders",
    0,
    "b1",
    log_start_offset=10,
    log_start_source="log-start-offset-checkpoint",
    log_end_offset=1_020,
    witnesses=[EndWitness("log-start-offset-checkpoint", 10), EndWitness("replication-offset-checkpoint", 1_020)],
    offsets={"data": 1_000, "marker": 10, "retention": 10},
    ranges=[],
    all_accounted=True,
)
COMPACTED = replace(WHOLE, offsets={"data": 200, "compacted": 800, "remote": 20})
RANGES = [
    OffsetRange(5, 9, 5, OffsetClass.MISSING, "no batch covers them"),
    OffsetRange(20, 90, 30, OffsetClass.UNKNOWN, "the text leaves them out", incomplete=True),
    OffsetRange(1_020, None, 0, OffsetClass.DAMAGED, "damage (torn)"),
]
LOSSY = replace(WHOLE, replica="b2", witnesses=[]).with_ranges(RANGES)


@pytest.mark.parametrize(
    ("accounts", "sentence"),
    [
        ([], ""),
        ([WHOLE, WHOLE], "every offset accounted for"),
        ([WHOLE, COMPACTED, COMPACTED], "every offset accounted for (1,600 compacted, 40 remote)"),
        ([LOSSY], "offsets not accounted for: 5 missing, 30 unknown"),
        ([LOSSY, WHOLE, LOSSY], "offsets not accounted for: 10 missing, 60 unknown in 2 partitions"),
        ([WHOLE.with_ranges(RANGES[2:])], "offsets not accounted for: their number is not known"),
    ],
)
def test_one_sentence_for_all_partitions(accounts, sentence):
    assert coverage_sentence(accounts) == sentence


def test_verbose_reports_have_the_account_of_each_partition():
    console = Console()
    assert coverage_section([], console, each=True) == []
    assert coverage_section([WHOLE], console, each=False) == ["Every offset accounted for."]
    assert coverage_section([WHOLE, LOSSY], console, each=True) == [
        "Offsets not accounted for: 5 missing, 30 unknown in 1 partition:",
        (
            "  - orders-0 of b1: log start 10 (log-start-offset-checkpoint), end 1,020 (the last batch, replication-offset-checkpoint): "
            "1,000 in records, 10 in markers, 10 removed by retention"
        ),
        (
            "  - orders-0 of b2: log start 10 (log-start-offset-checkpoint), end 1,020 (the last batch; no file beside it knows it): "
            "1,000 in records, 10 in markers, 10 removed by retention, 5 missing, 30 unknown"
        ),
        "    - offsets 5..9 missing: no batch covers them",
        "    - 30 offsets of 20..90 unknown: the text leaves them out",
        "    - offsets from 1020 on damaged: damage (torn)",
    ]
    many = WHOLE.with_ranges(RANGES[:1] * 7)
    assert coverage_section([many], console, each=True)[-1] == "    - 2 more ranges (json lists them)"


def test_verbose_reports_say_what_is_in_remote_storage():
    remote = RemoteAccount(2, 1_900, 0, 499, 400, 100, 0, 1)
    console = Console()
    assert coverage_section([replace(WHOLE, remote=remote)], console, each=True)[-1] == (
        "    - in remote storage: offsets 0..499 in 2 segments, 1.9 kB, 100 offsets of them also on this disk, where the log begins at "
        "400, 1 copy not finished"
    )
    empty = RemoteAccount(0, 0, None, None, 400, 0, 390, 0)
    assert (
        coverage_section([replace(WHOLE, remote=empty)], console, each=True)[-1]
        == "    - in remote storage: no readable segment"
    )
