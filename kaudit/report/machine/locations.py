"""Where a finding's file is, for formats that point into files."""

import os
from pathlib import PurePosixPath
from urllib.parse import quote

from kaudit.model.finding import Finding
from kaudit.report.text.formatting import producer_of
from kaudit.source.file_kinds import OFFSET_CHECKPOINT_NAMES


def base_directory(finding: Finding) -> str | None:
    """Return the directory that the finding's `file` is relative to, or None where it is unknown.

    `log_dir` contains the partition's directory. `file` is relative to the input, which may be above or below `log_dir`.
    """
    if finding.file is None or finding.log_dir is None or finding.topic is None:
        return None
    *folders, name = finding.file.split("/")
    if folders and folders[-1] == _directory(finding):
        folders.pop()
    elif name not in OFFSET_CHECKPOINT_NAMES:
        return f"{finding.log_dir.rstrip('/')}/{_directory(finding)}" if not folders else None
    log_dir = finding.log_dir.rstrip("/").split("/")
    above = log_dir[: len(log_dir) - len(folders)]
    if log_dir[len(above) :] != folders:
        return None
    return "/".join(above) or ("/" if finding.log_dir.startswith("/") else ".")


def path_of(finding: Finding) -> str | None:
    """Return the path of the finding's file, or of its partition's directory if it names no file; None where it is unknown.

    Like the inputs it is absolute, relative to the working directory, or a URL.
    """
    base = base_directory(finding)
    if base is not None:
        return _joined(base, str(finding.file))
    if finding.file is not None:
        return None
    if finding.log_dir is None or finding.topic is None:
        return finding.log_dir
    return _joined(finding.log_dir, _directory(finding))


def in_repository(path: str, root: str | None) -> str | None:
    """Return a path relative to the root of a repository (None: the working directory), None where it lies outside it."""
    if "://" in path:
        return None
    relative = os.path.relpath(path, root)
    return None if relative == os.pardir or relative.startswith(f"{os.pardir}/") else relative


def shown_path(finding: Finding, root: str | None) -> str | None:
    """Return the path relative to the repository; outside of it the path as the input was given."""
    path = path_of(finding)
    if path is None:
        return finding.file
    return in_repository(path, root) or path


def uri_of(path: str) -> str:
    """Return a path or URL as an absolute URI."""
    return path if "://" in path else f"file://{quote(os.path.abspath(path), errors='surrogateescape')}"  # noqa: PTH100 - without links


def location_text(finding: Finding) -> str:
    """Return `orders-3 @ offset 7, producer 42 epoch 0`, as far as known; control characters are still in it."""
    parts = []
    if finding.topic is not None:
        at = "" if finding.offset is None else f" @ offset {finding.offset}"
        parts.append(f"{finding.place}{at}")
    return ", ".join([*parts, *filter(None, [producer_of(finding)])])


def _directory(finding: Finding) -> str:
    return f"{finding.topic}-{finding.partition}"


def _joined(base: str, name: str) -> str:
    return f"{base.rstrip('/')}/{name}" if "://" in base else str(PurePosixPath(base, name))
