"""Serves ranges of the files below a folder, on a free port of loopback; prints its address."""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1]).resolve()


class Ranges(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = (FOLDER / self.path.lstrip("/")).resolve()
        if not path.is_relative_to(FOLDER) or not path.is_file():
            return self.send_error(404)
        first, last = (int(part) for part in self.headers["Range"].removeprefix("bytes=").split("-"))
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            last = min(last, size - 1)
            self.send_response(206)
            self.send_header("Content-Length", str(last - first + 1))
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.end_headers()
            self.wfile.flush()
            while first <= last:
                first += os.sendfile(self.connection.fileno(), file.fileno(), first, last - first + 1)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
