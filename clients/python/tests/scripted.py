"""Servers for tests: one that answers as scripted, and one that receives webhooks."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEADLINE_S = 120


@dataclass(frozen=True)
class Request:
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Scripted:
    """An answer: its connection is closed after the body, whether that is complete or not."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Server:
    url: str
    requests: queue.Queue[Request]

    def next(self) -> Request:
        return self.requests.get(timeout=DEADLINE_S)


@contextmanager
def server(answers: list[Scripted] | None = None) -> Iterator[Server]:
    """Gives the answers in order, and 204 after the last one."""
    script = iter(answers or [])
    requests: queue.Queue[Request] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            requests.put(Request(self.command, self.path, headers, body))
            answer = next(script, Scripted(204, b""))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield Server(f"http://127.0.0.1:{httpd.server_port}", requests)
    finally:
        httpd.shutdown()
        httpd.server_close()
