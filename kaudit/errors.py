"""Errors that end a command with a message and an exit code of their own (README, "Exit codes"), and suggestions for misspelt names."""

import difflib
from collections.abc import Iterable


class NothingToAuditError(Exception):
    """No segment was found under the given paths: exit code 3. The text names what was found instead."""


class UnreadableInputError(NothingToAuditError):
    """The given input could not be read: exit code 4."""


class UsageError(Exception):
    """An option or a path is wrong: exit code 2. The text says what is wrong and what to try."""


class MissingExtraError(UsageError, ImportError):
    """What is asked for needs libraries that are not installed: exit code 2. The text says what installs them."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?`, or an empty text where no known name is similar; of equally similar ones a mistyped letter counts."""

    def likeness(name: str) -> tuple[float, int]:
        return difflib.SequenceMatcher(None, name, word).ratio(), sum(map(str.__eq__, name, word))

    near = sorted(difflib.get_close_matches(word, list(known), n=12), key=likeness, reverse=True)[:3]
    return f"; did you mean {' or '.join(near)}?" if near else ""
