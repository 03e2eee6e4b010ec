"""A text in any form as the plain text that is read: a file of bytes at positions, made from its own block by block."""

import re
from bisect import bisect_right
from typing import Final

from kaudit.formats.plain_text.forms import PLAIN, TextForm, form_of, plain_block
from kaudit.source.bytes import ByteSource, read_bytes

_BLOCK_BYTES: Final = 1 << 20
_PROBE_BYTES: Final = 1 << 16


class PlainText:
    """A file of plain lines. Reads in order cost one pass; others begin at the block that holds the position.

    Memory is a block, and a pair of numbers for each block before it.
    """

    def __init__(self, source: ByteSource, form: TextForm) -> None:
        self._source = source
        self._form = form
        # Where each block begins, in plain text and in the file, and whether a line begins there.
        self._plain = [0]
        self._own = [form.mark]
        self._begins = [True]
        self._is_whole = False
        self._held = (-1, b"")

    def size(self) -> int:
        """Return the size of the plain text in bytes."""
        while not self._is_whole:
            self._block(len(self._plain) - 1)
        return self._plain[-1]

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; return how many bytes were there."""
        done = 0
        while done < len(buffer):
            data = self._from(position + done)[: len(buffer) - done]
            if not data:
                break
            buffer[done : done + len(data)] = data
            done += len(data)
        return done

    def close(self) -> None:
        """Release the file."""
        self._source.close()

    def _from(self, position: int) -> bytes:
        """Return the plain text from a position to the end of its block, nothing beyond the end."""
        while not self._is_whole and self._plain[-1] <= position:
            self._block(len(self._plain) - 1)
        number = bisect_right(self._plain, position) - 1
        if self._is_whole and number == len(self._plain) - 1:
            return b""
        return self._block(number)[position - self._plain[number] :]

    def _block(self, number: int) -> bytes:
        if self._held[0] == number:
            return self._held[1]
        data = self._read(self._own[number])
        text = plain_block(data, self._form, begins_line=self._begins[number])
        self._held = number, text
        if number == len(self._plain) - 1:
            if not data:
                self._is_whole = True
                return text
            self._plain.append(self._plain[-1] + len(text))
            self._own.append(self._own[-1] + len(data))
            self._begins.append(data.endswith(self._form.encoded_line_end))
        return text

    def _read(self, position: int) -> bytes:
        """Return whole lines from here on, or a part of a line that is longer than a block."""
        data = read_bytes(self._source, position, _BLOCK_BYTES)
        if len(data) < _BLOCK_BYTES:
            return data[: len(data) // self._form.unit * self._form.unit]
        if self._form.objects is not None and (end := self._form.objects.end_of(data)):
            return data[:end]
        mark = self._form.encoded_line_end
        end = data.rfind(mark)
        while end % self._form.unit and end > 0:
            end = data.rfind(mark, 0, end + len(mark) - 1)
        return data[: end + len(mark)] if end >= 0 else data


def plain_text(source: ByteSource, start: re.Pattern[bytes]) -> tuple[ByteSource, TextForm]:
    """Return a text as plain text, which reads the source, and the form that it has there; `start` as `form_of` takes it."""
    form = form_of(read_bytes(source, 0, _PROBE_BYTES), start)
    return (source if form == PLAIN else PlainText(source, form)), form
