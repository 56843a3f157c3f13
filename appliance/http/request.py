"""HTTP requests and responses: JSON bodies, request context, same-origin check, client address."""

import asyncio
import codecs
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Literal
from urllib.parse import urlsplit

from aiohttp import web
from msgspec.json import Encoder

from appliance.core.errors import (
    ApiError,
    BodyTooLarge,
    InvalidJson,
    field_invalid,
    json_unreadable,
)
from appliance.environment import Environment
from appliance.http.rate_limit import RateLimit
from appliance.http.security_headers import COMMON_HEADERS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

ENVIRONMENT: web.RequestKey[Environment] = web.RequestKey("environment", Environment)
CALLER_OF: web.AppKey[Callable[[web.Request], str]] = web.AppKey("caller of")
"""A function that returns the client's address as the key for rate limits (see `caller_key`)."""
PAIRING_TRIES: web.AppKey[RateLimit] = web.AppKey("pairing tries", RateLimit)
SEARCH_PHONES: web.AppKey[RateLimit] = web.AppKey("search phones", RateLimit)
"""The rate limit for phone number searches, by terminal id."""
RECHECK_AUTHORISATION: web.RequestKey[Callable[[web.Request], object]] = web.RequestKey("still may")
"""A function that raises an error if the caller's access has been revoked since the request began.
Unset on public routes. The request is passed as an argument, because a function that captured the
request would form a reference cycle with it."""


def recheck_authorisation(request: web.Request) -> None:
    """Raise an error if the caller's access was revoked while the request waited."""
    if RECHECK_AUTHORISATION in request:
        request[RECHECK_AUTHORISATION](request)


@dataclass(frozen=True, slots=True)
class Principal:
    """The kind of caller that a route accepts. Each route must declare it (docs/security.md, S3).

    `anybody` requires no authentication. It is for public pages, files, and links with a token.
    `needs` is the scope that an API key must have, or the role that a staff member must have. It is
    None for terminals, because the handlers in terminal_bridge check the terminals' roles.
    `browser` is the stream that a browser's pages share; it checks the cookies for each page.
    """

    kind: Literal["anybody", "key", "terminal", "staff", "browser"]
    needs: str | None = None


ANYBODY = Principal("anybody")
PRINCIPALS: web.AppKey[dict[tuple[str, str], Principal]] = web.AppKey("principals", dict)


# JSON bodies

BODY_LIMIT = 64 * 1024
_BODY_SECONDS = 30.0
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NAME_SHOWN = 40
_ABSENT = object()
_TROUBLING_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


async def read_object(
    request: web.Request, *, optional: bool = False, limit: int = BODY_LIMIT
) -> dict[str, Any]:
    """Read and parse the JSON object in the body. With `optional`, the body may be empty.

    Raises InvalidJson if the body is incomplete or not a JSON object, and the errors of
    `read_body`.
    """
    try:
        raw = await read_body(request, limit)
        if raw is None:
            raise InvalidJson  # noqa: TRY301 - the except clause may replace it
        return {} if optional and not raw else parse_object(raw)
    except InvalidJson:
        if request.headers.get("Content-Encoding", "identity").lower() == "identity":
            raise
        raise json_unreadable("Content-Encoding is not supported; send it uncompressed.") from None


