"""Scripts of a page: a module with all it imports as one classic script, so that nothing has to be built or fetched."""

import re
from importlib.resources import files

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
