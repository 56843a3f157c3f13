"""A receiver process that sends far too large answers: `python flood.py KIND`.

It prints its port. A separate process makes the answers, so that they use no memory of the box.
"""

import contextlib
import socket
import sys
import zlib

HEAD = b"HTTP/1.1 200 OK\r\n"
BLOCK = bytes(1 << 16)
REST = 10 * (1 << 30) // len(BLOCK)


def pieces(kind):
    """Yield the parts of the answer to one request."""
    if kind == "chunks":
        yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        yield from (b"10000\r\n" + BLOCK + b"\r\n" for _ in range(REST))
    elif kind == "bomb":
        bomb = zlib.compress(bytes(1 << 24), 9, wbits=31)
        yield HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
        yield bomb
    else:
        yield HEAD
        yield from (b"X: y\r\n" * 1000 for _ in range(100))
        yield b"Content-Length: 0\r\n\r\n"


server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    with connection, contextlib.suppress(OSError):
        while connection.recv(65536):
            for piece in pieces(sys.argv[1]):
                connection.sendall(piece)
