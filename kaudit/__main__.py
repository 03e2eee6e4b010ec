"""Entry point: answers --version without importing the command line, else runs it."""

import gc
import os
import sys

from kaudit.installation import version_text


def main() -> None:
    """Run kaudit with the process's arguments and exit with its code."""
    sys.exit(_run())


def _run() -> int:
    if sys.argv[1:] in (["--version"], ["-V"]):
        try:
            sys.stdout.write(f"{version_text()}\n")
            sys.stdout.flush()
        except OSError as error:
            sys.stderr.write(f"kaudit: stdout cannot be written: {error.strerror}\n")
            os._exit(2)  # the interpreter would try once more
        return 0
    # Measured: docs/performance.md. Imports leave no garbage to search for, neither now nor when the process ends, and
    # no matrix is multiplied, for which numpy would start a thread per core.
    gc.set_threshold(500_000, 2, 2)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from kaudit.cli.app import run  # after the settings above

        code = run()
    except KeyboardInterrupt:  # during the imports; run() answers for the rest
        code = 130
    gc.freeze()
    return code


if __name__ == "__main__":
    main()
