"""Golden files: one text file a case under __snapshots__; `pytest --snapshot-update` writes them anew."""

import re

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from kaudit import __version__

_VERSION = re.compile(rf'(kaudit[ @]|[vV]ersion": ?"){re.escape(__version__)}')


class TextFile(SingleFileSnapshotExtension):
    """One readable file per golden output."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    def serialize(self, data, **options):
        """Without kaudit's version: a release changes no output."""
        return super().serialize(_VERSION.sub(r"\1VERSION", data), **options)


@pytest.fixture
def golden(snapshot):
    return snapshot.use_extension(TextFile)
