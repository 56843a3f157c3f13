"""The PROXY header (version 2) at the start of a caller's connection."""

import pytest

from web.relay.line import BadHeader, read_proxy_header

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
V4 = bytes([192, 0, 2, 7, 127, 0, 0, 1]) + (4444).to_bytes(2) + (443).to_bytes(2)
V6 = bytes.fromhex("20010db8" + "00" * 11 + "07") + bytes(16) + (4444).to_bytes(2) + bytes(2)
MAPPED = bytes(10) + b"\xff\xff" + V4[:4] + bytes(16) + V4[8:]


def header(rest, family=0x11, command=0x21):
    return SIGNATURE + bytes([command, family]) + len(rest).to_bytes(2) + rest


@pytest.mark.parametrize(
    ("sent", "caller"),
    [
        (header(V4), "192.0.2.7"),
        (header(V6, 0x21), "2001:db8::7"),
        (header(MAPPED, 0x21), "192.0.2.7"),
        (header(V4 + b"\x04\x00\x01\x00"), "192.0.2.7"),  # with an additional field
    ],
)
def test_the_callers_address_is_read_however_the_header_is_split(sent, caller):
    for end in range(len(sent)):
        assert read_proxy_header(sent[:end]) is None
    for more in (b"", b"\x16\x03\x01"):
        assert read_proxy_header(sent + more) == ((caller, 4444), len(sent))


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00",  # TLS without a header
        b"PROXY TCP4 192.0.2.7 127.0.0.1 4444 443\r\n",  # version 1
        header(V4, command=0x20),  # a health check
        header(V4, command=0x11),
        header(V4, family=0x12),  # UDP
        header(bytes(216), family=0x31),  # a socket of a file system
        header(b"", family=0x00),
        header(V4[:-1]),
        header(V4, family=0x21),
        header(V4 + bytes(2000)),
    ],
)
def test_any_other_start_of_a_connection_is_refused(sent):
    with pytest.raises(BadHeader):
        read_proxy_header(sent)
