"""Reading the answers of receivers, the odd ones above all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.webhooks.answer import MalformedAnswer, parse_head, read_chunks


def head(*lines):
    return parse_head("\r\n".join(lines).encode("latin-1"))


def test_the_status_the_length_and_whether_the_connection_stays():
    found = head("HTTP/1.1 202 Accepted", "content-LENGTH: 12")

    assert (found.status, found.length, found.keeps_alive) == (202, 12, True)


@pytest.mark.parametrize(
    "line",
    ["", "HTTP/2 200", "HTTP/1.1 20 OK", "HTTP/1.1 2000", "HTTP/1.1 abc", "ICY 200 OK",
     "HTTP/1.1  200 OK", "SSH-2.0-OpenSSH_9.6", "HTTP/1.1 099 Low", "220 mail ready"],
)  # fmt: skip
def test_what_is_not_http_is_malformed(line):
    with pytest.raises(MalformedAnswer):
        head(line)


@pytest.mark.parametrize(
    "lines",
    [
        ["HTTP/1.0 200 OK", "Content-Length: 2"],
        ["HTTP/1.1 200 OK", "Content-Length: 2", "Connection: close"],
        ["HTTP/1.1 200 OK", "Content-Length: 2", "Content-Length: 3"],
        ["HTTP/1.1 200 OK", "Content-Length: 2", "Transfer-Encoding: chunked"],
        ["HTTP/1.1 200 OK", "Content-Length: -2"],
        ["HTTP/1.1 200 OK", "Content-Length: 99999999999999999999999"],
        ["HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked"],
        ["HTTP/1.1 200 OK"],
    ],
)
def test_an_unclear_end_of_the_body_keeps_the_status_and_costs_the_connection(lines):
    found = head(*lines)

    assert found.status == 200
    assert not found.keeps_alive


def test_answers_without_a_body_end_with_their_head():
    for status in (204, 205, 304):
        assert head(f"HTTP/1.1 {status} None").length == 0


def test_chunks_are_joined_and_their_end_is_found():
    raw = b"3\r\nabc\r\n0A;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"

    assert read_chunks(raw) == (b"abc0123456789", len(raw))


def test_half_a_chunked_body_has_no_end_yet():
    raw = b"3\r\nabc\r\n0\r\n\r\n"

    for cut in range(len(raw)):
        content, end = read_chunks(raw[:cut])
        assert end is None
        assert b"abc".startswith(content)


@pytest.mark.parametrize("raw", [b"zz\r\nab", b"3\r\nabcd\r\n", b"\r\n\r\n", b"-1\r\n"])
def test_what_is_no_chunk_is_malformed(raw):
    with pytest.raises(MalformedAnswer):
        read_chunks(raw)


@given(st.binary(max_size=300))
def test_no_bytes_at_all_can_do_more_than_be_malformed(raw):
    for read in (parse_head, read_chunks):
        try:
            read(raw)
        except MalformedAnswer:
            continue
