"""docs/glossary.md names classes that exist, each once."""

import re
from importlib import import_module
from pathlib import Path

GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"
TERMS = re.findall(r"^\| ([^|]+) \| [^|]+ \| `(kaudit[\w.]+)`", GLOSSARY.read_text(), re.MULTILINE)


def resolved(path: str) -> object:
    """The object at a dotted path: its longest importable prefix is a module."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise AssertionError(path)


def test_each_term_has_a_class_that_exists():
    assert len(TERMS) >= 25
    for _, path in TERMS:
        assert resolved(path) is not None


def test_no_term_and_no_class_stands_twice():
    terms, classes = zip(*TERMS, strict=True)
    assert len(set(terms)) == len(terms)
    assert len(set(classes)) == len(classes)
