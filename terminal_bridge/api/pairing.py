"""Terminal pairing, and `GET /me`."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from appliance.clock import Clock, format_instant
from appliance.core.errors import PairingLater, PairingRefused, field_invalid, not_among
from appliance.core.tokens import encode_url_safe
from appliance.database.connection import Reader
from appliance.door.guest_pass import list_public_keys, venue_tag
from appliance.door.terminals import (
    NAME_MAX,
    get_terminal,
    pair_by_code,
    pair_by_secret,
    revoke_terminal,
)
from appliance.door.verdict import LANGUAGES
from appliance.http.rate_limit import RateLimit
from appliance.http.request import (
    CALLER_OF,
    ENVIRONMENT,
    PAIRING_TRIES,
    answer,
    is_from_our_page,
    read_object,
)
from appliance.venue.model import find_tonight, get_venue
from terminal_bridge.api.protocol import authenticate, keep_token, parse_flag

# After five wrong attempts by all devices together, the open pairing codes stop working
# (appliance/door/terminals.py). The limit per device is lower, so that one device alone cannot
# disable them.
_TRIES_PER_DEVICE = 3
_OFFER_SECONDS = 600.0
_PAIRING_CODE = re.compile(r"[0-9]{8}")
_PAIRING_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")  # a secret has 256 bits


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """A pairing request. If `cookie` is true, the browser stores the token in a cookie.

    `code` contains the typed digits if `is_typed`, else the secret from a link.
    """

    code: str
    name: str | None
    language: str
    cookie: bool
    is_typed: bool


def pairing_tries(clock: Clock) -> RateLimit:
    """Return the rate limit for wrong pairing codes, by client address (docs/security.md, S13)."""
    return RateLimit(clock, _TRIES_PER_DEVICE, _OFFER_SECONDS, PairingLater)


async def pair(request: web.Request) -> web.Response:
    """`POST /pair`: exchange a one-time link's secret, or a typed code, for a token.

    With `cookie: true`, the token is set as a cookie that scripts cannot read. Raises
    PairingRefused if the code is invalid, and PairingLater if this device has typed three wrong
    codes within 10 minutes.
    """
    environment = request[ENVIRONMENT]
    if not is_from_our_page(request, environment.links.base):
        raise PairingRefused
    pairing = parse_pairing(await read_object(request))
    database, tries = environment.database, request.config_dict[PAIRING_TRIES]
    if pairing.is_typed:
        device = request.config_dict[CALLER_OF](request)
        tries.spend(device)  # counted before the attempt, so that parallel attempts count too
        paired = await database.write(pair_by_code, pairing.code, pairing.name, pairing.language)
        if paired is not None:
            tries.give_back(device)
    else:
        paired = await database.write(pair_by_secret, pairing.code, pairing.name, pairing.language)
    if paired is None:
        raise PairingRefused
    terminal_id, token = paired
    data = await database.read(_describe, terminal_id)
    if not pairing.cookie:
        return answer({"token": token, **data})
    response = answer(data)
    keep_token(request, response, token)
    return response


def parse_pairing(body: dict[str, Any]) -> PairingRequest:
    """Parse code, name, language and cookie. Raises ValidationError if one is invalid."""
    given = body.get("code")
    code = given.strip() if isinstance(given, str) else ""
    is_typed = _PAIRING_SECRET.fullmatch(code) is None
    if is_typed:
        code = re.sub(r"[\s-]", "", code)
        if not _PAIRING_CODE.fullmatch(code):
            raise field_invalid("code", "8 digits expected.")
    name = body.get("name")
    if name is not None and (not isinstance(name, str) or len(name.strip()) > NAME_MAX):
        raise field_invalid("name", "text of at most {longest} characters.", longest=NAME_MAX)
    language = body.get("language", "fr")
    if language not in LANGUAGES:
        raise not_among("language", LANGUAGES)
    cookie = parse_flag(body, "cookie")
    return PairingRequest(code, (name or "").strip() or None, language, cookie, is_typed)


async def unpair(request: web.Request) -> web.Response:
    """`POST /unpair`: revoke this terminal and its token."""
    terminal = await authenticate(request)
    environment = request[ENVIRONMENT]
    await environment.database.write(revoke_terminal, terminal.id, actor=f"terminal:{terminal.id}")
    response = answer({"unpaired": terminal.id})
    keep_token(request, response, "")
    return response


async def me(request: web.Request) -> web.Response:
    """`GET /me`: return the terminal, venue, current evening, box time and public keys."""
    terminal = await authenticate(request)
    return answer(await request[ENVIRONMENT].database.read(_describe, terminal.id))


def _describe(reader: Reader, terminal_id: str) -> dict[str, Any]:
    venue, terminal = get_venue(reader), get_terminal(reader, terminal_id)
    zone = reader.zones.zone(venue.time_zone)
    offset = datetime.fromtimestamp(reader.now / 1000, zone).utcoffset() or timedelta()
    return {
        "terminal": {"id": terminal.id, "name": terminal.name, "role": terminal.role,
                     "language": terminal.language},
        "venue": {"id": venue.id, "name": venue.name, "tag": venue_tag(venue.id).hex(),
                  "timeZone": venue.time_zone, "eveningEndsAt": venue.evening_ends_at,
                  "capacity": venue.capacity},
        "evening": find_tonight(reader).isoformat(),
        "boxTime": format_instant(reader.now),
        # A phone's time zone data may be years old, so the box sends the offset.
        "utcOffsetMinutes": round(offset.total_seconds() / 60),
        "publicKeys": [
            {"kid": key.kid, "publicKey": encode_url_safe(key.public_key)}
            for key in list_public_keys(reader)
        ],
    }  # fmt: skip
