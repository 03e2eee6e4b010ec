"""The switches of one release, looked up by version, and the releases that share the same rules."""

import difflib
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.releases.switches import Switches, switches
from kaudit.broker.releases.table import Value
from kaudit.broker.releases.version import RELEASES, Version

NEAREST = 3


class UnknownVersionError(ValueError):
    """No profile has this version; `nearest` are the known releases closest to it."""

    def __init__(self, version: str, nearest: tuple[Version, ...]) -> None:
        self.version = version
        self.nearest = nearest
        super().__init__(f"unknown broker version {version!r}; nearest known: {', '.join(map(str, nearest))}")


class Profile(Switches, frozen=True, kw_only=True):
    """The switches as they are set in one release."""

    version: Version
    """The release this profile was looked up for."""

    def has_rules_of(self, other: "Profile") -> bool:
        """Return whether all switches are set as in `other`."""
        return self == replace(other, version=self.version)

    def differences(self, other: "Profile") -> tuple[str, ...]:
        """Names of the switches in which `other` is set differently, in the order of Switches."""
        return tuple(name for name in Switches.__struct_fields__ if getattr(self, name) != getattr(other, name))


class VersionRange(Struct, frozen=True):
    """The releases a log may have been written by: at_least <= version <= at_most, both known releases."""

    at_least: Version
    at_most: Version

    def profiles(self) -> tuple[Profile, ...]:
        """Return the distinct sets of rules inside the range, oldest first, each by its first release."""
        return _distinct_profiles(self.at_least, self.at_most)

    def any(self, predicate: Callable[[Profile], bool]) -> bool:
        """Return whether some release in the range fulfils `predicate`."""
        return any(predicate(profile) for profile in self.profiles())

    def all(self, predicate: Callable[[Profile], bool]) -> bool:
        """Return whether every release in the range fulfils `predicate`."""
        return all(predicate(profile) for profile in self.profiles())

    @property
    def newest(self) -> Profile:
        """The rules of the newest release."""
        return profile_for(self.at_most)

    @property
    def is_exact(self) -> bool:
        """Whether one set of rules is left."""
        return len(self.profiles()) == 1


def all_releases() -> tuple[Version, ...]:
    """Return every release that has a profile, oldest first."""
    return RELEASES


def profile_for(version: str | Version) -> Profile:
    """Return the rules of a release: the text's, or that of the line it names.

    A line or patch newer than the newest one known, of the same major version, has the newest rules. Raises
    UnknownVersionError for every other version, suggesting known ones.
    """
    parsed = _parse(version)
    return replace(_profiles()[_known(parsed)], version=parsed)


def known_release(version: str) -> Version:
    """Return the known release a text like `4.2` or `2.4.1` means, as profile_for does. Raises UnknownVersionError."""
    return _known(_parse(version))


def _parse(version: str | Version) -> Version:
    try:
        return version if isinstance(version, Version) else Version.parse(version)
    except ValueError:
        names = difflib.get_close_matches(str(version), [str(known) for known in RELEASES], NEAREST, cutoff=0.0)
        raise UnknownVersionError(str(version), tuple(sorted(map(Version.parse, names)))) from None


def _known(version: Version) -> Version:
    if version in RELEASES:
        return version
    newest = RELEASES[-1]
    if version.names_a_line:
        in_line = [known for known in RELEASES if known.line == version.line]
        if in_line:
            return in_line[-1]
    if version > newest and version.numbers[0] == newest.numbers[0]:
        return newest
    raise UnknownVersionError(str(version), _nearest(version))


def _nearest(version: Version) -> tuple[Version, ...]:
    below = [known for known in RELEASES if known < version][-NEAREST + 1 :]
    above = [known for known in RELEASES if known > version][: NEAREST - len(below)]
    return tuple(below + above)


@cache
def _profiles() -> Mapping[Version, Profile]:
    """Return the rules of every release, made change by change: most switches never changed, and the others once."""
    values: dict[Version, dict[str, Value]] = {version: {} for version in RELEASES}
    for name, row in switches().items():
        for change in row.changes:
            for version in RELEASES[bisect_left(RELEASES, min(change.since)) :]:
                if version.includes_fix(*change.since):
                    values[version][name] = change.value
    return {version: replace(Profile(version=version), **own) for version, own in values.items()}


@cache
def _distinct_profiles(at_least: Version, at_most: Version) -> tuple[Profile, ...]:
    found: list[Profile] = []
    for version in RELEASES:
        if at_least <= version <= at_most:
            candidate = _profiles()[version]
            if not found or not found[-1].has_rules_of(candidate):
                found.append(candidate)
    return tuple(found) or (profile_for(at_most),)


def profile_groups() -> tuple[tuple[Profile, tuple[Version, ...]], ...]:
    """Return neighbouring releases with equal rules as (rules, releases), oldest first."""
    groups: list[tuple[Profile, list[Version]]] = []
    for version in RELEASES:
        candidate = _profiles()[version]
        if groups and groups[-1][0].has_rules_of(candidate):
            groups[-1][1].append(version)
        else:
            groups.append((candidate, [version]))
    return tuple((profile, tuple(versions)) for profile, versions in groups)
