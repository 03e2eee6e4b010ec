"""What a format makes of a result: text in pieces, or a directory of tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

Row = Mapping[str, object]


class Tables(Struct, frozen=True):
    """What a directory of tables holds: `rows` at hand, and the tables `streamed` as they come, in `pieces`."""

    rows: Mapping[str, Sequence[Row]]
    manifest: Mapping[str, object]
    streamed: Sequence[str] = ()
    pieces: Iterable[tuple[str, bytes]] = ()
    write_to: Callable[[str], str] | None = None
    """Lets the engine write all of it to a URL, and returns the run's id; None: nothing but this process can."""


Output = Iterable[str] | Tables
