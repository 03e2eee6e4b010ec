"""The switches of one release of one client, looked up by a name like `java 2.4.1`."""

import difflib
from functools import cache

from msgspec.structs import replace

from kaudit.broker.releases.known_releases import RELEASES
from kaudit.broker.releases.profile import UnknownVersionError, known_release
from kaudit.broker.releases.table import Change, Value, rows_of
from kaudit.broker.releases.version import Version
from kaudit.simulate.producer.releases.other_clients import OTHER_CLIENTS, OtherClient
from kaudit.simulate.producer.releases.switches import ClientSwitches

JAVA = "java"
NEWEST = "current"
"""What scenarios may call the newest release of the Java client."""


class UnknownClientError(ValueError):
    """No client has this name; `expected` says what was expected."""

    def __init__(self, name: str, expected: str) -> None:
        self.expected = expected
        super().__init__(f"unknown client {name!r}: expected {expected}")


class ClientProfile(ClientSwitches, frozen=True, kw_only=True):
    """The switches as they are set in one release of a client."""

    library: str
    version: Version

    @property
    def name(self) -> str:
        """The library and release, such as `java 2.4.1`."""
        return f"{self.library} {self.version}"

    @property
    def backoff_grows(self) -> bool:
        """Whether the backoff doubles with each retry."""
        return self.default_retry_backoff_max_ms is not None


@cache
def client_for(name: str) -> ClientProfile:
    """Return the switches of `LIBRARY RELEASE`; `java` may be left out, and `current` is the newest Java client.

    A release given as its line, `java 2.4`, is the newest of that line. Raises UnknownClientError.
    """
    library, _, release = name.rpartition(" ")
    library = library.strip() or JAVA
    if library not in (JAVA, *OTHER_CLIENTS):
        near = difflib.get_close_matches(library, (JAVA, *OTHER_CLIENTS), 1)
        expected = f"a client and its release like java 2.4.1; {'did you mean ' + near[0] if near else 'clients'}"
        raise UnknownClientError(name, f"{expected}{'?' if near else ' are ' + ', '.join((JAVA, *OTHER_CLIENTS))}")
    if library != JAVA:
        return _other(name, library, release, OTHER_CLIENTS[library])
    return java_client(RELEASES[-1]) if release == NEWEST else java_client(_java_release(name, release))


def _java_release(name: str, release: str) -> Version:
    try:
        return known_release(release)
    except UnknownVersionError as error:
        nearest = ", ".join(f"{JAVA} {version}" for version in error.nearest)
        raise UnknownClientError(name, f"a client and its release, the nearest are {nearest}") from None


def java_client(version: Version) -> ClientProfile:
    """Return the switches of a release of the Java client."""
    values = {switch: row.value_in(version) for switch, row in rows_of(ClientSwitches).items()}
    return replace(ClientProfile(library=JAVA, version=version), **values)


def _other(name: str, library: str, release: str, client: OtherClient) -> ClientProfile:
    first = Version.parse(client.first)
    try:
        version = Version.parse(release)
    except ValueError:
        version = None
    if version is None or version < first:
        raise UnknownClientError(name, f"a release of {library} from {first} on, like {library} {first}")
    values = {switch: _value(changes, version) for switch, changes in client.changes.items()}
    return replace(java_client(Version.parse(client.like)), library=library, version=version, **values)


def _value(changes: tuple[Change, ...], version: Version) -> Value:
    return [change.value for change in changes if version.includes_fix(*change.since)][-1]
