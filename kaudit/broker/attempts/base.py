"""Fields that every attempt has, whatever its `op`, and the ranges of their values.

A field without a default is required; unknown fields are ignored, except in `tamper`, where ignoring one would answer for a log
that is not there. Times are ms; `at` is the broker's clock, None where it is unknown.
"""

from typing import Annotated

from msgspec import Meta, Struct

Int8 = Annotated[int, Meta(ge=0, le=2**7 - 1)]
Int16 = Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
ApiVersion = Annotated[int, Meta(ge=0, le=2**15 - 1)]
PartitionNumber = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
OffsetOrEnd = Annotated[int, Meta(ge=-1, le=2**63 - 1)]
"""An offset, -1 for the log's end."""
BatchOffset = Annotated[int, Meta(ge=0, le=2**62)]
"""Leaves room for the batches that follow."""
RecordCount = Annotated[int, Meta(ge=1, le=2**31 - 1)]

NO_INDEX = -1
NOT_STATED = -1
"""The version of a request whose line does not say it: Broker.answer takes a usual one that the release answers."""


class AttemptBase(Struct, tag_field="op", kw_only=True, omit_defaults=True, gc=False):
    """A request to a broker, or an event at it."""

    index: Natural = NO_INDEX
    """Joins attempts and answers; where a line has none, its number among the attempts from 0."""


class PartitionAttemptBase(AttemptBase, kw_only=True):
    """A request to one partition, or an event at it."""

    topic: str
    partition: PartitionNumber
    at: Int64 | None = None
