"""Texts as people hold them: what terminals, mail programs, editors, shells and collectors make of the lines of a file.

An implementation of its own: it shares nothing with the reader that takes these forms back.
"""

import json
import textwrap
from collections.abc import Callable

Form = Callable[[bytes], bytes]


def each_line(change: Callable[[int, str], str]) -> Form:
    """A form that changes each line by itself; `change` gets its number, from 1, and the line."""

    def changed(text: bytes) -> bytes:
        lines = text.decode("utf-8", "surrogateescape").split("\n")
        last = lines.pop() if lines[-1] == "" else None
        made = [change(number, line) for number, line in enumerate(lines, 1)]
        return ("\n".join(made) + ("\n" if last == "" else "")).encode("utf-8", "surrogateescape")

    return changed


def wrapped(columns: int) -> Form:
    """What is copied from a terminal that goes on in the next row."""

    def wrap(_: int, line: str) -> str:
        return "\n".join(line[at : at + columns] for at in range(0, len(line), columns)) if line else line

    return each_line(wrap)


def wrapped_without_trailing_blanks(columns: int) -> Form:
    """The same where the terminal gives no blanks at the end of a row."""

    def wrap(_: int, line: str) -> str:
        rows = [line[at : at + columns] for at in range(0, len(line), columns)]
        return "\n".join([*(row.rstrip(" ") for row in rows[:-1]), *rows[-1:]])

    return each_line(wrap)


def mailed(columns: int) -> Form:
    """What mail programs do: lines are broken at blanks, which are lost."""

    def wrap(_: int, line: str) -> str:
        return "\n".join(textwrap.wrap(line, columns, break_long_words=False, break_on_hyphens=False)) or line

    return each_line(wrap)


def cut(columns: int, mark: str = "") -> Form:
    """`less -S`, `cut -c`, or an editor that shows no more of a line."""
    return each_line(lambda _, line: line if len(line) <= columns else line[: columns - len(mark)] + mark)


def lines_longer_than(text: bytes, columns: int, start: bytes) -> int:
    """How many lines that begin so have more characters."""
    return sum(
        len(line.decode("utf-8", "surrogateescape")) > columns for line in text.split(b"\n") if line.startswith(start)
    )


PREFIXES: dict[str, Callable[[int], str]] = {
    "indented by four": lambda _: "    ",
    "indented by a tab": lambda _: "\t",
    "quoted": lambda _: "> ",
    "quoted twice": lambda _: ">> ",
    "quoted and nested": lambda _: "> > ",
    "quoted without a blank": lambda _: ">",
    "cat -n": lambda number: f"{number:6}\t",
    "nl": lambda number: f"{number:6}  ",
    "grep -n": lambda number: f"{number}:",
    "grep -n with names": lambda number: f"dump.txt:{number}:",
    "grep -H": lambda _: "/tmp/logs/dump-1.txt:",
    "editor": lambda number: f"{number:4} | ",
    "editor with a bar": lambda number: f"{number:>5}\u2502",
    "numbers with colons": lambda number: f"{number:03}: ",
    "kubectl --prefix": lambda _: "[pod/kafka-0/kafka] ",
    "kubectl --timestamps": lambda number: f"2026-11-27T13:05:{number % 60:02}.{number % 1000:03}456789Z ",
    "docker compose": lambda _: "kafka-1  | ",
    "stern": lambda _: "kafka-0 kafka ",
    "containerd": lambda number: f"2026-11-27T13:05:{number % 60:02}.123456789Z stdout F ",
    "syslog": lambda number: f"Nov 27 13:05:{number % 60:02} broker-2 kafka[4711]: ",
    "journalctl -o short-iso": lambda number: f"2026-11-27T13:05:{number % 60:02}+0100 broker-2 kafka-dump[99]: ",
    "github actions": lambda number: f"2026-11-27T13:05:{number % 60:02}.1234567Z ",
    "jenkins": lambda number: f"[2026-11-27T13:05:{number % 60:02}.123Z] ",
    "ts": lambda number: f"Nov 27 13:05:{number % 60:02} ",
}
"""What stands before each line, by its number."""


def prefixed(name: str) -> Form:
    """Each line with what stands before it."""
    return each_line(lambda number, line: PREFIXES[name](number) + line)


