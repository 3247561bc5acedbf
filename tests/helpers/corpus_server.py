"""A small generated corpus, and a server on this machine that can make every mistake a test asks for."""

import hashlib
import re
import socket
import struct
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from npformer.data.download import KnownFile


def known(name, data):
    """Return the entry of a file in a table of known files."""
    return KnownFile(name, len(data), hashlib.sha256(data).hexdigest())


class CorpusServer(ThreadingHTTPServer):
    """A server of self.files below /corpus/, to which /moved/ redirects. Its attributes set the mistakes.

    cuts: for each of the next answers, the number of bytes after which it ends (None: a complete answer).
    reset: whether an early end resets the connection, which the client notices. statuses: the HTTP errors of
    the next answers. ranges: whether it answers range requests. shift, total: errors in these answers. told:
    whether it sends the length of a file. requests: the requests so far, each a path and a first byte.
    """

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.cuts, self.statuses, self.requests = [], [], []
        self.ranges, self.sends_length, self.reset = True, True, False
        self.shift, self.total = 0, None

    def url(self, folder="corpus"):
        return f"http://127.0.0.1:{self.server_port}/{folder}/"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        if self.path.startswith("/moved/"):
            self.answer(302, Location=self.path.replace("/moved/", "/corpus/"))
            return
        if self.path.startswith("/round/"):
            self.answer(302, Location=self.path)
            return
        requested = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(requested[1]) if requested else 0
        name = self.path.removeprefix("/corpus/")
        server.requests.append((name, start))
        if server.statuses:
            self.answer(server.statuses.pop(0))
        elif name not in server.files:
            self.answer(404)
        else:
            self.send(server.files[name], start)

    def send(self, data, start):
        server = self.server
        if start and server.ranges:
            if start >= len(data):
                self.answer(416)
                return
            start += server.shift
            total = server.total or len(data)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{total}")
        else:
            start = 0
            self.send_response(200)
        if server.sends_length:
            self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else None
        self.wfile.write(data[start:] if cut is None else data[start : start + cut])
        self.close_connection = True
        if server.reset and cut is not None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def answer(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Print nothing."""


@contextmanager
def serving(files):
    """Yield a server of these files that runs in a thread of its own."""
    server = CorpusServer(files)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
