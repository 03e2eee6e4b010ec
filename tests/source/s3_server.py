"""An S3 server in this process that notes what it is asked: moto's, behind a counter."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from pyarrow import fs
from werkzeug.serving import make_server

BUCKET = "kafka"


class Request(NamedTuple):
    """One request: GET, HEAD, PUT or POST of a key, or LIST of a prefix; `length`: of the range that is asked for."""

    kind: str
    key: str
    length: int | None = None
    delimiter: str | None = None
    is_end: bool = False
    """Of an upload in parts: only now there is such a key."""


class S3Server:
    """A bucket, and what was asked of it since `requests` was last cleared."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.fatal: Callable[[Request], bool] = lambda _: False
        """Of a request that is never answered: `reached` is set, and whoever asked is to be killed, then `killed` to be set."""
        self.denied: Callable[[Request], bool] = lambda _: False
        """Of a request that is answered with AccessDenied, as one for a missing key is where the bucket may not be listed."""
        self.dies: str | None = None
        """How answers with an object's bytes end in their middle: `silent`, or `cut` off."""
        self.reached, self.killed = threading.Event(), threading.Event()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.variables = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }

    def _answer(self, environ, start_response):
        key = environ["PATH_INFO"].removeprefix(f"/{BUCKET}").lstrip("/")
        query = parse_qs(environ.get("QUERY_STRING", ""))
        if "list-type" in query:
            request = Request("LIST", query["prefix"][0], None, query.get("delimiter", [None])[0])
        else:
            first, _, last = environ.get("HTTP_RANGE", "").removeprefix("bytes=").partition("-")
            length = int(last) - int(first) + 1 if first else None
            request = Request(environ["REQUEST_METHOD"], key, length, None, "uploadId" in query)
        self.requests.append(request)
        if self.fatal(request):
            self.reached.set()
            self.killed.wait(60)
            start_response("503 Slow Down", [])
            return []
        if self.denied(request):
            body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            lines = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
            start_response("403 Forbidden", lines)
            return [b"" if request.kind == "HEAD" else body]
        answer = self._app(environ, start_response)
        return self._half(b"".join(answer)) if self.dies is not None and request.length else answer

    def _half(self, body: bytes) -> Iterator[bytes]:
        yield body[: len(body) // 2]
        if self.dies == "silent":
            self.killed.wait(60)

    def put(self, key: str, content: bytes) -> None:
        """Store an object, by no request."""
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(BUCKET, key, content)

    def stored(self) -> list[str]:
        """Return the keys that are there, asked for by no request."""
        return list(s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].keys)

    def upload(self, root: Path, prefix: str) -> None:
        """Copy a directory's files to keys under a prefix, by no request."""
        for file in sorted(root.rglob("*")):
            if file.is_file():
                self.put(f"{prefix}/{file.relative_to(root)}", file.read_bytes())

    def client(self) -> fs.S3FileSystem:
        """Return another client than kaudit's."""
        endpoint = self.variables["AWS_ENDPOINT_URL"]
        return fs.S3FileSystem(
            endpoint_override=endpoint, access_key="test", secret_key="test", allow_bucket_creation=True
        )

    def count(self, kind: str) -> int:
        """Return how many requests of this kind there were."""
        return sum(request.kind == kind for request in self.requests)

    @contextmanager
    def running(self) -> Iterator["S3Server"]:
        """Serve while the body runs."""
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            s3_backends[DEFAULT_ACCOUNT_ID]["aws"].reset()  # what was stored belongs to the process
            self.client().create_dir(BUCKET)
            self.requests.clear()
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
