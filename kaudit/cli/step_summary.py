"""The step summary of GitHub Actions: Markdown, appended to the file the runner names."""

import sys
from collections.abc import Mapping

VARIABLE = "GITHUB_STEP_SUMMARY"


def append_step_summary(text: str, environ: Mapping[str, str]) -> None:
    """Append the text where a runner wants it; without a runner there is nothing to do."""
    file = environ.get(VARIABLE)
    if not file:
        return
    from pathlib import Path

    try:
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write(text)
    except OSError as error:
        # The annotations are out already, and the audit is what counts: report it, do not fail.
        sys.stderr.write(f"kaudit: ${VARIABLE} cannot be written: {error.strerror}\n")
