"""A receiver in a process of its own that answers far too much: `python flood.py KIND`.

Prints its port. What it sends is made here, so that the sender's memory is only the sender's.
"""

import contextlib
import socket
import sys
import zlib

HEAD = b"HTTP/1.1 200 OK\r\n"
BLOCK = bytes(1 << 16)
REST = 10 * (1 << 30) // len(BLOCK)


def pieces(kind):
    """What it answers to one request."""
    if kind == "body":
        yield HEAD + b"Content-Length: 10737418240\r\n\r\n"
        yield from (BLOCK for _ in range(REST))
    elif kind == "chunks":
        yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        yield from (b"10000\r\n" + BLOCK + b"\r\n" for _ in range(REST))
    elif kind == "bomb":
        bomb = zlib.compress(bytes(1 << 24), 9, wbits=31)
        yield HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
        yield bomb
    elif kind == "header":
        yield HEAD + b"X-Long: "
        yield from (b"y" * len(BLOCK) for _ in range(16))
        yield b"\r\nContent-Length: 0\r\n\r\n"
    else:
        yield HEAD
        yield from (b"X: y\r\n" * 1000 for _ in range(100))
        yield b"Content-Length: 0\r\n\r\n"


def main(kind):
    """Serve one connection after the other until it is killed."""
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    while True:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            while connection.recv(65536):
                for piece in pieces(kind):
                    connection.sendall(piece)


if __name__ == "__main__":
    main(sys.argv[1])
