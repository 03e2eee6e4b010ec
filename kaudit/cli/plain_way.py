"""A command line read without typer, where it is plain: typer's import takes as long as reading a small log.

Plain are paths, flags and `--option value` or `--option=value` with text, numbers and choices, each option once unless
it takes many, and nothing configured. All else, every mistake and every --help go typer's way.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct

from kaudit.cli.declared import Argument, Option, gather, parameters_of
from kaudit.cli.settings.plain_values import LEAVE, plain_value
from kaudit.cli.settings.settings import Settings, is_configured

_COMPLETION = "_KAUDIT_COMPLETE"
"""Set by shells that ask typer for words."""


class _Taker(Struct, frozen=True):
    """Where values of an option or argument go. `kind` is the type of one value; a flag has bool."""

    name: str
    kind: object
    many: bool
    least: int | None = None
    most: int | None = None


def read_plainly(
    command: Callable[..., int | None], arguments: Sequence[str], environ: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return what the command is to be called with, None where typer has to look at it."""
    parameters = parameters_of(command)
    typed = typed_plainly(parameters, arguments)
    if typed is None or _COMPLETION in environ:
        return None
    if is_configured(environ, config=typed.get("config"), isolated=typed.get("isolated", False)):
        return None
    defaults = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
    return gather(command, {**defaults, **typed, "settings": Settings()})


def typed_plainly(parameters: Sequence[inspect.Parameter], arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return the values of the parameters that were typed, converted; None where that is not plain."""
    options, positional = _takers(parameters)
    typed: dict[str, Any] = {}
    words = iter(arguments)
    for word in words:
        taker, value = positional, word
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            if equals and not name.startswith("--"):
                return None
            taker = options.get(name)
            if taker is not None and taker.kind is bool:
                if equals:
                    return None
                typed[taker.name] = True
                continue
            if not equals:
                value = next(words, "")
        if taker is None or not value or value.startswith("-"):
            return None
        converted = plain_value(value, taker.kind, taker.least, taker.most)
        if converted is LEAVE or (taker.name in typed and not taker.many):
            return None
        if taker.many:
            typed.setdefault(taker.name, []).append(converted)
        else:
            typed[taker.name] = converted
    return typed if positional is not None and positional.name in typed else None


def _takers(parameters: Sequence[inspect.Parameter]) -> tuple[Mapping[str, _Taker], _Taker | None]:
    """Return the options by each of their names, and the one argument that must be given."""
    options: dict[str, _Taker] = {}
    positional: _Taker | None = None
    for parameter in parameters:
        if get_origin(parameter.annotation) is not Annotated:
            continue
        annotation, declared = get_args(parameter.annotation)
        if isinstance(annotation, UnionType):
            (annotation,) = (kind for kind in get_args(annotation) if kind is not NoneType)
        many = get_origin(annotation) is list
        kind = get_args(annotation)[0] if many else annotation
        if isinstance(declared, Argument):
            positional = _Taker(parameter.name, kind, many)
        elif isinstance(declared, Option) and "callback" not in declared.told:
            taker = _Taker(parameter.name, kind, many, declared.told.get("min"), declared.told.get("max"))
            for name in declared.names or ("--" + parameter.name.replace("_", "-"),):
                options[name] = taker
    return options, positional