async def read_body(request: web.Request, limit: int = BODY_LIMIT) -> bytes | None:
    """Read the body. Return None if it does not arrive completely within 30 s.

    Raises BodyTooLarge if the body is longer than `limit` bytes (default 64 KiB), and the
    authorisation error if the caller's access was revoked in the meantime.
    """
    if (request.content_length or 0) > limit:
        raise BodyTooLarge
    if limit != BODY_LIMIT:  # replace the application's own limit, which is BODY_LIMIT
        request = request.clone(client_max_size=limit + 1)
    try:
        if request.content.is_eof():  # the body has arrived with the headers
            raw = await request.read()
        else:
            async with asyncio.timeout(_BODY_SECONDS):
                raw = await request.read()
            recheck_authorisation(request)
    except web.HTTPRequestEntityTooLarge:
        raise BodyTooLarge from None
    except (web.RequestPayloadError, TimeoutError):
        return None
    if len(raw) > limit:
        raise BodyTooLarge
    return raw


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object (docs/decisions/requests-and-errors.md).

    Raises InvalidJson for values other than objects, invalid UTF-8, duplicate members, NaN and
    infinities (including 1e999), lone surrogates, NUL characters, numbers with thousands of digits,
    and more levels of nesting than Python can read. The error states the position of invalid UTF-8
    or a syntax error, the name of a duplicate member, and what is wrong with a text.
    """
    try:
        text = raw.decode("utf-8")
        value = _DECODER.decode(text)
        is_storable = not _TROUBLING_ESCAPE.search(text) or _is_storable(value)
    except UnicodeDecodeError as error:
        raise _marked(raw) or json_unreadable(
            "it is not valid UTF-8 at byte {byte}.", byte=error.start + 1
        ) from None
    except json.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        raise _marked(raw) or json_unreadable("line {line}, column {column}.", **place) from None
    except (ValueError, RecursionError):
        raise InvalidJson from None
    if not isinstance(value, dict):
        raise InvalidJson
    if not is_storable:
        raise json_unreadable(
            "a text contains a NUL character or half an emoji (a lone surrogate)."
        )
    return value


def _marked(raw: bytes) -> ApiError | None:
    return (
        json_unreadable("it starts with a byte order mark (BOM).")
        if raw.startswith(_BYTE_ORDER_MARKS)
        else None
    )


def _refuse_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        for name, _ in members:  # the second occurrence of a name is no longer in `found`
            if found.pop(name, _ABSENT) is _ABSENT:
                break
        raise json_unreadable(
            "the member {name} occurs twice.", name=json.dumps(name[:_NAME_SHOWN])
        )
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("out of range")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicates, parse_constant=_finite, parse_float=_finite
)


def _is_storable(value: Any) -> bool:
    """Return whether no string in `value` contains a NUL character or a lone surrogate."""
    if isinstance(value, str):
        return not any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, dict):
        return all(_is_storable(part) for pair in value.items() for part in pair)
    return not isinstance(value, list) or all(map(_is_storable, value))


def parse_instant(value: object, field: str = "at") -> int | None:
    """Parse an ISO 8601 instant with an offset. Return ms since 1970, or None if it is absent.

    Raises ValidationError if it is invalid.
    """
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        if at is not None and at.tzinfo is not None:
            return round(at.timestamp() * 1000)
    except (ValueError, OverflowError):
        pass
    raise field_invalid(
        field, "an ISO 8601 timestamp with its time zone expected, such as 2026-12-31T18:00:00Z."
    )


# JSON responses

_JSON_HEADERS = {"Content-Type": "application/json", **COMMON_HEADERS}
_encode = Encoder().encode


def answer(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Create a JSON response."""
    response = web.Response(body=_encode(data), status=status, headers=_JSON_HEADERS)
    if headers:
        response.headers.update(headers)
    return response


def answer_unless_known(request: web.Request, data: Any) -> web.Response:
    """Create a JSON response with an ETag, or a 304 if the client has the same one already."""
    response = answer(data)
    body = response.body
    assert isinstance(body, bytes)  # noqa: S101 - `answer` encodes it
    tag = f'W/"{blake2b(body, digest_size=12).hexdigest()}"'
    known = {each.strip() for each in request.headers.get("If-None-Match", "").split(",")}
    if tag in known:
        response = web.Response(status=304)
    response.headers["ETag"] = tag
    return response


def refuse(refusal: ApiError) -> web.Response:
    """Create an error response (interface, section 7)."""
    return answer(refusal.body(), refusal.status, refusal.headers)


# Browsers


def wants_page(request: web.Request) -> bool:
    """Return whether the Accept header contains text/html.

    Returns False for `*/*` alone, which clients other than browsers usually send.
    """
    return "text/html" in request.headers.get("Accept", "")


