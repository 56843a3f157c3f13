"""Read the host that a client connects to, from a TLS ClientHello or a plain http request.

Nothing is decrypted: the first message of a TLS connection contains the server name in plain text
(RFC 8446, section 4.1.2; RFC 6066, section 3).
"""

import re

HEAD_MAX = 16 * 1024  # maximum bytes of a hello or an http head; larger ones are refused
_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0
_RECORDS_MAX = 16  # browsers send one or two TLS records; joining thousands would take too long
_RECORD_HEADER, _RECORD_MAX, _MESSAGE_HEADER = 5, 1 << 14, 4
_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_NAME = re.compile(rf"(?:{_LABEL}\.)+(?!\d+\Z){_LABEL}", re.ASCII)
_NAME_MAX = 253
_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[\x21-\x7e]*) HTTP/1\.[01]")


class BadHead(Exception):
    """Raised if a connection does not begin with a valid hello or request with a host name."""


def is_name(text: str) -> bool:
    """Whether `text` is a lower-case DNS name with at least two labels, not an IP address."""
    return len(text) <= _NAME_MAX and _NAME.fullmatch(text) is not None


def read_server_name(data: bytes) -> str | None:
    """Return the server name, in lower case, of the ClientHello at the start of `data`.

    Returns None if the hello is incomplete. Raises BadHead if it is malformed, too large or
    contains no server name.
    """
    hello = _join_records(data)
    return None if hello is None else _find_name(hello)


def _join_records(data: bytes) -> bytes | None:
    """Join the TLS records of the ClientHello. Returns its body, or None if it is incomplete."""
    message = b""
    for _record in range(_RECORDS_MAX):
        header, data = data[:_RECORD_HEADER], data[_RECORD_HEADER:]
        # Check the type and the major version first, so that other protocols are rejected at once.
        if header[:2] != bytes((_HANDSHAKE, 3))[: len(header)]:
            raise BadHead
        if len(header) < _RECORD_HEADER:
            return None
        length = int.from_bytes(header[3:])
        message, data = message + data[:length], data[length:]
        end = _MESSAGE_HEADER + int.from_bytes(message[1:_MESSAGE_HEADER])
        is_hello = message[:1] == bytes([_CLIENT_HELLO])[: len(message)]
        if not is_hello or not 0 < length <= _RECORD_MAX or end > HEAD_MAX:
            raise BadHead
        if len(message) >= end:
            return message[_MESSAGE_HEADER:end]
    raise BadHead


def _find_name(hello: bytes) -> str:
    """Return the first server name. The box itself checks the rest of the hello."""
    fields = _Fields(hello)
    fields.take(2 + 32)  # legacy version and random
    for size in (1, 2, 1):  # session id, cipher suites, compression methods
        fields.vector(size)
    extensions = fields.vector(2)
    while extensions.left:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == _SERVER_NAME:
            names = content.vector(2)
            is_host_name, name = names.number(1) == _HOST_NAME, names.vector(2)
            text = name.take(name.left).decode("latin-1").lower()
            if is_host_name and is_name(text):
                return text
            break
    raise BadHead


class _Fields:
    """Reads the fields of a TLS structure in order. Raises BadHead if a field is incomplete."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise BadHead
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> "_Fields":
        """Read a `size`-byte length, and return the field of that length after it."""
        return _Fields(self.take(self.number(size)))


def read_request(data: bytes) -> tuple[str, str, str] | None:
    """Return the method, target and host of the http request at the start of `data`.

    Returns None if its head is incomplete. Raises BadHead if it is invalid.
    """
    head, found, _body = data.partition(b"\r\n\r\n")
    if not found:
        return None
    first, *lines = head.split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    fields = [each.partition(b":") for each in lines]
    hosts = [value.strip() for name, _, value in fields if name.lower() == b"host"]
    if line is None or len(hosts) != 1:
        raise BadHead
    host = re.sub(r":\d{1,5}\Z", "", hosts[0].decode("latin-1").lower())
    if not is_name(host):
        raise BadHead
    return line[1].decode(), line[2].decode(), host
