"""What stands between a client and its broker: passes Kafka's frames on, unless a recipe says otherwise."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.live_brokers.jvm import free_port
from tests.live_brokers.protocol import FLEXIBLE_FROM, Reader

_HOST = b"127.0.0.1"
_ADDRESSES = (struct.pack(">h", len(_HOST)) + _HOST, bytes([len(_HOST) + 1]) + _HOST)
"""The host as brokers name it in answers, before version-flexible requests and since."""


class Frame(NamedTuple):
    """A request, or the answer to one; `data` is all behind the size."""

    api: int
    version: int
    data: bytes


Handler = Callable[[Frame], bytes | None]
"""What to pass on in place of a frame's bytes; None closes the connection. It may wait before it answers."""


def _unchanged(frame: Frame) -> bytes | None:
    return frame.data


@dataclass
class Proxy:
    """Listens on a port of its own and passes on to the broker; answers name the proxy where they would name the broker."""

    broker_port: int
    on_request: Handler = _unchanged
    on_answer: Handler = _unchanged
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening, hang up."""
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
            except OSError:
                return
            self._open += [client, broker]
            asked: dict[int, tuple[int, int]] = {}
            for run in (self._requests, self._answers):
                threading.Thread(target=run, args=(client, broker, asked), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[int, int]]) -> None:
        with contextlib.suppress(OSError):
            while (data := _read(client)) is not None:
                api, version, correlation = struct.unpack_from(">hhi", data)
                asked[correlation] = api, version
                passed = self.on_request(Frame(api, version, data))
                if passed is None:
                    break
                broker.sendall(struct.pack(">i", len(passed)) + passed)
        _hang_up(client, broker)

    def _answers(self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[int, int]]) -> None:
        own, other = struct.pack(">i", self.port), struct.pack(">i", self.broker_port)
        with contextlib.suppress(OSError):
            while (data := _read(broker)) is not None:
                (correlation,) = struct.unpack_from(">i", data)
                for host in _ADDRESSES:
                    data = data.replace(host + other, host + own)
                passed = self.on_answer(Frame(*asked.pop(correlation), data))
                if passed is None:
                    break
                client.sendall(struct.pack(">i", len(passed)) + passed)
        _hang_up(client, broker)


def with_produce_error(frame: Frame, error: int) -> bytes:
    """The answer to a produce request of one partition, with another error code."""
    compact = frame.version >= FLEXIBLE_FROM[frame.api]
    reader = Reader(frame.data)
    reader.number("i")
    if compact:
        reader.tags()
    reader.count(compact=compact)
    reader.string(compact=compact)
    reader.count(compact=compact)
    reader.number("i")
    at = reader.position
    return frame.data[:at] + struct.pack(">h", error) + frame.data[at + 2 :]


def _read(source: socket.socket) -> bytes | None:
    size = _exactly(source, 4)
    return None if size is None else _exactly(source, struct.unpack(">i", size)[0])


def _exactly(source: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _hang_up(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
