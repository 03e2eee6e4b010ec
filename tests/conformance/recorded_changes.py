"""Which changes of the brokers' rules the recordings show: undone, they would make an answer wrong.

`python -m tests.conformance.recorded_changes` prints them, a line each: the `recorded` of their Change in
kaudit/broker/releases/switches.py. It replays every recording of every release that has a change until one answer
differs: some minutes.
"""

import json
from collections.abc import Iterator
from functools import cache

from msgspec.structs import replace

from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from kaudit.broker.releases.switches import switches
from kaudit.broker.releases.table import Change, Switch
from kaudit.broker.releases.version import Version
from kaudit.replay.session import Session
from tests.conformance.agreement import Recorded, recordings
from tests.conformance.comparison import Json, differences, sent_timestamps


def first_shown(switch: Switch, change: Change) -> str | None:
    """The oldest recorded release that has a change and would answer otherwise without it, None if none would."""
    for version in sorted({recorded.version for recorded in recordings()}, key=Version.parse):
        if switch.last_change(Version.parse(version)) is change and is_shown(switch, change, version):
            return version
    return None


def is_shown(switch: Switch, change: Change, version: str) -> bool:
    """Whether an answer recorded on `version` would be wrong if that release did as it was before the change."""
    number = switch.changes.index(change)
    before = switch.changes[number - 1].value if number else switch.default
    profile = replace(profile_for(version), **{switch.name: before})
    return any(
        _differs(*_lines(recorded), Broker(profile))
        for recorded in recordings()
        if recorded.version == version and not recorded.name.endswith("-differing")
    )


def _differs(attempts: list[Json], answers: list[Json], broker: Broker) -> bool:
    sent = sent_timestamps(attempts)
    answered = Session((json.dumps(attempt).encode() for attempt in attempts), broker).answered()
    return any(
        list(differences(attempt, answer.fields, truth, sent))
        for attempt, (_, answer), truth in zip(attempts, answered, answers, strict=True)
    )


@cache
def _lines(recorded: Recorded) -> tuple[list[Json], list[Json]]:
    return recorded.attempts(), recorded.lines("answers")


def lines() -> Iterator[str]:
    """A line for each change that some code reads: where it is shown."""
    for switch in switches().values():
        for change in () if switch.informative else switch.changes:
            yield f"{switch.name} {change.releases}: {first_shown(switch, change) or 'not recorded'}"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)  # noqa: T201
