"""Types of the fields of rows. A row is declared once, as a NamedTuple with a type, a default and a meaning for each field.

Everything else is derived from that class (model/dtypes.py): the numpy dtype, a row of defaults, and how a row moves between numpy
and the tuple. Types are named by strings, so that declaring rows does not import numpy: `kaudit --help` starts without it.
"""

from typing import Annotated, NamedTuple

Bool = Annotated[bool, "bool"]
Int8 = Annotated[int, "int8"]
Int16 = Annotated[int, "int16"]
Int32 = Annotated[int, "int32"]
Int64 = Annotated[int, "int64"]
UInt32 = Annotated[int, "uint32"]


class AtMost(NamedTuple):
    """The maximum number of rows in a field `Annotated[tuple[SomeRow, ...], AtMost(length)]`."""

    length: int
