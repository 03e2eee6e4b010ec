"""Errors that end a command with a message and an exit code of their own (README, "Exit codes")."""


class NothingToAuditError(Exception):
    """No segment was found under the given paths: exit code 3. The text names what was found instead."""


class UnreadableInputError(NothingToAuditError):
    """The given input could not be read: exit code 4."""


class UsageError(Exception):
    """An option or a path is wrong: exit code 2. The text says what is wrong and what to try."""
