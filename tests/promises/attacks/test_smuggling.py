"""Request smuggling: a request hidden in another one is never executed.

Two programs could read each first part differently, and a second request is hidden behind it.
"""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain

import pytest

from tests.app.processes import Serving
from tests.app.test_connection import new_box

pytestmark = [pytest.mark.slow, pytest.mark.process]

LINE = b"POST /terminal/v1/pair HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
LAST = b"0\r\n\r\n"
HIDDEN = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def headed(*headers, body=b""):
    return LINE + HOST + b"".join(line + b"\r\n" for line in headers) + b"\r\n" + body


def lengths():
    for value in (
        b"+0", b"-0", b"-1", b"0x0", b"0,0", b"0, 5", b"5, 0", b"0 0", b"0;", b"0_0",
        b"00x", b"1e0",
        b"0.0", b"'0'", b'"0"', b"", b" ", b"a", b"\xb2", b"\xd9\xa0", b"0\x0b", b"0\x0c", b"0\x00",
        b"99999999999999999999", b"18446744073709551616", b"4294967296x", b"0\t0", b"NaN",
    ):  # fmt: skip
        yield f"length {value!r}", headed(b"Content-Length: " + value)
    yield "two lengths", headed(b"Content-Length: 0", b"Content-Length: 5")
    yield "two equal lengths of other spelling", headed(b"Content-Length: 0", b"content-length: 00")
    yield "a length and an empty one", headed(b"Content-Length: 0", b"Content-Length:")
    yield "a length with a space before the colon", headed(b"Content-Length : 0")
    yield "a length with a tab before the colon", headed(b"Content-Length\t: 0")
    yield "a length after a folded line", headed(b"X: 1", b" Content-Length: 5")


def encodings():
    for value in (
        b"xchunked", b"chunkedx", b"chunked, identity", b"identity, chunked;q=0", b"chunked;",
        b"chunked; a=b", b"chunk ed", b"\x0bchunked", b"chunked\x0b", b"\x00chunked",
        b"chunked\x00",
        b"'chunked'", b'"chunked"', b"chunked chunked", b"chunked,", b",chunked,,x", b"gzip", b"",
        b"identity", b"chunked, gzip", b"cow", b"\xffchunked", b"chunked, chunked",
    ):  # fmt: skip
        yield f"encoding {value!r}", headed(b"Transfer-Encoding: " + value, body=LAST)
    yield (
        "two encodings",
        headed(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=LAST),
    )
    yield (
        "an encoding with a space before the colon",
        headed(b"Transfer-Encoding : chunked", body=LAST),
    )
    yield "an encoding that is folded", headed(b"Transfer-Encoding:", b" chunked", body=LAST)
    yield (
        "an encoding in HTTP/1.0",
        headed(b"Transfer-Encoding: chunked", body=LAST).replace(b"HTTP/1.1", b"HTTP/1.0"),
    )


def both():
    for encoding in (b"chunked", b"Chunked", b"identity", b"x", b"chunked, x"):
        for length in (b"0", b"5", b"6"):
            two = [b"Content-Length: " + length, b"Transfer-Encoding: " + encoding]
            yield f"length {length!r} and encoding {encoding!r}", headed(*two, body=LAST)
            yield (f"encoding {encoding!r} and length {length!r}", headed(*two[::-1], body=LAST))


def chunks():
    for body in (
        b"-1\r\n\r\n", b"+0\r\n\r\n", b"0x0\r\n\r\n", b"zz\r\n\r\n", b"\r\n\r\n",
        b"0\n\r\n", b"0\r\n\n",
        b"0\n\n", b" 0\r\n\r\n", b"0 \r\n\r\nx", b"1\r\nAA\r\n0\r\n\r\n", b"1\r\nA0\r\n\r\n",
        b"1\nA\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n", b"10000000000000000\r\n\r\n", b"0;\n\r\n",
        b"0;a=\x00\r\n\r\n", b"0\r\nbad trailer\r\n\r\n", b"0\r\nA : b\r\n\r\n",
        b"1;\r\nA\n0\r\n\r\n",
        b"0_0\r\n\r\n", b"\xd9\xa0\r\n\r\n", b"0\r\r\n\r\n", b"0\x0b\r\n\r\n",
    ):  # fmt: skip
        yield f"chunk {body!r}", headed(b"Transfer-Encoding: chunked", body=body)


