"""What a scan says of the recorded accidents, beside the truth: python -m tests.live_brokers.accidents.judged prints the table."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import kaudit
from kaudit.model.impact import Impact
from kaudit.model.total_impact import total_impact
from tests.live_brokers.accidents.truth import DATA, Moment, TopicTruth, truths
from tests.unpacked import unpacked

NOT_YET: dict[str, set[str]] = {}
"""What the scan of a moment says wrongly as yet, by `ACCIDENT/MOMENT`."""


UNKNOWN = {
    "torn-tail/recovered": "clicks lost",  # how long the log had been
    **dict.fromkeys(
        ("torn-leader/follower-down", "torn-leader/recovered"), "parts lost"
    ),  # likewise of the leader's, when it was alone
    # how long the logs were when the power failed, and before the snapshots were put back
    "power-everywhere/recovered": "votes lost",
    "snapshots-restored/restored": "beds lost",
    # how long the log of the leader was whose disk is gone
    **dict.fromkeys(("emptied-disk/other-leads", "emptied-disk/recovered"), "rents lost"),
}
"""What the recording does not hold, so that the scan says that the most is not known, and names what would show it."""
MAY_BE_NONE = {
    # what producers without ids sent again: made within the second by which their clocks may be ahead of the brokers'
    "leader-storm/over": "trades lost"
}
"""What the recording does not hold, so that the scan says that it may be none, with an upper bound."""


def recorded(name: str) -> Path:
    """Return the folder of an accident, unpacked, to be read; below it lies one for each moment."""
    return unpacked(DATA / f"{name}.tar.xz")


def copied(name: str, into: Path) -> Path:
    """Return the same to be edited, below a folder."""
    return Path(shutil.copytree(recorded(name), into / name))


def wrong(where: str, moment: Moment, result: kaudit.ScanResult) -> dict[str, str]:
    """Return what a scan of a moment, `where`, says wrongly, by what it is about: `TOPIC lost`, `TOPIC doubled`, `TOPIC hidden` or `warnings`."""
    found: dict[str, str] = {}
    for topic, true in moment.topics.items():
        cost = total_impact(finding for finding in result.findings if finding.topic == topic)
        for about, truth, least, most in _figures(true, cost):
            # what somebody had deleted may be called lost, and need not
            bound = 2 * (truth + (true.deleted if about == "lost" else 0))
            unknown, may_be_none = (f"{topic} {about}" == table.get(where) for table in (UNKNOWN, MAY_BE_NONE))
            fits = most is None if unknown else most is not None and truth <= most <= bound
            if not (fits and (0 if unknown or may_be_none else truth / 2) <= least <= truth):
                found[f"{topic} {about}"] = f"{truth}, the scan says {least} to {'unknown' if most is None else most}"
    if moment.healthy and (
        warned := sorted({each.code for each in result.findings if each.severity.name in ("ERROR", "WARNING")})
    ):
        found["warnings"] = ", ".join(warned)
    return found


def _figures(true: TopicTruth, cost: Impact) -> Iterator[tuple[str, int, int, int | None]]:
    lost = cost.records_lost_at_least or 0
    unknown = cost.records_lost_at_most is None and cost.records_lost_at_least is not None
    yield "lost", true.lost, lost, None if unknown else cost.records_lost_at_most or 0
    doubled, hidden = cost.records_duplicated or 0, cost.offsets_invisible or 0
    many = cost.records_duplicated is not None and cost.records_duplicated_at_most is None
    yield "doubled", true.doubled, doubled, None if many else cost.records_duplicated_at_most or 0
    if true.hidden:  # what is open and not yet committed is hidden too
        yield "hidden", true.hidden, min(hidden, true.hidden), hidden


def main() -> None:
    """Print what is wrong."""
    for name, accident in truths().items():
        for moment in accident.moments:
            result = kaudit.scan(recorded(name) / moment.name)
            codes = sorted({finding.code for finding in result.findings})
            sys.stdout.write(f"{name}/{moment.name}: {', '.join(codes) or 'no findings'}\n")
            for about, said in wrong(f"{name}/{moment.name}", moment, result).items():
                sys.stdout.write(f"    wrong: {about}: {said}\n")


if __name__ == "__main__":
    main()
