"""What an attempt came to, told by the class of what went wrong, never by its text."""

import errno
import socket
import ssl
from email.utils import parsedate_to_datetime
from functools import lru_cache

import aiohttp

from appliance.model.delivery import Outcome
from appliance.webhooks.egress import Blocked

GUARD, DNS, CONNECT, TLS, WAIT, DONE = "guard", "dns", "connect", "tls", "wait", "done"
SENT = (WAIT, DONE)  # where the request was sent, whatever came of it

_UNKNOWN_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
NO_ROUTE, DNS_TEMP, CONN_TIMEOUT = "no_route", "dns_temp", "conn_timeout"
BOX_OFFLINE = "box_offline"

_UNREACHABLE = {
    errno.ENETUNREACH: NO_ROUTE,  # said by our own machine
    errno.ENETDOWN: NO_ROUTE,
    errno.EHOSTUNREACH: "unreachable",
    errno.EADDRNOTAVAIL: "unreachable",
}

_SUCCESS = 2  # the first digit of a status


def answered(
    status: int, excerpt: bytes, remote_address: str | None, date: str | None = None
) -> Outcome:
    """The outcome of an answer: 2xx is delivered, a redirect is a failure like any other."""
    code = "delivered" if status // 100 == _SUCCESS else f"http_{status}"
    return Outcome(
        DONE, code, status, remote_address, _legible(excerpt), receiver_time=_instant(date)
    )


def failed(error: Exception, phase: str, remote_address: str | None = None) -> Outcome:
    """The outcome of an attempt that `error` ended in `phase`."""
    if isinstance(error, Blocked):
        return Outcome(GUARD, "blocked")
    return Outcome(phase, _code(error, phase), remote_address=remote_address)


def _code(error: Exception, phase: str) -> str:  # noqa: PLR0911 - a table, one line each
    match error:
        case socket.gaierror():
            return "dns_nxdomain" if error.errno in _UNKNOWN_NAME else DNS_TEMP
        case ssl.SSLCertVerificationError():
            return "tls_cert"
        case ssl.SSLError():
            return "tls_other"
    if phase == TLS:
        return CONN_TIMEOUT if isinstance(error, TimeoutError) else "tls_other"
    match error:
        case TimeoutError():
            return {DNS: DNS_TEMP, CONNECT: CONN_TIMEOUT}.get(phase, "timeout")
        case ConnectionRefusedError():
            return "conn_refused"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionError():
            return "reset"
        case OSError():
            return _UNREACHABLE.get(error.errno or 0, "failed")
    return "protocol"


@lru_cache(maxsize=8)  # answers of one second say the same
def _instant(date: str | None) -> int | None:
    """The instant that a Date header names, in ms since 1970."""
    if date is None:
        return None
    try:
        return int(parsedate_to_datetime(date).timestamp()) * 1000
    except (ValueError, OverflowError):
        return None


def _legible(excerpt: bytes) -> str | None:
    """The first bytes of an answer as text that no terminal, page or log can stumble over."""
    text = excerpt.decode("utf-8", "backslashreplace")
    escaped = "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
    return escaped or None
