"""One HTML file that needs nothing else: a template with its styles, scripts and data inside.

A Content-Security-Policy allows exactly these styles and scripts, by their hashes, and no request to anywhere.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

import jinja2
from markupsafe import Markup

from kaudit.report.console import visible
from kaudit.report.html.page_model import json_for_script, made_visible

BUDGET = 5_000_000
"""Most bytes of a page: mails and tickets accept as many, and a browser opens them at once."""
BASE_STYLES = ("base.css",)
"""Styles every page has: colours, type, light and dark, print."""
REPORT_STYLES = (*BASE_STYLES, "vendor/uplot/uPlot.min.css", "report.css")
REPORT_SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "report/app.js")
"""Scripts of the report page in the order they run, each an element of its own; of a module, the first to be read."""


def document(  # noqa: PLR0913 - what a page is made of, named at each call
    template: str,
    *,
    title: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Mapping[str, object],
    columns: Iterable[tuple[str, str]] = (),
    context: Mapping[str, object] | None = None,
) -> str:
    """Return the page.

    `template` is a file in `templates` that extends `document.html`; `styles` and `scripts` are files in `assets`. Each of
    `data` (Structs or plain values) becomes a script element of that id with JSON in it, each of `columns` one with base64.
    The template's own variables come from `context`, as plain values; all text in them is escaped and made visible.
    """
    style_texts, script_texts = [_asset(name) for name in styles], [script(name) for name in scripts]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(script_texts)}",
            f"style-src {_hashes(style_texts)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        _environment()
        .get_template(template)
        .render(
            made_visible(dict(context or {})),
            title=visible(title),
            policy=policy,
            styles=[Markup(text) for text in style_texts],  # noqa: S704 - files of this package
            scripts=[Markup(text) for text in script_texts],  # noqa: S704
            data={name: Markup(json_for_script(value)) for name, value in data.items()},  # noqa: S704 - no < in it
            columns=columns,
        )
    )


def _hashes(texts: Sequence[str]) -> str:
    """Return the sources that a policy allows."""
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests) or "'none'"


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(_template),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _template(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def script(name: str) -> str:
    """Return the file `name` of `assets`; a module (it imports others of its folder) with those before it.

    Each module keeps a scope of its own: a function that returns what the module exports, called once. Modules import by
    the names that are exported, and never in a circle.
    """
    folder, _, entry = name.rpartition("/")
    texts: dict[str, str] = {}
    _collect(folder, entry, texts)
    if len(texts) == 1:
        return texts[entry]
    scopes = "\n".join(_scope(module, text) for module, text in texts.items())
    return f'(() => {{\n"use strict";\nconst modules = {{}};\n{scopes}\n}})();\n'


def _collect(folder: str, name: str, texts: dict[str, str]) -> None:
    """Add the module to `texts` after those it imports."""
    text = files(__package__).joinpath("assets", folder, name).read_text(encoding="utf-8")
    for _, imported in _IMPORT.findall(text):
        if imported not in texts:
            _collect(folder, imported, texts)
    texts[name] = text


def _scope(name: str, text: str) -> str:
    body = _EXPORT.sub("", _IMPORT.sub(r'const \1 = modules["\2"];', text))
    return f'modules["{name}"] = (() => {{\n{body}return {{ {", ".join(_EXPORT.findall(text))} }};\n}})();'
