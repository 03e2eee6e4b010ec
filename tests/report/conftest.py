"""Golden files: one text file a case under __snapshots__; `pytest --snapshot-update` writes them anew."""

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode


class TextFile(SingleFileSnapshotExtension):
    """One readable file per golden output."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.fixture
def golden(snapshot):
    return snapshot.use_extension(TextFile)
