"""The part of a documentation page that a program writes, between two comments that mark its place."""

from pathlib import Path


def write_section(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text between the lines `begin` and `end` of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