ENCODINGS: dict[str, Form] = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "utf-16": lambda text: text.decode("utf-8", "replace").encode("utf-16"),
    "utf-16 big": lambda text: b"\xfe\xff" + text.decode("utf-8", "replace").encode("utf-16-be"),
    "utf-16 without a mark": lambda text: text.decode("utf-8", "replace").encode("utf-16-le"),
    "utf-16 of powershell": lambda text: text.decode("utf-8", "replace").replace("\n", "\r\n").encode("utf-16"),
    "crlf": lambda text: text.replace(b"\n", b"\r\n"),
    "cr": lambda text: text.replace(b"\n", b"\r"),
    "blanks that do not break": lambda text: text.replace(b" ", b"\xc2\xa0"),
    "colours": each_line(lambda _, line: f"\x1b[36m{line}\x1b[0m"),
}
SURROUNDINGS: dict[str, Form] = {
    "fence": lambda text: b"```\n" + text.rstrip(b"\n") + b"\n```\n",
    "fence with a language": lambda text: b"Here is what it shows:\n\n```text\n" + text.rstrip(b"\n") + b"\n```\n",
    "jira": lambda text: b"{noformat}\n" + text.rstrip(b"\n") + b"\n{noformat}\n",
    "shell": lambda text: (
        b"[root@kafka-0 ~]# bin/kafka-dump-log.sh --deep-iteration --files 00000000000000000000.log\n"
        + text.rstrip(b"\n")
        + b"\n[root@kafka-0 ~]# \n"
    ),
    "shell with a dollar": lambda text: b"$ kafka-dump-log.sh --files x.log\n" + text.rstrip(b"\n") + b"\n$\n",
}
JSON_SHAPES: dict[str, Callable[[int, str], object]] = {
    "docker json-file": lambda number, line: {"log": line + "\n", "stream": "stdout", "time": f"2026-11-27T13:05:{number % 60:02}.1Z"},
    "fluent bit": lambda number, line: {"date": 1764248700.5 + number, "log": line, "kubernetes": {"pod_name": "kafka-0"}},
    "cloudwatch": lambda number, line: {"timestamp": 1764248700000 + number, "message": line, "logStreamName": "kafka"},
    "elastic": lambda _, line: {"_index": "logs", "_source": {"@timestamp": "2026-11-27T13:05:00.000Z", "message": line}},
    "loki": lambda number, line: {"labels": {"app": "kafka"}, "line": line, "timestamp": f"{1764248700 + number}000000000"},
    "datadog": lambda _, line: {"id": "AQ", "content": {"timestamp": "2026-11-27T13:05:00.000Z", "message": line}},
    "otel": lambda _, line: {"timeUnixNano": "1764248700000000000", "body": {"stringValue": line}},
}  # fmt: skip


def in_json(name: str) -> Form:
    """Each line inside of a JSON object."""
    return each_line(lambda number, line: json.dumps(JSON_SHAPES[name](number, line)))


def _jackson(value: object, indent: str = "") -> str:
    """JSON as Jackson's DefaultPrettyPrinter writes it, and Log4j2's JsonLayout with it: arrays begin in the line of their key."""
    inner = indent + "  "
    if isinstance(value, dict):
        members = ",\n".join(f"{inner}{json.dumps(key)} : {_jackson(item, inner)}" for key, item in value.items())
        return f"{{\n{members}\n{indent}}}"
    if isinstance(value, list):
        return f"[ {', '.join(_jackson(item, indent) for item in value)} ]"
    return json.dumps(value)


PRINTED: dict[str, Callable[[list[object]], str]] = {
    "jq": lambda objects: "\n".join(json.dumps(one, indent=2) for one in objects) + "\n",
    "array": lambda objects: json.dumps(objects, indent="\t"),
    "aws logs": lambda objects: json.dumps({"events": objects, "searchedLogStreams": []}, indent=4) + "\n",
    "elastic": lambda objects: json.dumps({"took": 3, "hits": {"total": {"value": 9}, "hits": objects}}, indent=2),
    "jackson": _jackson,
    "jackson in an object": lambda objects: _jackson({"events": objects}),
    "log4j2": lambda objects: "[\n" + "\n, ".join(json.dumps(one, indent=2) for one in objects) + "\n]\n",
}
"""Objects over several lines, as programs print them."""


def printed(printer: str, shape: str) -> Form:
    """Each line inside of a JSON object of several lines."""

    def change(text: bytes) -> bytes:
        lines = text.decode("utf-8", "surrogateescape").splitlines()
        return PRINTED[printer]([JSON_SHAPES[shape](number, line) for number, line in enumerate(lines, 1)]).encode()

    return change
