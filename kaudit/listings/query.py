"""Which producer ids to list, and in what order."""

from collections.abc import Callable
from enum import Enum

from msgspec import Struct


def _all(code: str) -> bool:  # noqa: ARG001 - every code belongs
    return True


class SortKey(Enum):
    """Sort keys; those of activity begin with the greatest value."""

    ID = "id"
    FIRST = "first"
    LAST = "last"
    BATCHES = "batches"
    RECORDS = "records"
    EPOCHS = "epochs"
    PARTITIONS = "partitions"
    FINDINGS = "findings"

    @property
    def descends(self) -> bool:
        """Return whether the greatest comes first."""
        return self not in (SortKey.ID, SortKey.FIRST)


class Query(Struct, frozen=True):
    """Filters and order. Ages are ms between an id's newest batch and the directory's clock; None means no limit.

    `includes` returns whether findings of a code count.
    """

    sort: SortKey = SortKey.ID
    reverse: bool = False
    limit: int | None = None
    min_batches: int | None = None
    max_batches: int | None = None
    min_epochs: int | None = None
    min_age_ms: int | None = None
    max_age_ms: int | None = None
    with_findings: bool = False
    summary_only: bool = False
    includes: Callable[[str], bool] = _all
