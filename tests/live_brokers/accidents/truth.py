"""What is true of an accident by the producers' acknowledgements and a consumer, as truth.json keeps it."""

import os
from pathlib import Path

import msgspec

DATA = Path(os.environ.get("KAUDIT_ACCIDENTS", Path(__file__).parents[2] / "data" / "accidents"))
"""Where recordings are kept; `.ci/full tiering` makes fresh ones elsewhere."""
TRUTH = DATA / "truth.json"


class TopicTruth(msgspec.Struct, kw_only=True):
    """Records of one topic: counts, but for `lost_keys`, the first and the last lost one."""

    acknowledged: int
    """Of transactions those whose commit was acknowledged."""
    failed: int
    """Answered with an error, of an aborted transaction, or never answered."""
    read: int
    """By a consumer with `isolation.level=read_committed`, every copy."""
    lost: int
    """Acknowledged, and no consumer gets them, although nobody asked for their deletion."""
    deleted: int = 0
    """Acknowledged, and deleted on request: by DeleteRecords, or with the topic."""
    doubled: int
    """Copies beyond the first."""
    hidden: int
    """Acknowledged and there, but not for `read_committed`."""
    failed_but_read: int
    lost_keys: list[str]


class Moment(msgspec.Struct):
    """One copy of the brokers' directories. `healthy`: nothing is wrong, and no warning is due."""

    name: str
    healthy: bool
    topics: dict[str, TopicTruth] = {}


class Accident(msgspec.Struct, kw_only=True):
    """One recording."""

    played: str
    """What was done, in the words of the function that did it."""
    brokers: str
    clients: list[str]
    moments: list[Moment]


def truths() -> dict[str, Accident]:
    """Every recorded accident by name."""
    return msgspec.json.decode(TRUTH.read_bytes(), type=dict[str, Accident]) if TRUTH.exists() else {}


def keep(name: str, accident: Accident) -> None:
    """Write one accident's truth beside those of the others."""
    known = {**truths(), name: accident}
    DATA.mkdir(parents=True, exist_ok=True)
    TRUTH.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(known.items()))), indent=1) + b"\n")
