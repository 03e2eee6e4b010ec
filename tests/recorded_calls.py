"""A stand-in for an object whose calls matter and not what they return: a DataFrame that nobody computes, a JVM."""

from typing import Any


class RecordedCalls:
    """Is the text of the calls that led to it, as `rows.coalesce(1)`; `log` takes the text of each call."""

    def __init__(self, text: str, columns: tuple[str, ...] = (), log: list[str] | None = None, **fields: Any) -> None:
        self.text, self.columns, self.log = text, columns, log
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> "RecordedCalls":
        return RecordedCalls(f"{self.text}.{name}", self.columns, self.log)

    def __getitem__(self, name: str) -> "RecordedCalls":
        return RecordedCalls(f"{self.text}[{name}]", self.columns, self.log)

    def __call__(self, *arguments: object, **named: object) -> "RecordedCalls":
        given = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in named.items())]
        called = RecordedCalls(f"{self.text}({', '.join(given)})", self.columns, self.log)
        if self.log is not None:
            self.log.append(called.text)
        return called

    def __eq__(self, other: object) -> Any:
        return RecordedCalls(f"{self.text} == {other}")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self.text
