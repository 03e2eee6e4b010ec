"""The one error every parser of this room raises."""


class WireError(ValueError):
    """Bytes that are not what their format says.

    `position` is the byte in the buffer handed in (0-based), `reason` a sentence for people.
    """

    def __init__(self, reason: str, position: int) -> None:
        # Both reach args, so the error survives pickling between worker processes.
        super().__init__(reason, position)
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        return f"{self.reason} (at byte {self.position})"
