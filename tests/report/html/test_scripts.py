"""A page's scripts: what no other module is needed for stays as it is, others are put together once each."""

import re
from pathlib import Path

import kaudit.report.html
from kaudit.report.html.document import script

ASSETS = Path(kaudit.report.html.__file__).parent / "assets"


def test_a_script_without_imports_is_its_file():
    assert script("report/format.js") == (ASSETS / "report/format.js").read_text(encoding="utf-8")


def test_modules_stand_before_those_that_import_them():
    text = script("report/app.js")
    assert text.startswith('(() => {\n"use strict";\nconst modules = {};\nmodules["')
    assert text.endswith("\n})();\n")
    defined = re.findall(r'^modules\["([^"]+)"\] = \(\(\) => \{$', text, re.MULTILINE)
    assert len(defined) == len(set(defined)) > 2
    assert defined[-1] == "app.js"
    for match in re.finditer(r'^const \{[^}]*\} = modules\["([^"]+)"\];$', text, re.MULTILINE):
        assert text.index(f'modules["{match[1]}"] = (() =>') < match.start()
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
