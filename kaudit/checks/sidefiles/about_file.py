"""Where a finding about a side file sits: the fields all these checks fill in the same way."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from kaudit.checks.context import Context

_PARTITION_FILE = "the file belongs to the partition, not to a producer"
_WHOLE_FILE = "the file as a whole is meant"
_ABSENT = {
    "producer_id": _PARTITION_FILE,
    "producer_epoch": _PARTITION_FILE,
    "offset": _WHOLE_FILE,
    "last_offset": _WHOLE_FILE,
    "position": _WHOLE_FILE,
    "segment": "the file does not belong to one segment",
}


class AboutFile(TypedDict):
    """Arguments of `Check.finding`. The anchor is the file's name, so that it is the same finding in every copy."""

    file: str
    anchor: str
    following: Sequence[str]
    absent: Mapping[str, str]


def partition_file(context: Context, name: str) -> AboutFile:
    """A file in the partition's directory."""
    return {
        "file": context.side_file(name),
        "anchor": name,
        "following": (context.inspect_file(name),),
        "absent": _ABSENT,
    }


def log_dir_file(context: Context, name: str) -> AboutFile:
    """A file in the log directory, beside the partition's own."""
    return {
        "file": context.log_dir_file(name),
        "anchor": name,
        "following": (context.inspect_log_dir_file(name),),
        "absent": _ABSENT,
    }
