"""Directories and files, packed in every way that kaudit reads."""

import bz2
import functools
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import lz4.frame
import zstandard

COMPRESSIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": functools.partial(lzma.compress, preset=0),
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
    "lz4": lz4.frame.compress,
}
ARCHIVES = ("tar", "zip", *(f"tar.{name}" for name in COMPRESSIONS))


def tar_of(directory: Path) -> bytes:
    """A tar of a directory, under its name."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(directory, directory.name)
    return packed.getvalue()


def zip_of(directory: Path, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of a directory, under its name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as found:
        for path in sorted(directory.rglob("*")):
            found.write(path, path.relative_to(directory.parent))
    return packed.getvalue()


def pack(directory: Path, form: str) -> bytes:
    """A directory as one of ARCHIVES."""
    if form == "zip":
        return zip_of(directory)
    tar = tar_of(directory)
    return tar if form == "tar" else COMPRESSIONS[form.removeprefix("tar.")](tar)
