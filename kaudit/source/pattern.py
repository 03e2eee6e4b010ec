"""--layout: a pattern that says where in a path topic, partition and replica stand."""

import re
from typing import Self

from msgspec import Struct

from kaudit.source.file_kinds import PartitionName

_FIELD = re.compile(r"\{([^{}]*)\}|\*|[^{}*]+")
_FIELDS = {"topic": r"[a-zA-Z0-9._-]{1,249}", "partition": "[0-9]{1,10}", "replica": "[^/]+"}


class PatternError(ValueError):
    """A pattern that cannot be read. The text says why."""


class LayoutPattern(Struct, frozen=True):
    """A pattern like `broker={replica}/{topic}/p{partition}`, matched against the end of a directory's path.

    `*` stands for anything within one component.
    """

    text: str
    expression: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pattern.

        Raises:
            PatternError: a field is unknown, given twice or missing.

        """
        seen: list[str] = []
        pieces: list[str] = []
        position = 0
        body = text.strip("/")
        while position < len(body):
            match = _FIELD.match(body, position)
            if match is None:
                raise PatternError(f"--layout {text}: a brace without its pair at character {position + 1}")
            name = match[1]
            if name is not None:
                if name not in _FIELDS or name in seen:
                    fault = (
                        "is given twice" if name in seen else "is not a field; there are topic, partition and replica"
                    )
                    raise PatternError(f"--layout {text}: {{{name}}} {fault}")
                seen.append(name)
                pieces.append(f"(?P<{name}>{_FIELDS[name]})")
            else:
                pieces.append("[^/]*" if match[0] == "*" else re.escape(match[0]))
            position = match.end()
        missing = [name for name in ("topic", "partition") if name not in seen]
        if missing:
            raise PatternError(f"--layout {text}: has no {{{missing[0]}}}")
        return cls(text, re.compile("(?:.*/)?" + "".join(pieces), re.DOTALL))

    def match(self, path: str) -> PartitionName | None:
        """Read a directory's path, None if it is not one the pattern describes."""
        found = self.expression.fullmatch(path.strip("/"))
        if found is None:
            return None
        fields = found.groupdict()
        return PartitionName(fields["topic"], int(fields["partition"]), replica=fields.get("replica") or "")
