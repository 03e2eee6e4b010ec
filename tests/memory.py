"""Bytes in memory where kaudit reads a file."""


class Memory:
    """Bytes as a source."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read_into(self, position: int, buffer: memoryview) -> int:
        piece = self._data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        pass
