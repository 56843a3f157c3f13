"""The server name of a TLS hello, and the Host of a plain request, however they arrive."""

import ssl
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from web.relay.hello import BadHead, is_name, read_request, read_server_name

LABELS = st.from_regex(r"(?!xn--)[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=2, max_size=4).map(".".join).filter(is_name)


def hello_for(name):
    """The hello that OpenSSL sends for this name."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


HELLO = hello_for("box.example")


def in_records(hello, cuts):
    """The same hello in several TLS records."""
    message = hello[5:]
    edges = sorted({0, len(message), *(cut % len(message) for cut in cuts)})
    parts = [message[start:end] for start, end in pairwise(edges)]
    return b"".join(hello[:3] + len(part).to_bytes(2) + part for part in parts)


def with_extensions(*extensions):
    """A hello with these (kind, content) extensions, and no others."""
    listed = b"".join(
        kind.to_bytes(2) + len(content).to_bytes(2) + content for kind, content in extensions
    )
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    body += len(listed).to_bytes(2) + listed
    message = b"\x01" + len(body).to_bytes(3) + body
    return b"\x16\x03\x01" + len(message).to_bytes(2) + message


def naming(*names, kind=0):
    entries = b"".join(bytes([kind]) + len(name).to_bytes(2) + name for name in names)
    return 0, len(entries).to_bytes(2) + entries


@given(NAMES)
def test_the_name_in_a_real_hello_is_found(name):
    assert read_server_name(hello_for(name)) == name


@given(st.lists(st.integers(0, 2000), max_size=6))
def test_a_hello_in_several_records_has_the_same_name(cuts):
    assert read_server_name(in_records(HELLO, cuts)) == "box.example"


@given(st.integers(0, len(HELLO) - 1))
def test_a_part_of_a_hello_has_no_name_yet(length):
    assert read_server_name(HELLO[:length]) is None


def test_what_follows_the_hello_and_the_case_of_the_name_do_not_matter():
    assert read_server_name(with_extensions(naming(b"Box.EXAMPLE"))) == "box.example"
    assert read_server_name(HELLO + b"\x14\x03\x03\x00\x01\x01") == "box.example"


@given(st.lists(st.tuples(st.integers(0, len(HELLO) - 1), st.integers(0, 255)), max_size=8))
@example([(0, 0x53)])
def test_a_mutated_hello_is_refused_incomplete_or_still_names_a_host(changes):
    mutated = bytearray(HELLO)
    for at, value in changes:
        mutated[at] = value

    try:
        name = read_server_name(bytes(mutated))
    except BadHead:
        return
    assert name is None or is_name(name)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n",
        b"GET / HTTP/1.1\r\n",
        b"\x15\x03\x03\x00\x02\x02\x70",  # an alert
        b"\x16\x02\x01",  # SSL 2
        b"\x16\x03\x01\x00\x00",  # an empty record
        b"\x16\x03\x01\x40\x01",  # a record that is too large
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",  # a server hello
        b"\x16\x03\x01\x00\x04\x01\x00\x40\x01",  # a hello that is too large
        b"\x16\x03\x01\x00\x01\x01" + b"\x16\x03\x01\x00\x01\x00" * 20,  # many tiny records
        with_extensions(),
        with_extensions(naming(b"box.example", kind=1)),
        with_extensions((0, b"")),
        with_extensions(naming(b"localhost")),
        with_extensions(naming(b"192.0.2.1")),
        with_extensions(naming(b"box.example\x00.other.example")),
        with_extensions(naming(b"../boxes/x.y")),
    ],
)
def test_what_names_no_host_is_refused(data):
    with pytest.raises(BadHead):
        read_server_name(data)


def test_the_host_of_a_plain_request_is_found():
    request = read_request(b"GET /a?b=c HTTP/1.1\r\nX: y\r\nhost: Box.Example:80\r\n\r\nrest")

    assert request == ("GET", "/a?b=c", "box.example")


def test_a_part_of_a_request_has_no_host_yet():
    assert read_request(b"GET / HTTP/1.1\r\nHost: box.example\r\n") is None


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1",
        b"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example",
        b"GET http://box.example/ HTTP/1.1\r\nHost: box.example",
        b"GET /a b HTTP/1.1\r\nHost: box.example",
        b"GET /\r HTTP/1.1\r\nHost: box.example",
        b"GET / HTTP/2\r\nHost: box.example",
        b"GET / HTTP/1.1\r\nHost: box.example/evil",
    ],
)
def test_a_request_that_names_no_host_is_refused(head):
    with pytest.raises(BadHead):
        read_request(head + b"\r\n\r\n")
