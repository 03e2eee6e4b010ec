"""CRC-32C: values of RFC 3720, B.4 (https://www.rfc-editor.org/rfc/rfc3720), however the extension is loaded."""

import subprocess
import sys

import pytest

from kaudit.crc import crc32c

VALUES = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(reversed(range(32))), 0x113FDB5C),
]
WHOLE_PACKAGE = """
from importlib import machinery
machinery.PathFinder = type("PathFinder", (), {"find_spec": lambda *_: None})
"""
"""The extension is not found by itself."""
IMPORTED_BEFORE = "import crc32c; "


@pytest.mark.parametrize(("data", "crc"), VALUES)
def test_values_of_the_standard(data, crc):
    assert crc32c(data) == crc
    assert crc32c(memoryview(data)[5:], crc32c(data[:5])) == crc


@pytest.mark.parametrize(("before", "package"), [("", False), (WHOLE_PACKAGE, True), (IMPORTED_BEFORE, True)])
def test_only_the_extension_is_loaded_where_it_is_found(before, package):
    program = "import sys; from kaudit.crc import crc32c; print(crc32c(bytes(32)), 'crc32c' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", before + program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{0x8A9136AA} {package}\n"
