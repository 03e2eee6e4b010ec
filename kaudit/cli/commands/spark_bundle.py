"""`kaudit spark-bundle`: the archive Spark's workers need."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from kaudit.cli.streams import refused, write_stdout
from kaudit.cli.targets import output_file
from kaudit.errors import UsageError

app = typer.Typer()


@app.command("spark-bundle", epilog="kaudit spark-bundle -o kaudit-env.tar.gz")
def spark_bundle(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the archive goes, e.g. kaudit-env.tar.gz.")
    ],
) -> None:
    """Pack kaudit and what it imports into an archive for Spark's workers, and show the command that uses it.

    Workers need a Python of the same minor version, nothing else. stdout is that command, ready to be completed.
    """
    from kaudit.spark.bundle import ENTRY, write_bundle  # archives take 20 ms of every list of options

    output_file(str(output), ())
    if output.exists() and not output.is_file():
        raise UsageError(f"--output {output}: is not a file")  # a device would be replaced by one
    with refused(f"--output {output}"):
        held = write_bundle(output)
    sys.stderr.write(f"kaudit: {output} holds kaudit and {len(held)} packages, {output.stat().st_size >> 20} MiB\n")
    write_stdout(
        f"spark-submit --archives {shlex.quote(str(output))}#kaudit-env "
        # the driver runs here, where nobody has unpacked the archive
        f"--conf spark.pyspark.driver.python={shlex.quote(sys.executable)} "
        f"--conf spark.pyspark.python=./kaudit-env/bin/python {shlex.quote(str(ENTRY))} scan\n"
    )
