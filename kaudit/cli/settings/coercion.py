"""Simple option values without the library that converts them.

typer converts every value through pydantic, whose import costs more than reading a small log. Text, an exact value of an
option's enum and plain decimal numbers within an option's bounds are converted here; everything else, and every error,
goes typer's way.
"""

from collections.abc import Sequence
from types import GenericAlias
from typing import get_args

import typer
from typer._coercion import RuntimeParam, build_runtime_param
from typer.core import TyperArgument, TyperGroup, TyperOption

from kaudit.cli.settings.plain_values import LEAVE, plain_value


class PlainGroup(TyperGroup):
    """A group of commands whose own options are converted the short way."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the group's own options."""
        convert_simple_values(self.get_params(ctx))
        return super().parse_args(ctx, args)


def convert_simple_values(params: Sequence[object]) -> None:
    """Let these parameters of a command convert what is simple themselves."""
    for param in params:
        if isinstance(param, TyperOption | TyperArgument):
            descriptor = param.type_descriptor
            info = descriptor.parameter_info
            if descriptor.file_annotation is None and info.parser is None and not info.clamp:
                short = _ShortWay(parameter_info=info, annotation=descriptor.annotation)
                param._runtime_param = short  # noqa: SLF001 - there is no public place


class _ShortWay(RuntimeParam):
    """Converts simple values, hands others on to typer's own conversion."""

    def _coerce_value(  # type: ignore[override]
        self, value: object, param: TyperOption | TyperArgument, ctx: typer.Context
    ) -> object:
        if isinstance(self.annotation, GenericAlias) and self.annotation.__origin__ is list:
            (each,) = get_args(self.annotation)
            items = [self._convert(item, each) for item in value] if isinstance(value, list | tuple) else [LEAVE]
            converted = LEAVE if any(item is LEAVE for item in items) else items
        else:
            converted = self._convert(value, self.annotation)
        if converted is LEAVE:
            return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)
        return converted

    def _convert(self, value: object, annotation: object) -> object:
        return plain_value(value, annotation, self.parameter_info.min, self.parameter_info.max)
