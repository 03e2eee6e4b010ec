"""Hooks of mkdocs: makes a site of pages that were written to be read in the repository.

The pages at its top become pages of the site, a folder in the navigation becomes the list of its pages, and links that
leave docs/ lead to those pages or to a copy of the file.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
TOP = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages at the top of the repository by what the site calls them."""
_STYLE = ".md-typeset table:not([class]) td { overflow-wrap: anywhere; }\n.md-typeset table:not([class]) td:first-child { min-width: 7rem; }\n"
"""Long names in tables are broken, so that tables of sentences are no wider than the text; names in the first column last."""
_LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"\s*(```|~~~)")
_LIST_ITEM = re.compile(r"\s*([-*+]|\d+\.) ")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of folders that the navigation names; leave out folders without pages."""
    config.nav = list(_entries(config.nav or [], Path(config.docs_dir)))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages at the top of the repository, and the files elsewhere in it that pages link to."""
    files.append(File.generated(config, "site.css", content=_STYLE))
    for name, page in TOP.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for file in list(files.documentation_pages()):
        for match in _LINK.finditer(file.content_string):
            target = _in_repository(file.src_uri, match["target"])
            if target is not None and _copied(target) and files.get_file_from_path(_copy(target)) is None:
                files.append(File.generated(config, _copy(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Point links to the site's pages, and set lists apart from the text above, as code hosts read them."""
    return "\n".join(_separated(_LINK.sub(lambda match: _relinked(match, page.file.src_uri), markdown).split("\n")))


def _entries(nav: list[Any], docs: Path) -> Iterator[Any]:
    for entry in nav:
        title, value = next(iter(entry.items())) if isinstance(entry, Mapping) else (None, entry)
        if isinstance(value, list):
            yield {title: list(_entries(value, docs))}
        elif value.endswith("/"):
            pages = sorted((docs / value).glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
            if pages:
                yield {title: [{_title(path): f"{value}{path.name}"} for path in pages]}
        else:
            yield entry


def _title(page: Path) -> str:
    headings = (line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    return next(headings).removeprefix("# ")


def _in_repository(page: str, target: str) -> str | None:
    """Return the path in the repository that a link of a page means; None for an address, or a place in the page itself."""
    if not target or ":" in target:
        return None
    folder = "" if page in TOP.values() else posixpath.join("docs", posixpath.dirname(page))
    return posixpath.normpath(posixpath.join(folder, target))


def _copied(target: str) -> bool:
    return target not in TOP and not target.startswith("docs/") and (ROOT / target).is_file()


def _copy(target: str) -> str:
    """Return what the site calls a file from elsewhere: a page there would need its own links."""
    return f"files/{target}.txt" if target.endswith(".md") or not posixpath.splitext(target)[1] else f"files/{target}"


def _relinked(match: re.Match[str], page: str) -> str:
    target = _in_repository(page, match["target"])
    if target is None:
        return match[0]
    if target in TOP:
        place = TOP[target]
    elif target.startswith("docs/"):
        place = target.removeprefix("docs/")
    else:
        place = _copy(target)
    relative = posixpath.relpath(place, posixpath.dirname(page) or ".")
    return f"{match['text']}({relative}{match['anchor'] or ''})"


def _separated(lines: list[str]) -> Iterator[str]:
    """Yield the lines with an empty one before each list and table that follows text directly."""
    in_code, before = False, ""
    for line in lines:
        if _FENCE.match(line):
            in_code = not in_code
        begins = (_LIST_ITEM.match(line) and not _LIST_ITEM.match(before)) or (
            line.startswith("|") and not before.startswith("|")
        )
        if begins and not in_code and before.strip() and not before.startswith((" ", "\t")):
            yield ""
        yield line
        before = line
