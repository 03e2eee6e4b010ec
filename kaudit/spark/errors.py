"""Errors of tasks and of planning as what they were: Spark brings them to the driver as text."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError

_OURS = {error.__name__: error for error in (UsageError, NothingToAuditError, UnreadableInputError)}
_LINE = re.compile(rf"kaudit\.errors\.({'|'.join(_OURS)}): (.*)")


@contextmanager
def errors_of_tasks() -> Iterator[None]:
    """Raise again what kaudit raised in the body's tasks."""
    try:
        yield
    except PySparkException as error:
        found = _LINE.findall(str(error))
        if not found:
            raise
        name, text = found[-1]
        raise _OURS[name](text) from error
