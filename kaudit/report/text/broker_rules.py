"""The rules of broker releases as text: what sets each release apart, and the table of switches in docs/broker-rules.md.

The table is written by `python -m kaudit.report.text.broker_rules docs/broker-rules.md`.
"""

from collections.abc import Iterator

from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.profile import profile_for, profile_groups
from kaudit.broker.releases.switches import switches
from kaudit.broker.releases.table import Value
from kaudit.broker.releases.version import RELEASES, Version


def release_span(first: Version, last: Version) -> str:
    """Return a range of releases, both included, as text."""
    if last == RELEASES[-1]:
        return f"{first} and later"
    return str(first) if first == last else f"{first} to {last}"


def list_profiles() -> Iterator[str]:
    """Yield a line for each group of releases with the same rules, and lines for the changes of each group."""
    for number, (_, versions) in enumerate(profile_groups()):
        if number == 0:
            yield f"{release_span(versions[0], versions[-1])}: the first with producer ids; every line below is a change to it"
            continue
        yield ""
        yield release_span(versions[0], versions[-1])
        yield from _changes(RELEASES[RELEASES.index(versions[0]) - 1], versions[0])


def what_changed(version: str) -> Iterator[str]:
    """Yield the differences between the rules of a release and those of its neighbours, before and after.

    Raises UnknownVersionError.
    """
    profile = profile_for(version)
    groups = profile_groups()
    here = next(index for index, (rules, _) in enumerate(groups) if not rules.differences(profile))
    versions = groups[here][1]
    yield f"Broker {profile.version}: the rules of {release_span(versions[0], versions[-1])}"
    if here:
        before = groups[here - 1][1]
        yield ""
        yield f"Different from {release_span(before[0], before[-1])} before:"
        yield from _changes(before[-1], versions[0])
    if here + 1 < len(groups):
        after = groups[here + 1][1]
        yield ""
        yield f"Changed again in {release_span(after[0], after[-1])}:"
        yield from _changes(versions[-1], after[0])
    yield ""
    yield "kaudit replay --list-profiles lists every release."


def _changes(old: Version, new: Version) -> Iterator[str]:
    """Yield how two releases differ: each switch with its values, the source of the change and its meaning."""
    before, after = profile_for(old), profile_for(new)
    for name in before.differences(after):
        switch = switches()[name]
        change = switch.last_change(new)
        evidence = "not in this line" if change is None else change.evidence
        yield f"  {name}: {value_text(switch.value_in(old))} -> {value_text(switch.value_in(new))} ({evidence})"
        yield f"    {switch.meaning}"


def value_text(value: Value) -> str:
    """Return a switch's value as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, KafkaError):
        return f"{int(value)} {value.name}"
    if isinstance(value, tuple):
        return f"{value[0]} to {value[1]}"
    return "none" if value is None else str(value)
