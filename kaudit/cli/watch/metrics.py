"""Metrics of a watch for Prometheus: on a port, or in a file that the node exporter's textfile collector reads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from kaudit.cli.streams import write_pieces
from kaudit.errors import UsageError
from kaudit.report.machine.metrics import CONTENT_TYPE

_CLIENT_SECONDS = 5


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
