"""Findings about a file of a partition as a whole."""

import functools
from typing import Unpack

from kaudit.checks.check import SIDE_FILES_NOT_DAMAGED, Check, FindingFields, Withdrawal, check
from kaudit.checks.context import Context
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Finding

side_file_check = functools.partial(check, withdrawn_by=Withdrawal.NEXT_READING, simulated=SIDE_FILES_NOT_DAMAGED)
"""Declares a check of a file beside the segments: it may be read at another time than they are."""
_PARTITION_FILE = "the file belongs to the partition, not to a producer"
_WHOLE_FILE = "the file as a whole is meant"
WHOLE_FILE = {
    "producer_id": _PARTITION_FILE,
    "producer_epoch": _PARTITION_FILE,
    "offset": _WHOLE_FILE,
    "last_offset": _WHOLE_FILE,
    "position": _WHOLE_FILE,
    "segment": "the file does not belong to one segment",
}
"""Why a finding about a file lacks these fields."""


class FaultEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    """Evidence of a file that is not as brokers write it."""

    detail: str


class UnparsableEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    """Evidence of a file that cannot be parsed; `size` in bytes."""

    reason: str
    detail: str
    size: int
    older_snapshot: str | None = None


def file_finding(
    check: Check,
    context: Context,
    name: str,
    message: str,
    *,
    segment: int | None = None,
    **fields: Unpack[FindingFields],
) -> Finding:
    """Build a finding about a file in the partition's directory. Its anchor is the file's name: it is the same in every copy."""
    placed: FindingFields = {"file": context.side_file(name), "anchor": name, "absent": WHOLE_FILE, **fields}
    return check.finding(context, message, segment=segment, following=(context.inspect_file(name),), **placed)
