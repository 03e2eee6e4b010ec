"""Commands as typer wants them: groups of options spelt out, declarations as its own, configuration from its context."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

import typer

from kaudit.cli.declared import Argument, Option, gather, parameters_of
from kaudit.cli.settings.command import settings_of
from kaudit.cli.settings.settings import Settings


def typed(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return the command with the signature typer reads. A parameter of type Settings gets the configuration."""
    own = parameters_of(command)
    configured = any(parameter.annotation is Settings for parameter in own)

    @functools.wraps(command)
    def spelt_out(**given: Any) -> int | None:  # noqa: ANN401 - typer has converted it
        if configured:
            given["settings"] = settings_of(given.pop("context"))
        return command(**gather(command, given))

    parameters = [_for_typer(parameter) for parameter in own]
    spelt_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect reads
    return spelt_out


def _for_typer(parameter: inspect.Parameter) -> inspect.Parameter:
    if parameter.annotation is Settings:
        return parameter.replace(name="context", annotation=typer.Context)
    if get_origin(parameter.annotation) is Annotated:
        kind, declared = get_args(parameter.annotation)
        if isinstance(declared, Option):
            return parameter.replace(annotation=Annotated[kind, typer.Option(*declared.names, **declared.told)])
        if isinstance(declared, Argument):
            return parameter.replace(annotation=Annotated[kind, typer.Argument(**declared.told)])
    return parameter
