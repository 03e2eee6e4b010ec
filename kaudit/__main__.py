"""Entry point: answers --version without importing anything heavy, then hands over to the CLI."""

import gc
import os
import sys

_COLLECTIONS = (100_000, 2, 2)
"""New objects between two searches for garbage, and young searches before an older generation is searched too.

Python's 700 mean hundreds of searches through what imports leave; a small scan makes 63,000 objects that could be garbage. Its
10 and 10 would let the graphs of a hundred simulations wait: 230 MB instead of 120.
"""


def main() -> None:
    """Run kaudit with the process's arguments and exit with its code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from kaudit import __version__

        sys.stdout.write(f"kaudit {__version__}\n")
        return
    gc.set_threshold(*_COLLECTIONS)
    # no matrix is multiplied here, and importing numpy starts a thread a core for that
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from kaudit.cli.app import run

        code = run()
    except KeyboardInterrupt:  # during the imports; run() answers for the rest
        code = 130
    gc.freeze()  # or the interpreter looks for garbage among all modules twice before it ends: a fifth of a short run
    sys.exit(code)


if __name__ == "__main__":
    main()
