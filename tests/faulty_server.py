"""A local server that plays the public sources, with one fault for each address."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class Faulty(ThreadingHTTPServer):
    """Serves `files` as /FAULT/NAME; `once` faults go away after the first request."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.asked, self.released = files, Counter[str](), Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def shutdown(self) -> None:
        self.released.set()
        super().shutdown()

    def handle_error(self, request, client_address) -> None:
        """Clients that go away are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    server: Faulty
    protocol_version = "HTTP/1.0"  # a connection ends with its answer

    def log_message(self, format, *args) -> None:
        pass

    def do_GET(self) -> None:
        fault, _, name = self.path.strip("/").partition("/")
        self.server.asked[self.path] += 1
        content = self.server.files.get(name)
        if content is None or fault == "missing":
            return self._head(404, {})
        if fault.endswith("-once"):
            fault = fault.removesuffix("-once") if self.server.asked[self.path] == 1 else "good"
        return self._play(fault, name, content)

    def _play(self, fault: str, name: str, content: bytes) -> None:
        if fault == "redirect":
            return self._head(302, {"Location": f"/good/{name}"})
        if fault == "file":
            return self._head(302, {"Location": "file:///etc/passwd"})
        if fault == "loop":
            return self._head(302, {"Location": self.path})
        if fault == "busy":
            return self._head(503, {})
        if fault == "refuse" and "Range" in self.headers:
            return self._head(416, {})
        if fault == "endless":
            self._head(200, {})
            while True:
                self.wfile.write(b"x" * 65536)
        return self._body(fault, content[::-1] if fault == "wrong" else content)

    def _body(self, fault: str, content: bytes) -> None:
        start = self._start(fault)
        rest = content[start:]
        claimed = start + 1 if fault == "lie" else start
        partial = {"Content-Range": f"bytes {claimed}-{len(content) - 1}/{len(content)}"} if start else {}
        self._head(206 if start else 200, {"Content-Length": str(len(rest)), **partial})
        if fault == "slow":
            for place in range(0, len(rest), 10_000):
                self.wfile.write(rest[place : place + 10_000])
                time.sleep(0.02)
        elif fault in ("cut", "cut-norange", "stall"):
            self.wfile.write(rest[: len(content) // 3])
            self.wfile.flush()
            if fault == "stall":
                self.server.released.wait(20)
        else:
            self.wfile.write(rest)

    def _start(self, fault: str) -> int:
        asked = self.headers.get("Range", "")
        if not asked or "norange" in fault:
            return 0
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def serving(server: Any) -> Iterator[Any]:
    """Runs a server in a thread of this process."""
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
