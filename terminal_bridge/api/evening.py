"""The evening list, and the signed snapshot for offline decisions."""

import hashlib
from dataclasses import asdict
from datetime import date
from typing import Any

from aiohttp import web

from appliance.clock import format_instant, optional_instant
from appliance.core.errors import InvalidDate
from appliance.core.tokens import encode_url_safe
from appliance.database.connection import Reader
from appliance.door.guest_pass import get_signing_key, venue_tag
from appliance.door.offline_sync import list_open_conflicts
from appliance.door.scan_log import list_first_check_ins
from appliance.door.terminals import Terminal
from appliance.door.verdict import FirstCheckIn
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT, SEARCH_PHONES, answer
from appliance.reservations.model import Reservation, late_from
from appliance.reservations.rows import Totals, count_evening, list_evening
from appliance.reservations.search import asks_phone, search
from appliance.venue.model import day_of_week, find_tonight, get_venue, list_slots, parse_date
from terminal_bridge.api.offline_scans import conflict_of
from terminal_bridge.api.protocol import authenticate, encode, first_check_in_of, name_of

SNAPSHOT_CONTEXT = b"svc-snapshot-v1"
LIFE_MS = 12 * 3600 * 1000
# Interval in ms at which an unchanged snapshot gets a new ETag and expiry.
_RENEWED_EVERY = 3600 * 1000


async def evening(request: web.Request) -> web.Response:
    """`GET /evening?date=&q=`: return the matching guests and the evening's totals.

    Raises InvalidDate if `date` is invalid, and RateLimited if the terminal searches for too many
    phone numbers (docs/security.md, S4).
    """
    terminal = await authenticate(request, "search")
    day = parse_date(request.query.get("date"))
    if day is None and "date" in request.query:
        raise InvalidDate(field="date")
    query = request.query.get("q", "")
    if asks_phone(query):
        request.app[SEARCH_PHONES].spend(terminal.id)
    return answer(await request[ENVIRONMENT].database.read(_list, terminal, day, query))


def _list(reader: Reader, terminal: Terminal, day: date | None, query: str) -> dict[str, Any]:
    chosen = (day or find_tonight(reader)).isoformat()
    found = search(list_evening(reader, chosen), query)
    return {
        "date": chosen,
        "totals": totals_of(count_evening(reader, chosen)),
        "items": [guest_of(each, terminal, late_from(reader, each)) for each in found],
        "conflicts": [conflict_of(conflict, terminal) for conflict in list_open_conflicts(reader)],
    }


def totals_of(totals: Totals) -> dict[str, Any]:
    """Return an evening's totals."""
    counts = {name: asdict(getattr(totals, name)) for name in ("expected", "arrived", "inside")}
    return counts | {"withoutTable": totals.without_table}


def guest_of(reservation: Reservation, terminal: Terminal, late_at: int | None) -> dict[str, Any]:
    """Return a reservation as an entry in the evening list of `terminal`.

    `late_at` is `late_from`'s result.
    """
    gone = "no_show" if reservation.no_show else "left"
    return {
        "id": reservation.id,
        "accessCode": reservation.access_code,
        **_searched_name_of(reservation, terminal),
        "table": {"id": reservation.table_id, "name": reservation.table_name,
                  "number": reservation.table_number},
        "date": reservation.date,
        "slot": reservation.slot,
        "guests": reservation.guests,
        "arrived": reservation.arrived,
        "notes": reservation.notes,
        "status": reservation.status,
        "checkedInAt": optional_instant(reservation.checked_in_at),
        "source": reservation.source,
        "vip": bool(reservation.vip),
        "lateAt": optional_instant(reservation.late_at),
        "lateFrom": optional_instant(late_at),
        "out": reservation.people_out,
        "wentOutAt": optional_instant(reservation.went_out_at),
        "gone": gone if reservation.is_gone else None,
        "walkIn": bool(reservation.walk_in),
    }  # fmt: skip


def _searched_name_of(reservation: Reservation, terminal: Terminal) -> dict[str, Any]:
    """Return `name_of` and, with the role `search`, the whole name, to search in."""
    searched = {"searchedName": reservation.customer_name} if terminal.may("search") else {}
    return name_of(reservation, terminal) | searched


async def snapshot(request: web.Request) -> web.Response:
    """`GET /snapshot`: return tonight's signed passes, or 304 if the ETag matches.

    The snapshot contains no contact details and no notes. The ETag changes when the list changes,
    and at least once an hour.
    """
    terminal = await authenticate(request)
    environment = request[ENVIRONMENT]
    etag, signed = await environment.database.read(_make_snapshot, environment, terminal)
    headers = {"ETag": f'"{etag}"', "Cache-Control": "no-cache, private"}
    if etag in {tag.value for tag in request.if_none_match or ()}:
        return web.Response(status=304, headers=headers)
    return answer(signed, headers=headers)


def _make_snapshot(
    reader: Reader, environment: Environment, terminal: Terminal
) -> tuple[str, dict[str, Any]]:
    """Return the ETag and the signed snapshot."""
    kid, private_key = get_signing_key(reader, environment.keyring)
    content = _describe(reader, environment, terminal)
    hour = reader.now // _RENEWED_EVERY
    etag = hashlib.sha256(f"{kid} {hour} {encode(content)}".encode()).hexdigest()[:32]
    made_at, expires_at = format_instant(reader.now), format_instant(reader.now + LIFE_MS)
    payload = encode({"madeAt": made_at, "expiresAt": expires_at} | content)
    signature = private_key.sign(SNAPSHOT_CONTEXT + payload.encode())
    return etag, {"payload": payload, "kid": kid, "signature": encode_url_safe(signature)}


def _describe(reader: Reader, environment: Environment, terminal: Terminal) -> dict[str, Any]:
    venue, evening = get_venue(reader), find_tonight(reader)
    weekday, date = day_of_week(evening), evening.isoformat()
    first = list_first_check_ins(reader, date)
    return {
        "environment": environment.name,
        "venueTag": venue_tag(venue.id).hex(),
        "evening": date,
        "eveningEndsAt": venue.evening_ends_at,
        "earlyMinutes": venue.early_minutes,
        "timeZone": venue.time_zone,
        "slots": [
            {"start": slot.start, "end": slot.end}
            for slot in list_slots(reader)
            if weekday in slot.days_of_week
        ],
        "passes": [
            _pass(each, first.get(each.id), terminal, late_from(reader, each))
            for each in list_evening(reader, date)
        ],
        "withoutTable": count_evening(reader, date).without_table,
    }


def _pass(
    reservation: Reservation, first: FirstCheckIn | None, terminal: Terminal, late_at: int | None
) -> dict[str, Any]:
    name = _searched_name_of(reservation, terminal)
    entry = {
        "passId": reservation.pass_id.hex(),
        "generation": reservation.generation,
        "reservationId": reservation.id,
        "guests": reservation.guests,
        "arrived": reservation.arrived,
        "state": reservation.status,
        "firstName": name.pop("customerFirstName"),
        **name,
        "table": reservation.table_name,
        "tableNumber": reservation.table_number,
        "slot": reservation.slot,
        "accessCode": reservation.access_code,
    }
    if reservation.old_codes:
        entry["replacedCodes"] = reservation.old_codes
    if reservation.people_out:
        entry |= {
            "out": reservation.people_out,
            "wentOutAt": optional_instant(reservation.went_out_at),
        }
    if late_at is not None:
        entry["lateFrom"] = format_instant(late_at)
    return entry | ({"firstCheckIn": first_check_in_of(first)} if first else {})
