"""Lines that install kaudit: nobody has registered its name on an index, so none may ask an index for it, nor name a tag that is not there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_INSTALLS = re.compile(
    r"\b(?:pip3?|pipx|uvx?)\b[^|\n]*?\b(?:install|add|run --with|tool run|download)\b(?P<what>[^|\n]*)"
)
_FROM_AN_INDEX = re.compile(r"(?<![\w/.-])kaudit(?:\[[\w,]+\])?(?=[\s\"'`=<>~!,;)]|$)(?!\s*(?:@|\$))")
_PINNED = re.compile(r"(?:kaudit|KAUDIT_URL\}?)@(?P<tag>v?\d[\w.]*)|\bref: (?P<ref>v\d[\w.]*)")


def _texts():
    """(path, text) of every file here that people read or copy from: documents, messages, man pages, files of CI."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if name.startswith(("tests/", "benchmarks/", "uv.lock")) or not path.is_file():
            continue
        try:
            yield name, path.read_text()
        except UnicodeDecodeError:
            continue  # pictures and segments


def _asks_an_index(line):
    found = _INSTALLS.search(line)
    return found is not None and _FROM_AN_INDEX.search(found["what"]) is not None


def _tags_named(text):
    return {found["tag"] or found["ref"] for found in _PINNED.finditer(text)}


def test_no_line_asks_an_index_for_kaudit():
    assert [(name, line) for name, text in _texts() for line in text.splitlines() if _asks_an_index(line)] == []


def test_the_quick_start_begins_with_the_first_command_of_the_readme():
    texts = [(ROOT / "README.md").read_text().partition("## Set up")[2], (ROOT / "docs" / "quick-start.md").read_text()]
    first, again = (re.findall(r"^    (\S.*)$", text, re.MULTILINE)[0] for text in texts)
    assert first == again


def test_every_tag_that_a_line_names_is_there():
    tags = subprocess.run(["git", "tag"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert [(name, tag) for name, text in _texts() for tag in _tags_named(text) if tag not in tags] == []


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("pip install kaudit", True),
        ("python -m pip install --quiet 'kaudit[spark]'", True),
        ("pipx install kaudit==0.1.0", True),
        ("uv tool install kaudit", True),
        ('RUN pip install "kaudit>=0.1" pytest', True),
        ('pip install "kaudit @ git+$KAUDIT_URL"', False),
        ('%pip install "kaudit[spark,s3] @ git+$KAUDIT_URL"', False),
        ("pip install dist/kaudit-*.whl", False),
        ("/opt/kaudit/bin/pip install --no-index /wheels/kaudit-*.whl", False),
        ("uv run --locked kaudit scan samples/duplicates", False),
    ],
    ids=range(10),
)
def test_what_counts_as_asking_an_index(line, refused):
    assert _asks_an_index(line) is refused


def test_what_counts_as_naming_a_tag():
    text = "uses: OWNER/kaudit@v0.1.0\nref: v2\npip install 'kaudit @ git+$KAUDIT_URL@0.1'\nuses: actions/checkout@v4\n"
    assert _tags_named(text) == {"v0.1.0", "v2", "0.1"}
