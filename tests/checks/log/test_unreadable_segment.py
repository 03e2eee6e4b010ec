"""KA012: a segment that cannot be opened, beside one that can."""

import os

import pytest

from kaudit.checks.log.unreadable_segment import unreadable_segment
from tests.checks.findings import recorded_findings
from tests.logs import Log, data


@pytest.mark.parametrize(("refuses", "expected"), [(True, [("warning", "a", None, None)]), (False, [])])
def test_a_segment_that_cannot_be_opened_is_named(tmp_path, monkeypatch, refuses, expected):
    for name in ("a-0", "b-0"):
        log = Log()
        log.append(data(1, 0, 0))
        log.write(tmp_path / name)
    refused = str(tmp_path / "a-0" / f"{0:020d}.log")
    real = os.open

    def guarded(path, *rest, **more):
        if refuses and str(path) == refused:
            raise PermissionError(13, "Permission denied", refused)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", guarded)
    assert recorded_findings(unreadable_segment, str(tmp_path), jobs=1) == expected
