"""The command tree."""


def run() -> int:
    """Run one command and return the process's exit code (CONTRACT.md section 1)."""
    raise SystemExit(2)
