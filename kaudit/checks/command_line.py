"""The commands that findings suggest: over the inputs as they were given, with the options that decided what was found."""

import shlex
from collections.abc import Sequence

from msgspec import Struct

_MAX_INPUTS = 5
"""With more inputs than these a command is too long to read: it names only those that matter to the partition."""


class CommandLine(Struct, frozen=True):
    """What the user asked for, as it was typed.

    `options` are those that decide what is found, as arguments. `inputs` are the inputs as typed, `paths` the same as
    kaudit writes them; `evidence` are the directories of internal topics among them, which show the decisions of
    coordinators and the allocated producer ids. Without `named` neither a name nor an option says which partition the inputs are: then
    they are that partition alone.
    """

    inputs: Sequence[str] = ()
    paths: Sequence[str] = ()
    options: Sequence[str] = ()
    evidence: Sequence[str] = ()
    named: bool = True

    def command(self, name: str, own: Sequence[str], places: Sequence[str], chosen: Sequence[str]) -> str:
        """Return `kaudit NAME`, the inputs, the arguments `chosen` and the options, quoted for a shell.

        `own` are the paths of one partition that an input must lead to, `places` what to read if too many inputs do.
        """
        words = ["kaudit", name, *map(quote, self._inputs(own) or places), *map(quote_text, chosen)]
        return " ".join(words) + self.quoted_options

    @property
    def quoted_options(self) -> str:
        """The options as they end a command, each after a space."""
        return "".join(f" {quote_text(option)}" for option in self.options)

    def _inputs(self, own: Sequence[str]) -> Sequence[str]:
        if len(self.inputs) <= _MAX_INPUTS:
            return self.inputs
        wanted = (*own, *self.evidence)
        leading = [text for text, path in zip(self.inputs, self.paths, strict=True) if _leads_to(path, wanted)]
        return leading if len(leading) <= _MAX_INPUTS else ()


def _leads_to(path: str, wanted: Sequence[str]) -> bool:
    below = path.rstrip("/") + "/"
    return any(place == path or place.startswith(below) for place in wanted)


def quote(path: str) -> str:
    """Quote a path for a shell where it needs it, such that no command takes it for an option."""
    return quote_text(f"./{path}" if path.startswith("-") and path != "-" else path)


def quote_text(text: str) -> str:
    """Quote a text for a shell where it needs it."""
    return shlex.quote(text)
