"""`python -m tests.conformance.recorder VERSION [--histories N] [--seed S] [--scenarios NAME ...]`."""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kaudit.broker.releases.version import Version
from tests.conformance.comparison import Difference
from tests.conformance.recorder import kept
from tests.conformance.recorder.events import EVENTS, events, levels
from tests.conformance.recorder.histories import fail_overs, histories
from tests.conformance.recorder.recording import DIFFERING, Recording, Session, renamed, same_difference, session
from tests.conformance.recorder.scenarios import FAIL_OVER, SCENARIOS, named
from tests.conformance.recorder.script import TOPICS_AT_ONCE
from tests.conformance.recorder.shrink import shrink
from tests.conformance.recorder.topic import Step

EXPIRY_CONFIG: dict[str, object] = {
    "producer.id.expiration.ms": 3000,
    "producer.id.expiration.check.interval.ms": 1000,
}
EXPIRY_CONFIG_BEFORE_3_4: dict[str, object] = {"transactional.id.expiration.ms": 4000}
EXPIRING_SHARE = 6
"""One history in so many is played on a broker that forgets producers soon."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record one release; return 1 if kaudit answers anything otherwise, every time it is asked."""
    parser = argparse.ArgumentParser(prog="recorder")
    parser.add_argument("version", help="a release on Maven Central, e.g. 2.4.0")
    parser.add_argument("--histories", type=int, default=60, metavar="N", help="random histories (%(default)s)")
    parser.add_argument(
        "--events", type=int, default=6, metavar="N", help="histories of each kind of event (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the histories (%(default)s)")
    lists = [name for name in SCENARIOS if name != FAIL_OVER]
    parser.add_argument("--scenarios", nargs="*", default=lists, metavar="NAME", help=f"of {', '.join(lists)} (all)")
    parser.add_argument(
        "--fail-over", action="store_true", help="play nothing but scenarios and histories of three brokers"
    )
    parser.add_argument("--only", default="", metavar="PREFIX", help="scenarios and histories whose name begins so")
    parser.add_argument(
        "--again", type=int, default=2, metavar="K", help="play what differs K times more (%(default)s)"
    )
    parser.add_argument("--shrink", action="store_true", help="reduce what differs every time to a few steps")
    parser.add_argument(
        "--at-once", type=int, default=TOPICS_AT_ONCE, metavar="N", help="topics played side by side (%(default)s)"
    )
    parser.add_argument("--out", type=Path, default=Path("recordings"), help="where recordings go (%(default)s)")
    parser.add_argument(
        "--server-logs", choices=["stock", "debug"], help="keep server logs and log directories, at which levels"
    )
    parser.add_argument("--keep", type=Path, help="where to leave the brokers' directories")
    options = parser.parse_args(arguments)
    rules = sum(_record(options, name, config, rounds) for name, config, rounds in _lists(options))
    return min(rules, 1)


def _lists(options: argparse.Namespace) -> list[tuple[str, dict[str, object], list[list[Step]]]]:
    """(name, configuration, rounds of scenarios) for every broker that is needed."""
    if options.fail_over:
        scenarios = [*named(FAIL_OVER), *fail_overs(options.seed, options.histories)]
        return [(FAIL_OVER, {}, [[each for each in scenarios if each["name"].startswith(options.only)]])]
    own = Version.parse(options.version) >= Version.parse("3.4.0")
    expiry = EXPIRY_CONFIG if own else EXPIRY_CONFIG_BEFORE_3_4
    lists = [(name, expiry if name == "expiry" else {}, [named(name)]) for name in options.scenarios]
    lists.append((EVENTS, {}, [events(options.seed, options.events)]))
    for level, feature in older_levels(Version.parse(options.version)).items():
        lists.append((f"levels-{level}", feature, [levels(options.seed, options.events, level)]))
    expiring = options.histories // EXPIRING_SHARE
    lists.append(("histories", {}, histories(options.seed, options.histories - expiring)))
    lists.append(("histories-expiry", expiry, histories(options.seed, expiring, expires=True)))
    chosen = [
        (name, config, [[each for each in one if each["name"].startswith(options.only)] for one in rounds])
        for name, config, rounds in lists
    ]
    return [(name, config, rounds) for name, config, rounds in chosen if any(rounds)]


