"""A stand-in for the Hugging Face hub, of this machine: it takes what is published, and gives it back."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.faulty_server import serving

SHA = "0" * 40  # of its only commit


class Hub(BaseHTTPRequestHandler):
    files: dict[str, bytes]

    def _answer(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), "X-Repo-Commit": SHA, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_GET(self) -> None:
        path, name = self.path.partition("?")[0], self.path.rpartition("/")[2]
        if path.startswith("/api/models/user/ner/"):
            listed = [{"rfilename": file, "path": file, "type": "file", "size": len(self.files[file]),
                       "oid": SHA} for file in self.files]  # fmt: skip
            about = {"id": "user/ner", "sha": SHA, "siblings": listed}
            self._answer(json.dumps(listed if "/tree/" in path else about).encode())
        elif "/user/ner/resolve/" in path and name in self.files:
            content = self.files[name]
            self._answer(content, ETag=f'"{hashlib.sha256(content).hexdigest()}"')
        else:
            self._answer(b"{}", 200 if path == "/" else 404, **{"X-Error-Code": "RepoNotFound"} if path != "/" else {})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        host = f"http://{self.headers['Host']}/user/ner"
        if self.headers.get("Authorization") != "Bearer known":
            self._answer(b'{"error": "Invalid token"}', 401)
        elif "/preupload/" in self.path:
            asked = json.loads(sent)["files"]
            modes = [{"path": each["path"], "uploadMode": "regular", "shouldIgnore": False} for each in asked]
            self._answer(json.dumps({"files": modes}).encode())
        elif "/commit/" in self.path:
            for line in map(json.loads, sent.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self._answer(json.dumps({"success": True, "commitOid": SHA, "commitUrl": f"{host}/commit/{SHA}"}).encode())
        else:
            self._answer(json.dumps({"url": host, "errors": [], "warnings": []}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def hub() -> Iterator[tuple[dict[str, bytes], str]]:
    """The files of its repository user/ner, and its address; the token "known" may write."""
    files: dict[str, bytes] = {}
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), type("OneHub", (Hub,), {"files": files}))) as server:
        yield files, f"http://127.0.0.1:{server.server_port}"
