"""The Markdown of pages on a terminal."""

from kaudit.report.console import Console
from kaudit.report.text.explain_pages import markdown_lines

PAGE = """\
First `word` of
two lines.
<!-- not shown -->

- one
  and on
* two
12. three

```console
$ kaudit scan `x`
- no bullet

<!-- shown -->
```
after
"""


def test_paragraphs_lists_and_code():
    assert list(markdown_lines(PAGE, Console())) == [
        "  First word of two lines.",
        "",
        "  - one and on",
        "  * two",
        "  12. three",
        "",
        "    $ kaudit scan `x`",
        "    - no bullet",
        "",
        "    <!-- shown -->",
        "  after",
    ]
    assert list(markdown_lines("", Console())) == []


def test_prose_is_wrapped_under_itself_and_code_is_not():
    text = "- " + "word " * 12 + "\n```\n" + "code " * 12 + "\n```\n"
    assert list(markdown_lines(text, Console(width=30))) == [
        "  - word word word word word",
        "    word word word word word",
        "    word word",
        "    " + ("code " * 12).rstrip(),
    ]
    assert list(markdown_lines("a\n```\nb\n```", Console(color=True))) == ["  a", "\x1b[1m    b\x1b[0m"]
