"""The notebooks of live findings run with the newest Spark that Delta Lake and Iceberg support, and show what is in them.

`python -m tests.release.test_live_findings PYTHON` renews their outputs; PYTHON has that Spark, and kaudit.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest

import kaudit
from kaudit.model.severity import Severity
from kaudit.spark.java import java_home
from tests.release.interpreters import ROOT

pytestmark = pytest.mark.release
NOTEBOOKS = [ROOT / "docs" / f"live-findings-{name}.ipynb" for name in ("delta", "iceberg")]
RELEASE = "4.1.4"
_CELL = "-- next cell --"


def jars(work):
    """Return the paths of what tables need, from Maven."""
    shutil.copy(Path(__file__).with_name("lake-pom.xml"), work / "pom.xml")
    command = ["mvn", "-q", "-B", "dependency:build-classpath", "-Dmdep.outputFile=jars"]
    subprocess.run(command, cwd=work, check=True, timeout=900, stdout=subprocess.DEVNULL)
    return (work / "jars").read_text().strip().replace(":", ",")


def run(notebook, python, work):
    """Return what each cell of code prints."""
    code = f'\nprint("{_CELL}")\n'.join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    (work / "notebook.py").write_text(code)
    submit = f"--master local[2] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 --jars {jars(work)} pyspark-shell"
    home = java_home(os.environ)
    kept = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]} | ({} if home is None else {"JAVA_HOME": home})
    own = {
        "PYSPARK_SUBMIT_ARGS": submit,
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(work),
    }
    command = [str(python), str(work / "notebook.py")]
    done = subprocess.run(command, cwd=ROOT, env=kept | own, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return [text.removeprefix("\n") for text in done.stdout.split(f"{_CELL}\n")]


def shown(notebook):
    return ["".join(output["text"] for output in cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_says_and_its_table_has_the_findings_of_a_scan(path, python_with, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    *_, column, merged, dashboard = executed = run(notebook, python_with(RELEASE), tmp_path)
    assert executed == shown(notebook)
    assert column == "string\n"
    days = [kaudit.scan(ROOT / "samples" / name).findings for name in ("duplicates", "zombie")]
    first, second = len(days[0]), len(days[0]) + len(days[1])
    assert [int(line.split()[0]) for line in merged.splitlines()] == [first, second, second]
    rows = [line.split("|")[1:-1] for line in dashboard.splitlines() if line.startswith("|")][1:]
    found = [each for day in days for each in day if each.severity is not Severity.NOTE]
    assert sum(int(row[3]) for row in rows) == len(found)
    assert {row[2].strip() for row in rows} == {each.code for each in found}


def renew(python):
    """Write what the cells print into the notebooks."""
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as work:
            printed = iter(run(notebook, python, Path(work)))
        for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
            text = next(printed)
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
        nbformat.write(notebook, path)


if __name__ == "__main__":
    renew(Path(sys.argv[1]))
