"""Transactional ids as hashes that keep the form by which programs name their transactions (kaudit.model.transactional_ids)."""

import re
from collections.abc import Callable
from typing import Final

from kaudit.model.transactional_ids import UUID, name_pattern, parse_name

_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")
_DIGITS: Final = 10
_PIECES: Final = re.compile(rf"(?P<uuid>{UUID})|(?P<number>\d+)|(?P<word>[^\W\d_]+)", re.IGNORECASE)
_KEPT: Final = frozenset({"connect", "cluster", "migration", "producer"})
"""Words of members that are the programs' own."""
_APPLICATION: Final = re.compile(
    r"(?P<begin>_confluent-ksql-)?(?P<own>.*?)(?P<end>-?(?:coordinator|worker)|-[0-9a-f]{32})?(?P<rest>[-_.]*)",
    re.DOTALL,
)
"""What programs add to the name that the application has from its operator: ksqlDB, Iceberg's sink, Flink's operators."""

Digest = Callable[[str], str]
"""Returns hexadecimal digits that stand for a text."""


def letters_of(digits: str) -> str:
    """Return letters for the first hexadecimal digits of a digest: no number is read into them."""
    return digits[:_DIGITS].translate(_LETTERS)


def in_form(name: str, kind: str, salt: int, digest: Digest) -> str | None:
    """Return a name for a transactional id with all its parts replaced, and `kind` before the application's; None of an id without a known form.

    Ids of one application have that part in common, ids of one member all but their numbers; `salt` changes the last number alone, or the
    application of an id without one.
    """
    known = parse_name(name)
    match = None if known is None else known.format.match(name)
    if known is None or match is None:
        return None
    numbers = [found.span() for found in _PIECES.finditer(name) if found["number"]]
    begin, end = match.span("application")
    last = next((span for span in reversed(numbers) if not begin <= span[0] < end), None)

    def piece(found: re.Match[str]) -> str:
        text = found[0]
        if found["number"]:
            return str(int(digest(f"{text} {salt if found.span() == last else ''}")[:_DIGITS], 16))
        if found["uuid"]:
            hashed = digest(text)
            return "-".join((hashed[:8], hashed[8:12], hashed[12:16], hashed[16:20], hashed[20:32]))
        return text if text in _KEPT else letters_of(digest(text))

    changed = []
    place = 0
    groups = sorted((match.span(group), group) for group in match.groupdict() if match[group] is not None)
    for (first, stop), group in groups:
        changed.append(name[place:first])
        place = stop
        if group == "application":
            changed.append(_application(name[first:stop], kind, "" if last else str(salt), digest))
        else:
            changed.append("".join(_replaced(name, first, stop, piece)))
    changed.append(name[place:])
    token = "".join(changed)
    again = parse_name(token)
    return token if again is not None and again.format is known.format else None


def _replaced(name: str, first: int, stop: int, piece: Callable[[re.Match[str]], str]) -> list[str]:
    """Return the pieces of a part of a name, which are found in the whole of it, replaced."""
    parts, place = [], first
    for found in _PIECES.finditer(name, first, stop):
        parts += [name[place : found.start()], piece(found)]
        place = found.end()
    return [*parts, name[place:stop]]


def _application(text: str, kind: str, salt: str, digest: Digest) -> str:
    parts = _APPLICATION.fullmatch(text)
    assert parts is not None
    own, end = parts["own"], parts["end"] or ""
    if len(end) > 32:
        end = f"-{digest(end)[:32]}"
    pattern = name_pattern(own)
    # ids that differ in numbers alone are of one application: so are their hashes
    number = f"-{int(digest(own)[:_DIGITS], 16)}" if pattern != own else ""
    return f"{parts['begin'] or ''}{kind}-{letters_of(digest(pattern + salt))}{number}{end}{parts['rest']}"
