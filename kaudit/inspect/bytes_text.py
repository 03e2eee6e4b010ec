"""Bytes of keys, values and headers as JSON-ready text, cut to what is wanted."""

import enum

from msgspec import Struct


class BytesForm(enum.Enum):
    """How bytes are shown: `auto` is text where it is UTF-8, else hex; `utf8` replaces what is no UTF-8."""

    AUTO = "auto"
    HEX = "hex"
    UTF8 = "utf8"


class BytesFormatter(Struct, frozen=True):
    """Shows bytes. `limit`: bytes shown of each key, value and header, None for all of them."""

    form: BytesForm = BytesForm.AUTO
    limit: int | None = None

    def show(self, data: bytes | None) -> dict[str, object] | None:
        """`text` and its `encoding` (utf8 or hex), the `size` in bytes of all of it, and whether it was `truncated`."""
        if data is None:
            return None
        truncated = self.limit is not None and len(data) > self.limit
        shown = data[: self.limit] if truncated else data
        text, encoding = self._text(shown, truncated=truncated)
        return {"text": text, "encoding": encoding, "size": len(data), "truncated": truncated}

    def _text(self, shown: bytes, *, truncated: bool) -> tuple[str, str]:
        if self.form is BytesForm.HEX:
            return shown.hex(), "hex"
        if self.form is BytesForm.UTF8:
            return shown.decode("utf-8", "replace"), "utf8"
        try:
            return shown.decode("utf-8"), "utf8"
        except UnicodeDecodeError as error:
            if truncated and error.reason == "unexpected end of data":
                return shown[: error.start].decode("utf-8"), "utf8"  # the cut went through a character
            return shown.hex(), "hex"
