"""A local directory as WebHDFS on loopback, with files that can be made to fail."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit


class WebHdfs:
    """Serves `root`; `broken` names files whose bytes cannot be had, `dies` how answers with bytes end in their middle."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.broken: set[str] = set()
        self.dies: str | None = None
        self.stopped = threading.Event()
        self.opened: list[tuple[str, int, int]] = []
        self.block_bytes = 128 << 20
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                served.answer(self)

            def log_message(self, *arguments):
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *failure):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"webhdfs://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, handler):
        asked = urlsplit(handler.path)
        query = {key: values[0] for key, values in parse_qs(asked.query).items()}
        path = self.root / unquote(asked.path).removeprefix("/webhdfs/v1").lstrip("/")
        if not path.exists():
            return self._send(handler, 404, b"{}")
        if query["op"] == "LISTSTATUS":
            found = [self._status(entry) for entry in path.iterdir()]
            return self._send(handler, 200, json.dumps({"FileStatuses": {"FileStatus": found}}).encode())
        if query["op"] == "GETFILESTATUS":
            return self._send(handler, 200, json.dumps({"FileStatus": self._status(path)}).encode())
        if path.name in self.broken:
            return self._send(handler, 500, b"no data node")
        offset, length = int(query["offset"]), int(query["length"])
        self.opened.append((path.name, offset, length))
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read(length)
        if self.dies is None:
            return self._send(handler, 200, content)
        handler.send_response(200)
        if self.dies != "short":  # as a proxy sends it that does not know the length
            handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(content[: length // 2])
        if self.dies == "silent":
            self.stopped.wait(60)
        handler.close_connection = True
        return None

    def _status(self, path):
        status = path.stat()
        return {
            "pathSuffix": path.name,
            "type": "DIRECTORY" if path.is_dir() else "FILE",
            "length": 0 if path.is_dir() else status.st_size,
            "modificationTime": status.st_mtime_ns // 1_000_000,
            "blockSize": 0 if path.is_dir() else self.block_bytes,
        }

    @staticmethod
    def _send(handler, code, body):
        handler.send_response(code)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
