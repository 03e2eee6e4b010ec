"""How the lines of a text were taken: of a dump of kafka-dump-log, or of a log of a broker or client."""

from typing import Final

from kaudit.model.json_record import JsonRecord

MAX_EXAMPLES: Final = 3
_SHOWN: Final = 160


class TextLines(JsonRecord, frozen=True):
    """Every one of the `lines` of a text is read, not Kafka's (`other_lines`), or not understood (`unknown_lines`).

    `unknown_facts` are those not understood that hold a fact - a producer id, an epoch, a sequence, an exception, an error's
    name, a partition - or break off before one; `examples` the first MAX_EXAMPLES of them, each with its number.
    """

    lines: int = 0
    other_lines: int = 0
    unknown_lines: int = 0
    unknown_facts: int = 0
    examples: tuple[str, ...] = ()

    @property
    def read_lines(self) -> int:
        """The number of lines that were understood."""
        return self.lines - self.other_lines - self.unknown_lines

    def and_also(self, other: "TextLines") -> "TextLines":
        """Return the sum with other lines, which follow these."""
        return TextLines(
            self.lines + other.lines,
            self.other_lines + other.other_lines,
            self.unknown_lines + other.unknown_lines,
            self.unknown_facts + other.unknown_facts,
            (*self.examples, *other.examples)[:MAX_EXAMPLES],
        )

    @property
    def reason(self) -> str:
        """Return what is not audited because of the lines with facts that were not understood."""
        shown = "; ".join(self.examples)
        return f"{self.unknown_facts:,} of {self.lines:,} lines are cut off or not understood, and hold facts of producers: {shown}"


NO_LINES: Final = TextLines()


def example(number: int, text: str) -> str:
    """Return a line as an example."""
    return f"line {number}: {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"
