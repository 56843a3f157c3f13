"""Pairing, and what a terminal knows of itself and of the box."""

from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from appliance.actions.pair_terminal import pair_by_code, pair_by_secret
from appliance.actions.revoke_terminal import revoke_terminal
from appliance.clock import Clock, format_instant
from appliance.house_errors import PairingLater, PairingRefused
from appliance.model.guest_pass import venue_tag
from appliance.rate_limit import RateLimit
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.signing_keys import list_public_keys
from appliance.store.terminals import get_terminal
from appliance.store.venue import get_venue
from appliance.tokens import encode_url_safe
from terminal_bridge.authentication import authenticate, keep_token
from terminal_bridge.body import read_object
from terminal_bridge.context import CALLER_OF, ENVIRONMENT, PAIRING_TRIES
from terminal_bridge.reading import parse_pairing
from terminal_bridge.same_origin import is_from_our_page
from terminal_bridge.wire import answer

_TRIES_OF_A_DEVICE = 3  # fewer than close the digits of an offer: nobody closes them alone
_OFFER_SECONDS = 600.0


def pairing_tries(clock: Clock) -> RateLimit:
    """Wrong digits by the address they came from (docs/security.md, S13)."""
    return RateLimit(clock, _TRIES_OF_A_DEVICE, _OFFER_SECONDS, PairingLater)


async def pair(request: web.Request) -> web.Response:
    """`POST /pair`: a one-time link, or its digits typed, becomes this device's token.

    PairingRefused for what opens nothing, PairingLater for digits after three wrong ones.
    With `cookie: true` the browser keeps it, and no script ever sees it.
    """
    environment = request[ENVIRONMENT]
    if not is_from_our_page(request, environment.links.base):
        raise PairingRefused
    wish = parse_pairing(await read_object(request))
    database, tries = environment.database, request.config_dict[PAIRING_TRIES]
    if wish.is_typed:
        device = request.config_dict[CALLER_OF](request)
        tries.spend(device)  # before the try is made, so that many at once are many
        paired = await database.write(pair_by_code, wish.code, wish.name, wish.language)
        if paired is not None:
            tries.give_back(device)
    else:
        paired = await database.write(pair_by_secret, wish.code, wish.name, wish.language)
    if paired is None:
        raise PairingRefused
    terminal_id, token = paired
    known = await database.read(_introduce, terminal_id)
    if not wish.cookie:
        return answer({"token": token, **known})
    response = answer(known)
    keep_token(response, environment, token)
    return response


async def unpair(request: web.Request) -> web.Response:
    """`POST /unpair`: this terminal is one no longer, and its token opens nothing."""
    terminal = await authenticate(request)
    environment = request[ENVIRONMENT]
    await environment.database.write(revoke_terminal, terminal.id, actor=f"terminal:{terminal.id}")
    response = answer({"unpaired": terminal.id})
    keep_token(response, environment, "")
    return response


async def me(request: web.Request) -> web.Response:
    """`GET /me`: the terminal, the venue, the evening, the box's time, the public keys."""
    terminal = await authenticate(request)
    return answer(await request[ENVIRONMENT].database.read(_introduce, terminal.id))


def _introduce(reader: Reader, terminal_id: str) -> dict[str, Any]:
    venue, terminal = get_venue(reader), get_terminal(reader, terminal_id)
    return {
        "terminal": {
            "id": terminal.id,
            "name": terminal.name,
            "role": terminal.role,
            "language": terminal.language,
        },
        "venue": {
            "id": venue.id,
            "name": venue.name,
            "tag": venue_tag(venue.id).hex(),  # of its guest passes
            "timeZone": venue.time_zone,
            "eveningEndsAt": venue.evening_ends_at,
        },
        "evening": find_tonight(reader).isoformat(),
        "boxTime": format_instant(reader.now),
        # A phone's own zone rules may be years old: it is told what the venue's clock shows.
        "utcOffsetMinutes": _utc_offset(reader, venue.time_zone),
        "publicKeys": [
            {"kid": key.kid, "publicKey": encode_url_safe(key.public_key)}
            for key in list_public_keys(reader)
        ],
    }


def _utc_offset(reader: Reader, time_zone: str) -> int:
    """Minutes by which the venue's wall clock is ahead of UTC now."""
    now = datetime.fromtimestamp(reader.now / 1000, reader.zones.zone(time_zone))
    return round((now.utcoffset() or timedelta()).total_seconds() / 60)
