"""The slowest bodies found for each parser.

`python -m tests.promises.attacks.hostile_bodies PORT` sends the slowest ones without end, eight at
a time.
"""

import socket
import sys
import threading

FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=b"
JSON = "application/json"
_NAME = b'Content-Disposition: form-data; name="name"'


def part(head: bytes, body: bytes = b"x") -> bytes:
    return b"--b\r\n" + head + b"\r\n\r\n" + body + b"\r\n--b--\r\n"


BODIES = {
    "a part in punycode": (
        PARTS, part(_NAME + b"\r\nContent-Type: text/plain; charset=punycode", b"9" * 64_000)),
    "1,400 empty parts": (PARTS, (b"--b\r\n" + _NAME + b"\r\n\r\n\r\n") * 1000 + b"--b--\r\n"),
    "1,400 nameless parts": (PARTS, b"--b\r\n\r\n\r\n" * 1400 + b"--b--\r\n"),
    "parts without an end": (PARTS, b"\r\n--b" * 12_000),
    "a header that is none": (PARTS, part(b"nonsense")),
    "NUL in a header": (PARTS, part(_NAME + b"\r\nX: a\0b")),
    "181 headers": (PARTS, part(_NAME + b"".join(b"\r\nX-%d: 1" % n for n in range(181)))),
    "a header of 9,000 characters": (PARTS, part(_NAME + b"\r\nX: " + b"a" * 9000)),
    "a part that names the charset": (
        PARTS, part(b'Content-Disposition: form-data; name="_charset_"', b"punycode")),
    "an encoding nobody knows": (
        PARTS, part(_NAME + b"\r\nContent-Transfer-Encoding: x-uuencode")),
    "half a character in a part": (
        PARTS, part(_NAME + b"\r\nContent-Type: text/plain; charset=unicode_escape", rb"\ud800")),
    "a packed part": (PARTS, part(_NAME + b"\r\nContent-Encoding: br")),
    "no boundary": ("multipart/form-data", b"--\r\n\r\n"),
    "punycode": (f"{FORM}; charset=punycode", b"name=" + b"9" * 64_000),
    "idna": (f"{FORM}; charset=idna", b"name=" + b"9" * 64_000),
    "utf-7": (f"{FORM}; charset=utf-7", b"name=+AAAA-" * 4000),
    "unicode_escape": (f"{FORM}; charset=unicode_escape", rb"name=\ud800" * 4000),
    "a parameter in pieces": (FORM + "; a*0=b" * 1000, b"a=b"),
    "a parameter in a charset": (f"{FORM}; charset*=punycode''aaa", b"a=b"),
    "brackets in the head": ("(" * 7000, b"a=b"),
    "no type": ("", b"a=b"),
    "fields without names": (FORM, b"&" * 65_000),
    "too many fields": (FORM, b"a=&" * 21_000),
    "escaped through and through": (FORM, b"name=" + b"%41" * 21_000),
    "escaped names": (FORM, b"%41" * 21_000 + b"=%"),
    "escaped escapes": (FORM, b"name=" + b"%25" * 21_000),
    "stray percent signs": (FORM, b"name=" + b"%" * 65_000),
    "no UTF-8": (FORM, b"name=" + b"%ff" * 21_000),
    "NUL": (FORM, b"name=%00&token=%00&link=%00&password=%00"),
    "one long value": (FORM, b"name=" + b"a" * 65_000),
    "deep arrays": (JSON, b"[" * 65_000),
    "deep objects": (JSON, b'{"a":' * 13_000),
    "large integers": (JSON, b'{"a":[' + b",".join([b"9" * 4300] * 14) + b"]}"),
    "a huge integer": (JSON, b'{"a":' + b"9" * 65_000 + b"}"),
    "a long fraction": (JSON, b'{"a":0.' + b"9" * 65_000 + b"}"),
    "empty objects": (JSON, b'{"a":[' + b",".join([b"{}"] * 21_000) + b"]}"),
    "many members": (JSON, b"{" + b",".join(b'"%x":1' % n for n in range(7000)) + b"}"),
    "escapes to look through": (JSON, b'{"a":[' + b'"a",' * 16_000 + rb'"\u0000"]}'),
}  # fmt: skip


COSTLIEST = ("a part in punycode", "1,400 empty parts", "escaped through and through")


def request(method: str, path: str, kind: str, body: bytes, **headers: str) -> bytes:
    """Return a request that closes its connection."""
    lines = [
        f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}",
        "Sec-Fetch-Site: same-origin", f"Content-Length: {len(body)}", "Connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode() + body


def ask(port: int, raw: bytes) -> int:
    """Return the status of the answer after the connection has ended."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(raw)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    return int(answer.split(maxsplit=2)[1])


def _send_for_ever(port: int) -> None:
    paths = ("/test/book", "/portal/sign-in", "/portal/setup", "/portal/welcome")
    raws = [request("POST", path, *BODIES[name]) for name in COSTLIEST for path in paths]
    while True:
        for raw in raws:
            try:
                ask(port, raw)
            except (OSError, IndexError):
                return


if __name__ == "__main__":
    for _ in range(8):
        threading.Thread(target=_send_for_ever, args=(int(sys.argv[1]),)).start()
    print("sending", flush=True)
