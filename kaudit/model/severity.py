"""How severe and how certain findings are, and whether they are known: all that lists of checks need of them."""

import enum
import functools


@functools.total_ordering
class Severity(enum.Enum):
    """`error`: proven from the log; `warning`: may be; `note`: informational, the log is healthy. Ordered by weight."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    __hash__ = object.__hash__  # Enum's is of the name, in Python; members are single

    @functools.cached_property
    def rank(self) -> int:
        """0 (note) to 2 (error)."""
        return ("note", "warning", "error").index(self.value)

    def __lt__(self, other: "Severity") -> bool:
        return self.rank < other.rank


class Confidence(enum.Enum):
    """How certain the finding is; independent of its severity."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Status(enum.Enum):
    """Relation to a baseline."""

    NEW = "new"
    KNOWN = "known"
    SUPPRESSED = "suppressed"

    __hash__ = object.__hash__  # Enum's is of the name, in Python; members are single
