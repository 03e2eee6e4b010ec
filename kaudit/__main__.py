"""Entry point: answers --version without importing the command line, else runs it."""

import sys


def main() -> None:
    """Run kaudit with the process's arguments and exit with its code."""
    sys.exit(_run())


def _run() -> int:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from kaudit import __version__

        sys.stdout.write(f"kaudit {__version__}\n")
        return 0
    try:
        from kaudit.cli.app import run

        return run()
    except KeyboardInterrupt:  # during the imports; run() answers for the rest
        return 130


if __name__ == "__main__":
    main()
