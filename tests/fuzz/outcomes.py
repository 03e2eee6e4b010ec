"""What became of an input, in a few words: whether it led where none before it led."""

import re

_NUMBER = re.compile(r"-?[0-9][0-9,.:]*|0x[0-9a-f]+|'[^']*'|\"[^\"]*\"")
_seen: set[str] = set()


def note(*words: object) -> None:
    """Say what the target just did: an error's text, a code. Numbers and quoted text in it count for nothing."""
    _seen.add(_NUMBER.sub("", " ".join(map(str, words)))[:200])


def forget() -> None:
    """Begin with another input."""
    _seen.clear()


def seen() -> frozenset[str]:
    """Return what was noted since."""
    return frozenset(_seen)
