"""JSON documents that people hand over: from a file or from stdin, and not without end."""

import errno
import io
import sys

import pytest

from kaudit.source.local import read_document


@pytest.mark.parametrize("given", ["file", "stdin"])
def test_a_document_is_text_of_at_most_so_many_characters(tmp_path, monkeypatch, given):
    monkeypatch.setattr("kaudit.source.local.DOCUMENT_BYTES", 2 << 20)

    def read(text):
        (tmp_path / "saved.json").write_text(text, encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        return read_document(str(tmp_path / "saved.json") if given == "file" else "-")

    longest = "ü" * (2 << 20)
    assert read(longest) == longest
    with pytest.raises(OSError, match="more than 2 MiB") as caught:
        read(longest + "ü")
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == (str(tmp_path / "saved.json") if given == "file" else "-")