def is_from_our_page(request: web.Request, base: str) -> bool:
    """Return False if the request comes from another site's page (CSRF check).

    If the header Sec-Fetch-Site is present, only its value counts. Otherwise, Origin must be the
    origin of `base` (the guests' address) or of the request itself. If both headers are missing,
    the request must have no cookie.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("Origin")
    if origin is not None:
        ours = urlsplit(base)
        return origin in {
            f"{ours.scheme}://{ours.netloc}".removesuffix(":443"),
            f"{request.scheme}://{request.host}",
        }
    return "Cookie" not in request.headers


def cookie_name(request: web.Request, kind: str) -> str:
    """Return the name of one of the box's cookies: `__Host-venuebox-KIND`, and the port if any.

    Browsers share cookies between the ports of a host, so without the port two boxes on one host
    would overwrite each other's. `kind` is for example `session`.
    """
    port = request.host.rpartition(":")[2]
    return f"__Host-venuebox-{kind}{f'-{port}' if port.isdecimal() else ''}"


def read_cookie(request: web.Request, kind: str) -> str:
    """Return the value of the box's cookie `kind`, or "" if there is none.

    The cookies of a whole domain may be 64 KiB, which `request.cookies` takes 100 ms to parse.
    """
    begin = f"{cookie_name(request, kind)}="
    for line in request.headers.getall("Cookie", ()):
        at = line.find(begin)
        while at >= 0:
            if line[:at].endswith((";", "; ")) or at == 0:
                return line[at + len(begin) :].partition(";")[0].strip()
            at = line.find(begin, at + 1)
    return ""


# Client addresses

BY_RELAY = "by relay"
"""The key in a transport's extra information whose value is True if the connection came through
the relay. In that case, the relay reports the client's address. It could report a false one, even
an address in the local network, so such a client never counts as local."""
Networks = Sequence[IPv4Network | IPv6Network]
# Some proxies append the port. An IPv6 address is then enclosed in brackets (RFC 7239, 6).
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+")


def networks_of(texts: Sequence[str]) -> Networks:
    """Parse `server.trusted_proxies` into networks."""
    return [ip_network(text, strict=False) for text in texts]


def peer_of(request: web.Request, proxies: Networks) -> str:
    """Return the client's address.

    This is the address of the connection. If the connection comes from a trusted proxy, it is the
    last address in X-Forwarded-For that is not a trusted proxy's, or the first if all of them are.
    """
    remote = request.remote or "unknown"
    if not is_in(remote, proxies):
        return remote
    # Read all lines of the header. The client's own line may be forged, and some proxies add a
    # separate line after it.
    lines = request.headers.getall("X-Forwarded-For", [])
    forwarded = [_address_in(part.strip()) for part in ",".join(lines).split(",")]
    chain = [remote, *(part for part in reversed(forwarded) if part)]
    return next((address for address in chain if not is_in(address, proxies)), chain[-1])


def is_trusted(request: web.Request, proxies: Networks) -> bool:
    """Return whether the request came from a trusted proxy."""
    return is_in(request.remote or "", proxies)


def _address_in(forwarded: str) -> str:
    found = _WITH_PORT.fullmatch(forwarded)
    return forwarded if found is None else found[1] or found[2] or ""


def is_private(request: web.Request, proxies: Networks) -> bool:
    """Return whether the request came over loopback, or over TLS to the box or a trusted proxy."""
    if request.secure:
        return True
    if "X-Forwarded-Proto" in request.headers and is_trusted(request, proxies):
        return claims_https(request)
    return is_loopback(request.remote or "")


def claims_https(request: web.Request) -> bool:
    """Return whether X-Forwarded-Proto is https. Only a trusted proxy's header is reliable."""
    values = request.headers.getall("X-Forwarded-Proto", [])
    return bool(values) and values[-1].rpartition(",")[2].strip() == "https"


def is_relayed(request: web.Request) -> bool:
    """Return whether the request came through the relay. If the connection is lost, return True."""
    return request.transport is None or bool(request.transport.get_extra_info(BY_RELAY))


@lru_cache(maxsize=1024)
def caller_key(peer: str, *, by_relay: bool = False) -> str:
    """Return the key under which to count a caller: its IPv4 address or its IPv6 /64 network.

    It differs by relay, because a relay could report the address of a phone to use up its limits.
    """
    address = address_of(peer)
    if address is not None:
        peer = str(address if address.version == 4 else ip_network((address, 64), strict=False))
    return f"relay {peer}" if by_relay else peer


@lru_cache(maxsize=1024)
def is_loopback(text: str) -> bool:
    """Return whether `text` is a loopback address."""
    address = address_of(text)
    return address is not None and address.is_loopback


def is_in(text: str, networks: Networks) -> bool:
    """Return whether `text` is an address in one of `networks`."""
    address = address_of(text)
    return address is not None and any(address in network for network in networks)


@lru_cache(maxsize=1024)
def address_of(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address, or return None. An IPv4-mapped IPv6 address becomes an IPv4 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
