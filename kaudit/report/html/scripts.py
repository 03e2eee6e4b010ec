"""Scripts of a page: a module with all it imports as one classic script, so that nothing has to be built or fetched."""

import re
from importlib.resources import files

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\./[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) )", re.MULTILINE)


def script(name: str) -> str:
    """Return the file `name` of `assets`; a module (it imports others of its folder) with those before it, in one scope.

    Modules of a page therefore have no top-level name in common, and import by the names that are exported.
    """
    folder, _, entry = name.rpartition("/")
    modules: dict[str, str] = {}
    _collect(folder, entry, modules)
    if len(modules) == 1:
        return modules[entry]
    return '(() => {\n"use strict";\n' + "\n".join(modules.values()) + "})();\n"


def _collect(folder: str, name: str, modules: dict[str, str]) -> None:
    """Add the module to `modules` after those it imports; nothing imports in a circle."""
    text = files(__package__).joinpath("assets", folder, name).read_text(encoding="utf-8")
    for imported in _IMPORT.findall(text):
        if imported.removeprefix("./") not in modules:
            _collect(folder, imported.removeprefix("./"), modules)
    modules[name] = _EXPORT.sub("", _IMPORT.sub("", text))
