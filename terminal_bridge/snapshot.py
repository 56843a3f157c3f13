"""The snapshot by which a terminal decides while offline (docs/guide/door-protocol.md)."""

import hashlib
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from appliance.clock import format_instant
from appliance.environment import Environment
from appliance.model.evening import day_of_week
from appliance.model.guest_pass import venue_tag
from appliance.model.reservation import Reservation
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.reservations import list_evening
from appliance.store.scans import list_first_admissions
from appliance.store.signing_keys import get_signing_key
from appliance.store.venue import get_venue, list_slots
from appliance.tokens import encode_url_safe
from terminal_bridge.authentication import authenticate
from terminal_bridge.context import ENVIRONMENT
from terminal_bridge.wire import answer, encode

SNAPSHOT_CONTEXT = b"svc-snapshot-v1"
LIFE_MS = 12 * 3600 * 1000
_RENEWED_EVERY = 3600 * 1000  # an unchanged evening gets a snapshot with a later end


@dataclass(frozen=True, slots=True)
class _Snapshot:
    etag: str
    signed: dict[str, Any] | None  # None: the terminal has this one already


async def snapshot(request: web.Request) -> web.Response:
    """`GET /snapshot`: tonight's passes, signed; 304 for a terminal that holds them already.

    No contact data and no notes. The same ETag for an hour while nothing changes.
    """
    await authenticate(request)
    environment = request[ENVIRONMENT]
    known = {tag.value for tag in request.if_none_match or ()}
    made = await environment.database.read(_make, environment, known)
    headers = {"ETag": f'"{made.etag}"', "Cache-Control": "no-cache, private"}
    if made.signed is None:
        return web.Response(status=304, headers=headers)
    return answer(made.signed, headers=headers)


def _make(reader: Reader, environment: Environment, known: set[str]) -> _Snapshot:
    kid, private_key = get_signing_key(reader, environment.keyring)
    content = _describe(reader, environment)
    hour = reader.now // _RENEWED_EVERY
    etag = hashlib.sha256(f"{kid} {hour} {encode(content)}".encode()).hexdigest()[:32]
    if etag in known:
        return _Snapshot(etag, None)
    made_at, expires_at = reader.now, reader.now + LIFE_MS
    stamps = {"madeAt": format_instant(made_at), "expiresAt": format_instant(expires_at)}
    payload = encode(stamps | content)
    signature = private_key.sign(SNAPSHOT_CONTEXT + payload.encode())
    return _Snapshot(
        etag, {"payload": payload, "kid": kid, "signature": encode_url_safe(signature)}
    )


def _describe(reader: Reader, environment: Environment) -> dict[str, Any]:
    venue, evening = get_venue(reader), find_tonight(reader)
    weekday, date = day_of_week(evening), evening.isoformat()
    first = list_first_admissions(reader, date)
    return {
        "environment": environment.name,
        "venueTag": venue_tag(venue.id).hex(),
        "evening": date,
        "eveningEndsAt": venue.evening_ends_at,
        "earlyMinutes": environment.settings.door.early_minutes,
        "timeZone": venue.time_zone,
        "slots": [
            {"start": slot.start, "end": slot.end}
            for slot in list_slots(reader)
            if weekday in slot.days_of_week
        ],
        "passes": [_pass(found, first.get(found.id)) for found in list_evening(reader, date)],
    }


def _pass(
    reservation: Reservation, first: tuple[int, str | None, str | None] | None
) -> dict[str, Any]:
    listed = {
        "passId": reservation.pass_id.hex(),
        "generation": reservation.generation,
        "reservationId": reservation.id,
        "guests": reservation.guests,
        "arrived": reservation.arrived,
        "state": reservation.status,
        "firstName": reservation.customer_first_name,
        "table": reservation.table_name,
        "tableNumber": reservation.table_number,
        "slot": reservation.slot,
        "accessCode": reservation.access_code,
    }
    if first is None:
        return listed
    at, terminal, by = first
    return listed | {"firstCheckIn": {"at": format_instant(at), "terminal": terminal, "by": by}}
