"""What ZooKeeper's transaction logs and snapshots begin with: magic, format version 2, database id.

Source: FileHeader, FileTxnLog.TXNLOG_MAGIC, FileSnap.SNAP_MAGIC.
"""

import struct
from typing import Final

from kaudit.formats.errors import Reason, WireError

FORMAT_VERSION: Final = 2
_HEADER: Final = struct.Struct(">4siq")
FILE_HEADER_SIZE: Final = _HEADER.size


def read_file_header(data: memoryview, expected: bytes, what: str) -> int:
    """Check the header of a file whose magic is `expected` and return its database id (int64).

    Raises WireError, which calls the file `what`: TRUNCATED, VERSION.
    """
    if len(data) < FILE_HEADER_SIZE:
        raise WireError(0, Reason.TRUNCATED, f"a {what} of {len(data)} bytes has no file header")
    magic, version, database_id = _HEADER.unpack_from(data)
    if magic != expected:
        raise WireError(0, Reason.VERSION, f"magic {magic!r} instead of {expected!r}: not a ZooKeeper {what}")
    if version != FORMAT_VERSION:
        raise WireError(4, Reason.VERSION, f"{what} of format version {version}, known is {FORMAT_VERSION}")
    return int(database_id)
