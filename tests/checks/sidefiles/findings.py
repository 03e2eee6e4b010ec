"""Findings about side files, and directories with files to damage."""

import struct

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.logs import Log, data

CODES = ("KA305", "KA501", "KA503", "KA504", "KA505", "KA506")


def side_findings(path, **options):
    result = scan(ScanOptions([str(path)], **options), SilentProgress())
    return [found for found in result.findings if found.code in CODES]


def side_file_reports(path, **options):
    return [
        (found.code, found.severity.value, found.file.rsplit("/", 1)[-1], found.position)
        for found in side_findings(path, **options)
    ]


def edited_index(directory, suffix, layout, change):
    path = next(
        path for path in sorted(directory.glob(f"*.{suffix}")) if path.stat().st_size >= 3 * struct.calcsize(layout)
    )
    size = struct.calcsize(layout)
    content = path.read_bytes()
    rows = [list(struct.unpack(layout, content[at : at + size])) for at in range(0, len(content), size)]
    path.write_bytes(b"".join(struct.pack(layout, *row) for row in change(rows)))
    return path


def two_epochs(tmp_path):
    log = Log()
    for sequence in range(10):
        log.append(data(1, 0, sequence, leader_epoch=3 if sequence < 6 else 7))
    return log.write(tmp_path / "b" / "t-0")
