"""Evidence made when it is asked for: a log may deserve a hundred thousand findings, and few are looked at twice."""

from collections.abc import Callable, Iterator, Mapping, Sequence
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

    def __getitem__(self, name: str) -> object:
        if name in self._more:
            return self._more[name]
        value = self._parts[name](self._subject)
        if value is ABSENT:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        for name, part in self._parts.items():
            if name not in self._more and part(self._subject) is not ABSENT:
                yield name
        yield from self._more

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[dict[str, object]], tuple[dict[str, object]]]:
        return dict, (dict(self),)


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
