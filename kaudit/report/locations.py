"""Where a finding's file is, for formats that point into files."""

from kaudit.model.finding import Finding
from kaudit.report.formatting import producer_of


def base_directory(finding: Finding) -> str | None:
    """Return the directory that the finding's `file` is relative to, or None where it is unknown.

    `log_dir` holds the partition's directory; `file` starts further up or further down, at what was given to audit.
    """
    if finding.file is None or finding.log_dir is None or finding.topic is None:
        return None
    log_dir, folders = finding.log_dir.rstrip("/"), finding.file.split("/")[:-1]
    partition = f"{finding.topic}-{finding.partition}"
    if not folders:
        return f"{log_dir}/{partition}"
    above = "".join(f"/{folder}" for folder in folders[:-1])
    if folders[-1] != partition or not log_dir.endswith(above):
        return None
    return log_dir.removesuffix(above) or "/"


def location_text(finding: Finding) -> str:
    """Return `orders-3 @ offset 7, producer 42 epoch 0`, as much of it as there is; not yet safe to show."""
    parts = []
    if finding.topic is not None:
        at = "" if finding.offset is None else f" @ offset {finding.offset}"
        parts.append(f"{finding.topic}-{finding.partition}{at}")
    return ", ".join([*parts, *filter(None, [producer_of(finding)])])
