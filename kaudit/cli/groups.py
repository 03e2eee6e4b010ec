"""Groups of options that commands share: declared once as a record, spelt out in the signature typer reads."""

import functools
import inspect
from collections.abc import Callable, Iterator

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields


class Group(Struct, frozen=True, kw_only=True):
    """Options that go together. Every field is an option with a default, or a group again."""


def with_groups(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command as typer wants it: where a parameter is a group, its options stand, in the group's order."""
    own = inspect.signature(command)

    @functools.wraps(command)
    def spelt_out(**typed: object) -> int:
        taken = {
            name: _gather(parameter.annotation, typed) if _is_group(parameter.annotation) else typed[name]
            for name, parameter in own.parameters.items()
        }
        return command(**taken)

    parameters = [each for parameter in own.parameters.values() for each in _spell_out(parameter)]
    spelt_out.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]  # what inspect reads
    return spelt_out


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Group)


def _spell_out(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not _is_group(parameter.annotation):
        yield parameter
        return
    for field in fields(parameter.annotation):
        default = inspect.Parameter.empty if field.default is NODEFAULT else field.default
        yield from _spell_out(
            inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default, annotation=field.type)
        )


def _gather(group: type[Group], typed: dict[str, object]) -> Group:
    return group(
        **{
            field.name: _gather(field.type, typed) if _is_group(field.type) else typed[field.name]
            for field in fields(group)
        }
    )
