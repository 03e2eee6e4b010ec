"""Where a watch writes: findings as they come to stdout and files, a live table on a terminal, metrics for Prometheus.

Metrics go to a port, or to a file that the node exporter's textfile collector reads.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import BinaryIO, Self

from kaudit.cli.loading import loaded
from kaudit.cli.request import AuditRequest, repository_root, run_facts
from kaudit.cli.streams import refused, write_pieces, write_stdout
from kaudit.cli.targets import Target, console_of
from kaudit.errors import UsageError
from kaudit.model.finding import Finding
from kaudit.model.result import ScanResult
from kaudit.model.severity import Severity
from kaudit.model.watch_status import WatchStatus
from kaudit.report.formats import FORMATS
from kaudit.report.machine.jsonl import watch_summary
from kaudit.report.machine.metrics import CONTENT_TYPE
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import plural
from kaudit.results.scope import extent
from kaudit.watch.memory import Memory

_CLIENT_SECONDS = 5


class Outputs:
    """Every target of a request, open while the watch runs. `resumed`: files are appended to."""

    def __init__(self, request: AuditRequest, *, resumed: bool) -> None:
        """Take where to write. Raises UsageError for a format that cannot be written piece by piece."""
        for target in request.targets:
            if not target.form.streams:
                names = ", ".join(name for name, form in FORMATS.items() if form.streams)
                raise UsageError(f"--output-format {target.form.name}: watch writes {names}")
        self._request = request
        self._resumed = resumed
        self._started_ms = round(time.time() * 1000)
        self._files: dict[int, BinaryIO] = {}
        self._draw: Callable[[WatchStatus], None] | None = None
        self._stack = ExitStack()
        self.is_live = any(_on_terminal(target) for target in request.targets)

    def __enter__(self) -> Self:
        for number, target in enumerate(self._request.targets):
            if target.file is not None:
                with refused(f"--output {target.file}"):
                    stream = target.file.open("ab" if self._resumed else "wb", buffering=0)
                self._files[number] = self._stack.enter_context(stream)
        if self.is_live:
            color = console_of(self._stdout(), self._request.color).color
            self._draw = self._stack.enter_context(loaded("bars", "drawn_table")(color=color))  # rich takes 80 ms
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, new: Sequence[Finding], status: WatchStatus | None) -> None:
        """Write findings that are new, and redraw the table. Raises UsageError, or BrokenPipeError as stdout does."""
        names = self._request.redactor
        if names is not None:
            new, status = names.learned(list(new)), names.learned(status)
        for number, target in enumerate(self._request.targets):
            if _on_terminal(target):
                continue
            text = target.form.stream(new, self._view(target))
            if text:
                self._send(number, text)
        if self._draw is not None and status is not None:
            self._draw(status)

    def end(self, result: ScanResult | None, memory: Memory, waiting: int) -> None:
        """Write the summary: the last line of jsonl, and a line for people."""
        names = self._request.redactor
        result = result if names is None else names.learned(result)
        reported = {severity.value: memory.by_severity()[severity.value] for severity in sorted(Severity, reverse=True)}
        for number, target in enumerate(self._request.targets):
            if target.form.name == "jsonl" and result is not None:
                self._send(number, watch_summary(result, reported, waiting, self._view(target)))
        if self._request.quiet:
            return
        counts = [plural(total, severity) for severity, total in reported.items() if total]
        held = f"; {plural(waiting, 'more finding')} may still be withdrawn" if waiting else ""
        where = f" {extent(result)}" if result is not None else ""
        self._stack.close()
        sys.stderr.write(f"{', '.join(counts) or 'no findings'} reported{where}{held}\n")

    def _send(self, number: int, text: str) -> None:
        stream = self._files.get(number)
        if stream is None:
            write_stdout(text)
            return
        with refused(f"--output {self._request.targets[number].file}"):
            stream.write(text.encode(errors="backslashreplace"))

    def _view(self, target: Target) -> RenderOptions:
        view = RenderOptions(
            console=console_of(target, self._request.color),
            show_notes=self._request.show_notes,
            run=run_facts(self._started_ms, reproducible=self._request.reproducible),
            repository=repository_root(),
        )
        names = self._request.redactor
        return view if names is None else loaded("redacting", "redacted_view")(names, view)

    def _stdout(self) -> Target:
        return next(target for target in self._request.targets if target.file is None)


def _on_terminal(target: Target) -> bool:
    """Whether the live table goes here."""
    return target.file is None and target.form.name == "table" and sys.stdout.isatty()


class Metrics:
    """The newest text, and where it goes."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.text = ""

    def publish(self, text: str) -> None:
        """Let this be what is scraped. Raises UsageError where the file cannot be written."""
        self.text = text
        if self._file is not None:
            write_pieces(self._file, [text], "--metrics-file")


@contextmanager
def served(metrics: Metrics, address: str, port: int) -> Iterator[int]:
    """Answer `GET /metrics` while the body runs; yield the port, which the system chooses for 0.

    Raises:
        UsageError: the address or the port cannot be had.

    """

    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_SECONDS  # a client that sends nothing keeps nobody else waiting for longer

        def do_GET(self) -> None:
            """Answer with the newest metrics."""
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "metrics are at /metrics")
                return
            body = metrics.text.encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
            """Log nothing: stderr is for people."""

    try:
        server = HTTPServer((address, port), Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--metrics-port {port}: cannot listen on {address}: {reason}") from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