def header_lines():
    for line in (
        b"Bad Name: 1", b": no name", b"no colon", b"Name\x00: 1", b"Name: \x00", b"Name: a\rb",
        b"Name: a\nContent-Length: 5", b"N(ame: 1", b"Na\xffme: 1", b"Name\r: 1", b"\x0bName: 1",
        b"Name: a\r Content-Length: 5", b"\x00", b"Name: \x07", b"Name: \x7f",
    ):  # fmt: skip
        yield f"header {line!r}", headed(line, b"Content-Length: 0")
    yield "a first line that is folded", LINE + b" X: 1\r\n" + HOST + b"\r\n"
    yield "line feeds alone", b"POST /terminal/v1/pair HTTP/1.1\nHost: localhost\n\n"
    yield "carriage returns alone", b"POST /terminal/v1/pair HTTP/1.1\rHost: localhost\r\r"
    yield "two hosts", LINE + HOST + b"Host: evil.example\r\nContent-Length: 0\r\n\r\n"


def request_lines():
    for line in (
        b"POST HTTP/1.1",
        b"POST\t/terminal/v1/pair\tHTTP/1.1", b"POST /terminal/v1/pair HTTP/1.1 x",
        b"POST /terminal/v1/pair http/1.1", b"POST /terminal/v1/pair HTTP/2.0",
        b"POST /terminal/v1/pair HTTP/1.10", b"POST /terminal/v1/pair HTTP/0.9",
        b"POST /terminal/v1/pair HTTP/01.1", b"POST /terminal/v1/pair", b"P\x00ST /x HTTP/1.1",
        b"POST /a b HTTP/1.1", b"POST /\x00 HTTP/1.1", b"POST /\x0b HTTP/1.1", b"PO(ST / HTTP/1.1",
        b" POST / HTTP/1.1", b"POST * HTTP/1.1", b"PRI * HTTP/2.0",
    ):  # fmt: skip
        yield f"request line {line!r}", line + b"\r\n" + HOST + b"Content-Length: 0\r\n\r\n"


def well_framed():
    """Yield unusual requests with a clear end, by name."""
    end = b"Content-Length: 0\r\n\r\n"
    for host in (b" local host", b" evil.example", b"", b" a@localhost.evil", b" [::1"):
        yield f"host {host!r}", LINE + b"Host:" + host + b"\r\n" + end
    for line in (
        b"POST  /terminal/v1/pair HTTP/1.1", b"POST /terminal/v1/pair  HTTP/1.1",
        b"POST http://evil.example/v1/venue HTTP/1.1", b"POST //evil.example/v1 HTTP/1.1",
        b"CONNECT localhost:1 HTTP/1.1",
    ):  # fmt: skip
        yield f"request line {line!r}", line + b"\r\n" + HOST + end


CORPUS = dict(chain(lengths(), encodings(), both(), chunks(), header_lines(), request_lines()))
WELL_FRAMED = dict(well_framed())


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    data = new_box(tmp_path_factory.mktemp("smuggling"))
    with Serving("--data", str(data), "--host", "127.0.0.1", "--port", "0") as found:
        yield found


def answers(port, raw, patience=1.5):
    """Return the status lines until the box closes the connection or sends nothing more."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.settimeout(patience)
        with suppress(TimeoutError, ConnectionError):
            connection.sendall(raw)
            while chunk := connection.recv(65536):
                received += chunk
                connection.settimeout(1.5)
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})", received)]


def test_the_hidden_request_would_succeed_if_it_were_sent_openly(serving):
    assert answers(serving.port, HIDDEN, 20) == [200]


@pytest.mark.parametrize("name", CORPUS)
def test_no_hidden_request_is_executed(serving, name):
    found = answers(serving.port, CORPUS[name] + HIDDEN)

    assert 200 not in found
    assert len(found) <= 1


@pytest.fixture(scope="module")
def refusals(serving):
    """Return the answers to all requests, sent in parallel because each needs a wait."""
    with ThreadPoolExecutor(len(WELL_FRAMED)) as pool:
        found = pool.map(lambda raw: answers(serving.port, raw, 20), WELL_FRAMED.values())
        return dict(zip(WELL_FRAMED, found, strict=True))


@pytest.mark.parametrize("name", WELL_FRAMED)
def test_an_unusual_but_clearly_framed_request_is_refused(refusals, name):
    found = refusals[name]

    assert len(found) == 1
    assert 400 <= found[0] < 500
