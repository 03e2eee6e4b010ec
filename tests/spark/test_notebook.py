"""docs/spark.ipynb runs under Spark Connect, and shows what is in it: `python -m tests.spark.test_notebook` renews its outputs."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from kaudit.spark.java import java_home

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "spark.ipynb"
_ENVIRONMENT = {
    "SPARK_REMOTE": "local[2]",  # a server of Spark Connect: a session knows DataFrames, and no SparkContext
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": str(ROOT),
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}


def run():
    """Return the notebook, executed in a kernel of its own."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    home = java_home(os.environ)
    environment = {**os.environ, **_ENVIRONMENT} | ({} if home is None else {"JAVA_HOME": home})
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    notebook.cells.append(nbformat.v4.new_code_cell("print(type(spark).__module__)"))
    client.execute(env=environment)
    assert notebook.cells.pop().outputs[0]["text"] == "pyspark.sql.connect.session\n"
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") == "stdout"]
    return notebook


def shown(notebook):
    return ["".join(output["text"] for output in cell.get("outputs", ())) for cell in notebook.cells]


@pytest.mark.cluster
def test_the_notebook_shows_what_it_says():
    before = nbformat.read(NOTEBOOK, as_version=4)
    executed = shown(run())
    assert executed == shown(before)
    found = local.scan(ScanOptions([str(ROOT / "samples" / "zombie")]), SilentProgress()).findings
    table = next(text for text in executed if "severity" in text)
    own = [finding for finding in found if finding.topic in {"x07-old-epoch-after-expiry", "s38-epoch-max"}]
    assert own
    assert [table.count(f"|{code}|") for code in {finding.code for finding in own}] == [
        sum(finding.code == code for finding in own) for code in {finding.code for finding in own}
    ]


if __name__ == "__main__":
    nbformat.write(run(), NOTEBOOK)
