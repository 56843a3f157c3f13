"""Requests that two programs may read differently, made from a few ways to be ambiguous.

Each hides a second request behind the first. `corpus` names each and gives its bytes up to the
hidden one; a server that takes none of them answers at most once, and never with a success.
"""

from collections.abc import Iterator

_LINE = b"POST /terminal/v1/pair HTTP/1.1\r\n"
_HOST = b"Host: localhost\r\n"


def corpus() -> Iterator[tuple[str, bytes]]:
    """Over a hundred beginnings, by name."""
    yield from _lengths()
    yield from _encodings()
    yield from _both()
    yield from _chunks()
    yield from _header_lines()
    yield from _request_lines()


def _headed(*headers: bytes, body: bytes = b"") -> bytes:
    return _LINE + _HOST + b"".join(line + b"\r\n" for line in headers) + b"\r\n" + body


def _lengths() -> Iterator[tuple[str, bytes]]:
    for value in (
        b"+0", b"-0", b"-1", b"0x0", b"0,0", b"0, 5", b"5, 0", b"0 0", b"0;", b"0_0",
        b"00x", b"1e0",
        b"0.0", b"'0'", b'"0"', b"", b" ", b"a", b"\xb2", b"\xd9\xa0", b"0\x0b", b"0\x0c", b"0\x00",
        b"99999999999999999999", b"18446744073709551616", b"4294967296x", b"0\t0", b"NaN",
    ):  # fmt: skip
        yield f"length {value!r}", _headed(b"Content-Length: " + value)
    yield "two lengths", _headed(b"Content-Length: 0", b"Content-Length: 5")
    yield (
        "two equal lengths of other spelling",
        _headed(b"Content-Length: 0", b"content-length: 00"),
    )
    yield "a length and an empty one", _headed(b"Content-Length: 0", b"Content-Length:")
    yield "a length with a space before the colon", _headed(b"Content-Length : 0")
    yield "a length with a tab before the colon", _headed(b"Content-Length\t: 0")
    yield "a length after a folded line", _headed(b"X: 1", b" Content-Length: 5")


