"""Entry point: answers --version without importing anything heavy, then hands over to the CLI."""

import sys


def main() -> None:
    """Run kaudit with the process's arguments and exit with its code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from kaudit import __version__

        sys.stdout.write(f"kaudit {__version__}\n")
        return
    try:
        from kaudit.cli.app import run

        code = run()
    except KeyboardInterrupt:  # during the imports; run() answers for the rest
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
