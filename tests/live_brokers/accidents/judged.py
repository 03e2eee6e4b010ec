"""What a scan says of the recorded accidents, beside the truth: python -m tests.live_brokers.accidents.judged prints the table.

With directories, such as those of accidents that are not recorded here: their verdicts, as a terminal of 80 columns shows them.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import kaudit
from kaudit.model.impact import Impact
from kaudit.model.severity import Severity, Status
from kaudit.model.total_impact import total_impact
from kaudit.report.console import Console
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.table import render_scan
from kaudit.results.verdict import made_verdict
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
    """Return what a scan of a moment, `where`, says wrongly, by what it is about: `TOPIC lost`, `TOPIC doubled`, `TOPIC hidden`, `warnings` or `verdict`."""
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
            if (unknown or may_be_none) and not _is_named(topic, result):
                found[f"{topic} evidence"] = "the verdict and the finding do not name what is missing"
    if moment.healthy and (warned := sorted({each.code for each in result.findings if each.severity > Severity.NOTE})):
        found["warnings"] = ", ".join(warned)
    if len(rows := verdict_rows(result)) > MOST_ROWS:
        found["verdict"] = f"{len(rows)} rows of 80 columns: {' | '.join(rows)}"
    return found


MOST_ROWS = 3


def verdict_rows(result: kaudit.ScanResult) -> list[str]:
    """Return the rows that the verdict takes in the table on a terminal of 80 columns; a command is one, as it is printed."""
    return render_scan(result, RenderOptions(Console(width=80))).partition("\n\n")[0].splitlines()


def _is_named(topic: str, result: kaudit.ScanResult) -> bool:
    """Return whether a finding about a topic says what to fetch to know what it lost, and the first line says what of it is missing."""
    fetches = [
        fetch
        for finding in result.findings
        if finding.topic == topic and finding.status is Status.NEW and finding.impact.is_lossy
        if (fetch := finding.evidence.to_be_certain) is not None
    ]
    said = made_verdict(result).lines[0]
    return any(all(each.partition(": ")[0] in said for each in fetch.split("; ")) for fetch in fetches)


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
    """Print what is wrong; of directories that are given the verdicts, and how many rows they take."""
    for directory in sys.argv[1:]:
        rows = verdict_rows(kaudit.scan(directory))
        sys.stdout.write(f"{directory}: {len(rows)} rows\n" + "".join(f"    {row}\n" for row in rows))
    if sys.argv[1:]:
        return
    for name, accident in truths().items():
        for moment in accident.moments:
            result = kaudit.scan(recorded(name) / moment.name)
            codes = sorted({finding.code for finding in result.findings})
            sys.stdout.write(f"{name}/{moment.name}: {', '.join(codes) or 'no findings'}\n")
            for about, said in wrong(f"{name}/{moment.name}", moment, result).items():
                sys.stdout.write(f"    wrong: {about}: {said}\n")


if __name__ == "__main__":
    main()
