"""What an audit took from a saved state (`--state`), and what it had to read."""

from msgspec import Struct

_COUNTS = ("unchanged", "grown", "new", "read_again", "dropped", "damaged")


class StateUse(Struct):
    """What became of segments that are there, and of saved ones: how many of each.

    `unchanged` and `grown` ones were not read again, but for what is new; `new` are of no earlier audit; those `read_again` are
    not what was read: truncated, compacted, written anew, or the log start moved into them. `dropped` are not there any more. `damaged`: how often the state
    was not what had been saved, and the log was read. `not_saved`: why partitions were not saved, and how many. `notice`: why
    all of the state was of no use.
    """

    unchanged: int = 0
    grown: int = 0
    new: int = 0
    read_again: int = 0
    dropped: int = 0
    damaged: int = 0
    not_saved: tuple[str, int] | None = None
    notice: str | None = None

    def add(self, other: "StateUse") -> None:
        """Add another partition's."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.not_saved is not None:
            reason, count = self.not_saved or (other.not_saved[0], 0)
            self.not_saved = reason, count + other.not_saved[1]
