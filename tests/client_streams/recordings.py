"""What real clients did, as files: one for each scenario, in it one stream for the clients that did the same."""

import tomllib
from pathlib import Path

from tests.client_streams.script import Played

FOLDER = Path(__file__).with_name("recordings")


def recorded(scenario: str) -> dict[str, Played]:
    """What was recorded of a scenario, by the client's version."""
    path = FOLDER / f"{scenario}.toml"
    if not path.exists():
        return {}
    found: dict[str, Played] = {}
    for stream in tomllib.loads(path.read_text())["stream"]:
        lines = stream["requests"].splitlines()
        found |= {version: Played(lines, versions) for version, versions in stream["clients"].items()}
    return found


def keep(scenario: str, version: str, played: Played) -> None:
    """Write down what a client did, in place of what was recorded of it before."""
    streams: dict[tuple[str, ...], dict[str, dict[str, int]]] = {}
    for each, (lines, versions) in sorted((recorded(scenario) | {version: played}).items(), key=_by_number):
        streams.setdefault(tuple(lines), {})[each] = versions
    written = []
    for requests, clients in streams.items():
        text = "\n".join(requests)
        names = "\n".join(f'"{each}" = {{ {_table(versions)} }}' for each, versions in clients.items())
        written.append(f'[[stream]]\nrequests = """\n{text}\n"""\n[stream.clients]\n{names}\n')
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{scenario}.toml").write_text("\n".join(written))


def _table(versions: dict[str, int]) -> str:
    return ", ".join(f"{api} = {version}" for api, version in sorted(versions.items()))


def _by_number(item: tuple[str, Played]) -> list[int]:
    return [int(number) for number in item[0].split(".")]
