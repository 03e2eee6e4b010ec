"""Modules become one classic script: everyone's own names, imports before their users."""

import re
from importlib.resources import files

from kaudit.report.html.document import REPORT_SCRIPTS, script


def test_the_report_page_has_every_module_once_and_no_import_is_left():
    text = script(REPORT_SCRIPTS[-1])
    folder = files("kaudit.report.html").joinpath("assets", "report")
    modules = re.findall(r'^modules\["([\w.]+)"\] = ', text, re.MULTILINE)
    assert sorted(modules) == sorted(entry.name for entry in folder.iterdir())
    assert modules[-1] == "app.js"
    assert re.findall(r"^(?:import|export)\b.*", text, re.MULTILINE) == []
    for imported, position in ((match[1], match.start()) for match in re.finditer(r'= modules\["([\w.]+)"\];', text)):
        assert text.index(f'modules["{imported}"] = ') < position


def test_a_script_without_imports_is_as_it_is():
    library = files("kaudit.report.html").joinpath("assets", REPORT_SCRIPTS[0])
    assert script(REPORT_SCRIPTS[0]) == library.read_text(encoding="utf-8")
