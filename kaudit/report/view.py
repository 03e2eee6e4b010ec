"""What every format is told beside the result."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kaudit.report.console import Console


@dataclass(frozen=True, slots=True)
class View:
    """`run` is host and time of this run, None with --reproducible."""

    console: Console = field(default_factory=Console)
    show_notes: bool = False
    run: Mapping[str, object] | None = None