def _encodings() -> Iterator[tuple[str, bytes]]:
    for value in (
        b"xchunked", b"chunkedx", b"chunked, identity", b"identity, chunked;q=0", b"chunked;",
        b"chunked; a=b", b"chunk ed", b"\x0bchunked", b"chunked\x0b", b"\x00chunked",
        b"chunked\x00",
        b"'chunked'", b'"chunked"', b"chunked chunked", b"chunked,", b",chunked,,x", b"gzip", b"",
        b"identity", b"chunked, gzip", b"cow", b"\xffchunked", b"chunked, chunked",
    ):  # fmt: skip
        yield f"encoding {value!r}", _headed(b"Transfer-Encoding: " + value, body=b"0\r\n\r\n")
    yield (
        "two encodings",
        _headed(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=b"0\r\n\r\n"),
    )
    yield (
        "an encoding with a space before the colon",
        _headed(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    )
    yield (
        "an encoding that is folded",
        _headed(b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n"),
    )
    yield (
        "an encoding in HTTP/1.0",
        _headed(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"),
    )


def _both() -> Iterator[tuple[str, bytes]]:
    for encoding in (b"chunked", b"Chunked", b"identity", b"x", b"chunked, x"):
        for length in (b"0", b"5", b"6"):
            yield (
                f"length {length!r} and encoding {encoding!r}",
                _headed(
                    b"Content-Length: " + length,
                    b"Transfer-Encoding: " + encoding,
                    body=b"0\r\n\r\n",
                ),
            )
            yield (
                f"encoding {encoding!r} and length {length!r}",
                _headed(
                    b"Transfer-Encoding: " + encoding,
                    b"Content-Length: " + length,
                    body=b"0\r\n\r\n",
                ),
            )


def _chunks() -> Iterator[tuple[str, bytes]]:
    for body in (
        b"-1\r\n\r\n", b"+0\r\n\r\n", b"0x0\r\n\r\n", b"zz\r\n\r\n", b"\r\n\r\n",
        b"0\n\r\n", b"0\r\n\n",
        b"0\n\n", b" 0\r\n\r\n", b"0 \r\n\r\nx", b"1\r\nAA\r\n0\r\n\r\n", b"1\r\nA0\r\n\r\n",
        b"1\nA\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n", b"10000000000000000\r\n\r\n", b"0;\n\r\n",
        b"0;a=\x00\r\n\r\n", b"0\r\nbad trailer\r\n\r\n", b"0\r\nA : b\r\n\r\n",
        b"1;\r\nA\n0\r\n\r\n",
        b"0_0\r\n\r\n", b"\xd9\xa0\r\n\r\n", b"0\r\r\n\r\n", b"0\x0b\r\n\r\n",
    ):  # fmt: skip
        yield f"chunk {body!r}", _headed(b"Transfer-Encoding: chunked", body=body)


def _header_lines() -> Iterator[tuple[str, bytes]]:
    for line in (
        b"Bad Name: 1", b": no name", b"no colon", b"Name\x00: 1", b"Name: \x00", b"Name: a\rb",
        b"Name: a\nContent-Length: 5", b"N(ame: 1", b"Na\xffme: 1", b"Name\r: 1", b"\x0bName: 1",
        b"Name: a\r Content-Length: 5", b"\x00", b"Name: \x07", b"Name: \x7f",
    ):  # fmt: skip
        yield f"header {line!r}", _headed(line, b"Content-Length: 0")
    yield "a first line that is folded", _LINE + b" X: 1\r\n" + _HOST + b"\r\n"
    yield "line feeds alone", b"POST /terminal/v1/pair HTTP/1.1\nHost: localhost\n\n"
    yield "carriage returns alone", b"POST /terminal/v1/pair HTTP/1.1\rHost: localhost\r\r"
    yield "two hosts", _LINE + _HOST + b"Host: evil.example\r\nContent-Length: 0\r\n\r\n"


def _request_lines() -> Iterator[tuple[str, bytes]]:
    for line in (
        b"POST HTTP/1.1",
        b"POST\t/terminal/v1/pair\tHTTP/1.1", b"POST /terminal/v1/pair HTTP/1.1 x",
        b"POST /terminal/v1/pair http/1.1", b"POST /terminal/v1/pair HTTP/2.0",
        b"POST /terminal/v1/pair HTTP/1.10", b"POST /terminal/v1/pair HTTP/0.9",
        b"POST /terminal/v1/pair HTTP/01.1", b"POST /terminal/v1/pair", b"P\x00ST /x HTTP/1.1",
        b"POST /a b HTTP/1.1", b"POST /\x00 HTTP/1.1", b"POST /\x0b HTTP/1.1", b"PO(ST / HTTP/1.1",
        b" POST / HTTP/1.1", b"POST * HTTP/1.1", b"PRI * HTTP/2.0",
    ):  # fmt: skip
        yield f"request line {line!r}", line + b"\r\n" + _HOST + b"Content-Length: 0\r\n\r\n"


def well_framed() -> Iterator[tuple[str, bytes]]:
    """Where they end is plain, so what follows is a request of its own; they are refused."""
    end = b"Content-Length: 0\r\n\r\n"
    for host in (b" local host", b" evil.example", b"", b" a@localhost.evil", b" [::1"):
        yield f"host {host!r}", _LINE + b"Host:" + host + b"\r\n" + end
    for line in (
        b"POST  /terminal/v1/pair HTTP/1.1", b"POST /terminal/v1/pair  HTTP/1.1",
        b"POST http://evil.example/v1/venue HTTP/1.1", b"POST //evil.example/v1 HTTP/1.1",
        b"CONNECT localhost:1 HTTP/1.1",
    ):  # fmt: skip
        yield f"request line {line!r}", line + b"\r\n" + _HOST + end
