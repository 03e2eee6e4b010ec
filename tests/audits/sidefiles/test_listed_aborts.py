"""The aborted transactions that a broker lists against those of the log."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kaudit.audits.sidefiles.log_facts import LogFacts
from kaudit.audits.sidefiles.partition_files import compare_listed_aborts
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION
from kaudit.model.damage import MissingCause, MissingOffsets
from kaudit.source.layout import FetchedRange, PartitionDirectory

ABORT, COMMIT = 0, 1
PLACE = FetchedRange("b:9092", "orders", 0, 10, 12, 100, stable_offset=50)


def facts(ended, listed, **more):
    rows = np.zeros(len(ended), dtype=ENDED_TRANSACTION)
    for name, column in zip(
        ("producer_id", "first_offset", "marker_offset", "type"), zip(*ended, strict=True), strict=False
    ):
        rows[name] = column
    fields: dict[str, Any] = dict.fromkeys(LogFacts.__struct_fields__[4:8], None) | {"damages": (), "missing": ()}
    fields |= {"compacted": False, "epoch_regressions": False, "epoch_steps": None, "ended": rows, "unread": False}
    fields |= more
    directory = PartitionDirectory("orders", 0, "", "", "", "", [])
    return LogFacts(directory=directory, listed_aborts=frozenset(listed), **fields)


@pytest.mark.parametrize(
    ("ended", "listed", "missing"),
    [
        ([(7, 20, 30, ABORT)], [(7, 20)], []),
        ([(7, 20, 30, ABORT)], [], [(7, 20, 30)]),
        ([(7, 20, 30, ABORT)], [(7, 21)], [(7, 20, 30)]),
        ([(7, 20, 30, ABORT)], [(8, 20)], [(7, 20, 30)]),
        ([(7, 20, 30, COMMIT)], [], []),
        # a marker that ended nothing
        ([(7, -1, 30, ABORT)], [], []),
        # from the last stable offset on nothing is listed
        ([(7, 20, 49, ABORT)], [], [(7, 20, 49)]),
        ([(7, 20, 50, ABORT)], [], []),
        # one that began before what can be read
        ([(7, 12, 30, ABORT)], [(7, 11)], []),
        ([(7, 12, 30, ABORT)], [(7, 12)], []),
        ([(7, 13, 30, ABORT)], [(7, 12)], [(7, 13, 30)]),
        ([(7, 13, 30, ABORT)], [(8, 11)], [(7, 13, 30)]),
        ([(9, 14, 31, ABORT), (7, 13, 30, ABORT), (8, 15, 32, ABORT)], [(8, 15)], [(9, 14, 31), (7, 13, 30)]),
    ],
)  # fmt: skip
def test_what_the_broker_does_not_list(ended, listed, missing):
    found = list(compare_listed_aborts(facts(ended, listed), PLACE))
    assert [(each.producer_id, each.first_offset, each.last_offset) for one in found for each in one.missing] == missing
    assert [(one.file, one.segment, one.wrong, one.torn) for one in found] == [("", 0, [], None)] * bool(missing)


def gap(cause):
    return MissingOffsets(1, 2, cause, 0, 0)


@pytest.mark.parametrize(
    ("more", "compared"),
    [
        ({"missing": [gap(MissingCause.LOG_START)]}, True),
        ({"missing": [gap(MissingCause.LOG_START), gap(MissingCause.UNKNOWN)]}, False),
        ({"damages": ["?"]}, False),
        ({"compacted": True}, False),
        ({"unread": True}, False),
    ],
)
def test_only_of_a_log_that_is_whole_all_aborts_are_known(more, compared):
    known = facts([(7, 20, 30, ABORT)], [], **more)
    assert bool(list(compare_listed_aborts(known, PLACE))) is compared
    assert list(compare_listed_aborts(replace(known, ended=None), PLACE)) == []
