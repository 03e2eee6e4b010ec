"""The account of a capture: what is missing, and documents that are none."""

import pytest

from kaudit.capture.account import Account, PartitionAccount, Run, parse_account
from kaudit.capture.directory import OccupiedError


def test_a_thousand_missing_ranges_are_listed_and_the_others_counted():
    account = PartitionAccount("t", 3)
    for number in range(1002):
        account.miss(10 * number, 10 * number + 5, "gone")
    assert (account.name, len(account.missing), account.missing_unlisted) == ("t-3", 1000, 2)
    last = account.missing[-1]
    assert (last.first_offset, last.last_offset, last.reason) == (9990, 9995, "gone")


def test_a_range_that_a_killed_run_noted_is_noted_anew():
    account = PartitionAccount("t", 0)
    for first, last in ((5, 7), (9, 9), (9, 12)):
        account.miss(first, last, "gone")
    assert [(each.first_offset, each.last_offset) for each in account.missing] == [(5, 7), (9, 12)]
    assert account.missing_unlisted == 0


def test_an_account_is_what_was_written():
    account = Account(
        partitions=[PartitionAccount("t", 0), PartitionAccount("u", 7)], runs=[Run("2026-11-28T22:00:00Z", "h:1")]
    )
    read = parse_account(account.text().encode(), "/capture")
    assert read == account
    assert list(read.by_name()) == ["t-0", "u-7"]
    assert account.text().endswith("}\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "is not an account of kaudit capture"),
        (b"[]", "is not an account of kaudit capture"),
        (b"[" * 100_000, "is not an account of kaudit capture"),
        (
            b'{"schema": "kaudit.capture/2"}',
            "has the schema 'kaudit.capture/2': this kaudit continues kaudit.capture/1",
        ),
        (b'{"partitions": [{"topic": "../x", "partition": 0}]}', "names a partition '../x-0', which no topic can have"),
        (b'{"partitions": [{"topic": "t", "partition": -1}]}', "names a partition 't--1'"),
    ],
)
def test_documents_that_are_none(text, says):
    with pytest.raises(OccupiedError, match=r"^/capture/capture\.json ") as caught:
        parse_account(text, "/capture")
    assert says in str(caught.value)
