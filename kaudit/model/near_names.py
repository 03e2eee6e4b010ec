"""What somebody may have meant who typed a name that is not there."""

from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?`, or nothing where nothing is near."""
    import difflib  # noqa: PLC0415 - only a typo pays for it

    near = difflib.get_close_matches(word, list(known), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""