def older_levels(release: Version) -> dict[str, dict[str, object]]:
    """Broker configurations of feature levels below the release's own, by the names of their recordings."""
    if release >= Version.parse("4.0.0"):
        return {f"tv{level}": {"transaction.version": str(level)} for level in (0, 1)}
    if release > Version.parse("3.3.2"):
        return {"mv": {"metadata.version": "3.3"}}
    return {"ibp": {"inter.broker.protocol.version": "0.11.0"}} if release >= Version.parse("1.0.0") else {}


def _record(options: argparse.Namespace, name: str, config: dict[str, object], rounds: list[list[Step]]) -> int:
    """Play one list; return how many scenarios differ every time."""
    with tempfile.TemporaryDirectory(prefix="kaudit-recorder-") as scratch:
        home = options.keep / name if options.keep else Path(scratch)
        rules = _play(options, name, config, rounds, home)
        if options.server_logs:
            kept.write(home, options.out / options.version, name)
    return rules


def _play(
    options: argparse.Namespace, name: str, config: dict[str, object], rounds: list[list[Step]], home: Path
) -> int:
    scenarios = {scenario["name"]: scenario for one in rounds for scenario in one}
    of = {"fail_over": name == FAIL_OVER, "server_logs": options.server_logs, "at_once": options.at_once}
    with session(options.version, config, home, **of) as live:
        recordings = [live.play(one) for one in rounds]
        recording = Recording(recordings[0].broker, [line for each in recordings for line in each.lines])
        differing = recording.differing()
        rules, races = _decide(live, [scenarios[topic] for topic in differing], differing, options.again)
        played = recording.without(races)
        played.without(rules).write(options.out / options.version, name)
        if rules:
            played.only(rules).write(options.out / options.version, f"{name}{DIFFERING}")
        recording.only(races).write(options.out / options.version / "races", name)
        _say(f"{options.version} {name}: {len(scenarios) - len(races)} scenarios, {len(races)} races left out")
        for op, figures in played.agreement().items():
            _say(f"  {op:18} {figures.agreed:6} of {figures.attempts:6}")
        for topic in races:
            _say(f"  race: {topic}: {_worded(differing[topic][0])}")
        for topic in rules:
            _say(f"  rule: {topic}: {_worded(differing[topic][0])}")
        causes = Counter(same_difference(differing[topic][0]) for topic in rules)
        _say(f"  {len(rules)} differ every time, of {len(causes)} kinds")
        if options.shrink:
            seen: set[tuple[str, str]] = set()
            for topic in rules:
                kind = same_difference(differing[topic][0])
                if kind not in seen:
                    seen.add(kind)
                    _write_shrunk(live, scenarios[topic], kind, options.out / options.version)
    return len(rules)


def _decide(
    live: Session, scenarios: list[Step], differing: dict[str, list[Difference]], times: int
) -> tuple[list[str], list[str]]:
    """Separate wrong rules, which differ the same way every time, from races of the broker."""
    stable = dict.fromkeys(differing)
    for _ in range(times if scenarios else 0):
        again = live.play_again([scenario for scenario in scenarios if scenario["name"] in stable]).differing()
        for topic in list(stable):
            kinds = {same_difference(difference) for difference in again.get(topic, [])}
            if same_difference(differing[topic][0]) not in kinds:
                del stable[topic]
    return list(stable), [topic for topic in differing if topic not in stable]


def _write_shrunk(live: Session, scenario: Step, kind: tuple[str, str], out: Path) -> None:
    """Write the fewest steps that differ in the same way, as steps and as a recording."""

    def play(candidates: list[list[Step]]) -> list[Recording]:
        shorter = [renamed({**scenario, "steps": steps}, f".{index}") for index, steps in enumerate(candidates)]
        together = live.play_again(shorter)
        return [together.only([each["name"]]) for each in shorter]

    def shows(candidates: list[list[Step]]) -> list[bool]:
        return [any(same_difference(each) == kind for each in one.differences()) for one in play(candidates)]

    steps = shrink(scenario["steps"], shows)
    (recording,) = play([steps])
    recording.write(out / "shrunk", scenario["name"])
    _say(f"  {scenario['name']} in {len(steps)} steps:")
    for step in steps:
        _say(f"    {json.dumps(step)}")
    for difference in recording.differences():
        _say(f"    -> {_worded(difference)}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _worded(difference: Difference) -> str:
    attempt = {key: value for key, value in difference.attempt.items() if key != "records_hex"}
    fields = "; ".join(f"{name}: kaudit {ours}, broker {theirs}" for name, ours, theirs in difference.fields)
    return f"{json.dumps(attempt)}: {fields} ({difference.why})"


if __name__ == "__main__":
    sys.exit(main())
