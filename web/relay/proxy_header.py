"""The PROXY protocol, version 2: the header with which HAProxy names the caller.

The format is described in HAProxy's doc/proxy-protocol.txt, section 2.2.
"""

from ipaddress import ip_address

_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_FIXED = 16  # bytes: the signature, version and command, family, and the length of the rest
_PROXIED = 0x21  # version 2, command PROXY
_ADDRESS_BYTES = {0x11: 4, 0x21: 16}  # by family: TCP over IPv4, and over IPv6
_LONGEST = 1024  # addresses, ports and additional fields


class BadHeader(ValueError):
    """Raised if the data does not begin with such a header of a TCP connection."""


def read_proxy_header(data: bytes) -> tuple[tuple[str, int], int] | None:
    """Return the caller's (address, port) and the length of the header at the start of `data`.

    Returns None if the header is incomplete. Raises BadHeader if it is not a valid one.
    """
    if not data.startswith(_SIGNATURE[: len(data)]):
        raise BadHeader
    if len(data) < _FIXED:
        return None
    command, family = data[12], data[13]
    size, rest = _ADDRESS_BYTES.get(family, 0), int.from_bytes(data[14:_FIXED])
    if command != _PROXIED or not size or not 2 * size + 4 <= rest <= _LONGEST:
        raise BadHeader
    if len(data) < _FIXED + rest:
        return None
    address = ip_address(data[_FIXED : _FIXED + size])
    ports = _FIXED + 2 * size
    port = int.from_bytes(data[ports : ports + 2])
    return (str(getattr(address, "ipv4_mapped", None) or address), port), _FIXED + rest
