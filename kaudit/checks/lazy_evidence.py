"""Evidence made when it is asked for: a log may deserve a hundred thousand findings, and few are looked at twice."""

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

ABSENT = object()
"""What a part returns where there is none of it."""
_Subject = TypeVar("_Subject")


class LazyEvidence(Mapping[str, object], Generic[_Subject]):
    """Evidence of `parts`, each made of the subject, and `more`, which is there already."""

    __slots__ = ("_more", "_parts", "_subject")

    def __init__(
        self, subject: _Subject, parts: Mapping[str, Callable[[_Subject], object]], more: Mapping[str, object]
    ) -> None:
        self._subject = subject
        self._parts = parts
        self._more = more

    def get(self, name: str, default: object = None) -> object:
        """Return the value, `default` where there is none: Mapping's raises and catches an error, which costs more."""
        value = self._more.get(name, ABSENT)
        if value is ABSENT and name in self._parts:
            value = self._parts[name](self._subject)
        return default if value is ABSENT else value

    def __getitem__(self, name: str) -> object:
        value = self.get(name, ABSENT)
        if value is ABSENT:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        return self.get(str(name), ABSENT) is not ABSENT

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[str, object]:
        """Return names and values, each made once."""
        return self._all().items()

    def _all(self) -> dict[str, object]:
        made = {name: part(self._subject) for name, part in self._parts.items() if name not in self._more}
        return {name: value for name, value in (*made.items(), *self._more.items()) if value is not ABSENT}

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> tuple[type[dict[str, object]], tuple[dict[str, object]]]:
        return dict, (self._all(),)


class LazyCommands(Sequence[str]):
    """Commands to run, the last of which is made when it is asked for."""

    __slots__ = ("_arguments", "_first", "_make")

    def __init__(self, first: Sequence[str], make: Callable[..., str], *arguments: object) -> None:
        self._first = first
        self._make = make
        self._arguments = arguments

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return (*self._first, self._make(*self._arguments))[index]

    def __len__(self) -> int:
        return len(self._first) + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[str, ...]], tuple[tuple[str, ...]]]:
        return tuple, (tuple(self),)
