"""What is found of producers in distress in a log made by hand."""

from pathlib import Path

import kaudit
from tests.logs import Log

CODES = {"KA207", "KA208", "KA209"}


def distress(tmp_path: Path, topic: str, log: Log, *lines: str, **options):
    """Return the findings of producers in distress in a log with other logs beside it."""
    log.write(tmp_path / f"{topic}-0")
    for number, text in enumerate(lines):
        (tmp_path / f"{number}.log").write_text(text)
    return [finding for finding in kaudit.scan([tmp_path], **options).findings if finding.code in CODES]
