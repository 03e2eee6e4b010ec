"""A file of attempts, answered line by line."""

from collections.abc import Iterable, Iterator

from kaudit.broker.attempts import Attempt
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import UnknownVersionError
from kaudit.broker.response import Answer
from kaudit.replay.attempt_lines import AttemptError, parse_attempt


class Session:
    """Answers a file of attempts. `broker` keeps what it remembers, so several files may follow one another."""

    def __init__(self, lines: Iterable[bytes], broker: Broker) -> None:
        self._lines = lines
        self.broker = broker

    def answered(self) -> Iterator[tuple[Attempt, Answer]]:
        """Yield every attempt with its answer, in order.

        An attempt without `index` gets its number among the attempts, from 0. Raises AttemptError, with the line, for
        a line that is not an attempt, or that names a broker or configuration that cannot exist.
        """
        broker = self.broker
        number = 0
        for line_number, line in enumerate(self._lines, 1):
            try:
                attempt = parse_attempt(line, number)
                if attempt is None:
                    continue
                answer = broker.answer(attempt)
            except UnknownVersionError as error:
                nearest = ", ".join(map(str, error.nearest))
                raise AttemptError(line_number, f"a known broker version, {nearest}, not {error.version!r}") from None
            except ValueError as error:
                raise AttemptError(line_number, str(error)) from None
            number += 1
            yield attempt, answer
