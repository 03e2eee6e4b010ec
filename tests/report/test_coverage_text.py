"""The account of offsets as sentences."""

import pytest
from msgspec.structs import replace

from kaudit.model.coverage import Coverage, EndWitness, OffsetClass, OffsetRange
from kaudit.model.impact import Impact
from kaudit.model.remote_segments import RemoteAccount
from kaudit.report.console import Console
from kaudit.report.text.coverage import coverage_section
from kaudit.results.scope import coverage_sentence
from tests.scan_results import old_duplicate, scan_result

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


def account(*accounts, findings=()):
    return scan_result(*findings, coverage=accounts)


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
    assert coverage_sentence(account(*accounts)) == sentence


@pytest.mark.parametrize(
    "impact", [Impact(records_lost_at_most=60), Impact(records_lost_at_least=0), Impact(records_lost_at_least=3)]
)
def test_beside_a_loss_only_the_logs_have_every_offset(impact):
    """Records that nobody has any more are no gap of a log: a report that counts them must not say that all are accounted for."""
    lost = old_duplicate(impact=impact)
    assert coverage_sentence(account(WHOLE, findings=[lost])) == "no offset is missing within the logs"
    assert (
        coverage_sentence(account(COMPACTED, findings=[lost]))
        == "no offset is missing within the logs (800 compacted, 20 remote)"
    )
    assert coverage_sentence(account(LOSSY, findings=[lost])) == "offsets not accounted for: 5 missing, 30 unknown"
    nothing = old_duplicate(impact=Impact(records_lost_at_least=0, records_lost_at_most=0))
    assert coverage_sentence(account(WHOLE, findings=[nothing])) == "every offset accounted for"


def test_verbose_reports_have_the_account_of_each_partition():
    console = Console()
    assert coverage_section(account(), console, each=True) == []
    assert coverage_section(account(WHOLE), console, each=False) == ["Every offset accounted for."]
    assert coverage_section(account(WHOLE, LOSSY), console, each=True) == [
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
    assert coverage_section(account(many), console, each=True)[-1] == "    - 2 more ranges (json lists them)"


def test_verbose_reports_say_what_is_in_remote_storage():
    remote = RemoteAccount(2, 1_900, 0, 499, 400, 100, 0, 1)
    console = Console()
    assert coverage_section(account(replace(WHOLE, remote=remote)), console, each=True)[-1] == (
        "    - in remote storage: offsets 0..499 in 2 segments, 1.9 kB, 100 offsets of them also on this disk, where the log begins at "
        "400, 1 copy not finished"
    )
    empty = RemoteAccount(0, 0, None, None, 400, 0, 390, 0)
    assert (
        coverage_section(account(replace(WHOLE, remote=empty)), console, each=True)[-1]
        == "    - in remote storage: no readable segment"
    )
