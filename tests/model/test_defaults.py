"""A field that nobody filled says that nothing was there: results add up, and a reader sees no more than was found."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest
from msgspec import Struct

OTHERS = {
    "ProcessedTwice.transactions": 1,  # the one that it names
    "Console.draws": True,  # a terminal can, unless its encoding cannot
    "ReplicaGap.may_be_compaction": True,  # benefit of the doubt
    "LogClock.exact": True,  # an interval says so
    "LogCopy.in_use": True,  # few are set aside
    "RenderOptions.findings_of_check": 1000,  # docs/guide.md
    "Format.machine": True,  # people's formats are the few
}
"""Fields whose default is neither 0 nor False, nor -1, which is Kafka's word for none."""
PACKAGES = ("model", "policy", "replay", "report")


def _defaults(package: str) -> Iterator[tuple[str, object]]:
    """Numbers and flags that the Structs and NamedTuples of a package begin with, by CLASS.FIELD."""
    root = import_module(f"kaudit.{package}")
    for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
        for name, kind in vars(import_module(module.name)).items():
            if not isinstance(kind, type) or kind.__module__ != module.name:
                continue
            if issubclass(kind, Struct):
                defaults = kind.__struct_defaults__
                fields = dict(zip(reversed(kind.__struct_fields__), reversed(defaults), strict=False))
            else:
                fields = getattr(kind, "_field_defaults", {})
            yield from ((f"{name}.{field}", value) for field, value in fields.items() if isinstance(value, int))


@pytest.mark.parametrize("package", PACKAGES)
def test_what_nobody_counted_or_said_is_nothing(package):
    defaults = dict(_defaults(package))
    assert defaults
    assert {field: value for field, value in defaults.items() if value not in {0, -1}} == {
        field: value for field, value in OTHERS.items() if field in defaults
    }


def test_every_other_default_has_its_field():
    assert {*OTHERS} <= {field for package in PACKAGES for field, _ in _defaults(package)}
