"""What a text read at the door stands for: looked up before the decision, changing nothing."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from appliance.model.access_code import lookalikes
from appliance.model.evening import tonight
from appliance.model.guest_pass import GuestPass, ReadPass
from appliance.model.guest_search import is_name, search_by_name
from appliance.model.scan import Reading, classify, read_pass
from appliance.store.connection import Reader
from appliance.store.guest_passes import get_venue_tag
from appliance.store.reservations import list_evening
from appliance.store.signing_keys import find_leaked_key, find_verifying_key
from appliance.store.venue import get_venue
from appliance.tokens import Keyring

_REPLACED = -1  # a generation that no reservation is at: what a leaked key signed


def read_code(
    reader: Reader, keyring: Keyring, environment_name: str, text: str,
    *, by_name: bool, at: int | None = None,
) -> Reading:  # fmt: skip
    """A guest pass, an access link, an access code of tonight or, if `by_name`, a guest's name.

    `at`: when it was read, in ms since 1970, if not now; tonight is the evening of then.
    """
    kind, value = classify(text)
    if kind == "pass":
        return _read_pass(reader, keyring, environment_name, text)
    reservation_id = keyring.read_access_token(value) if kind == "link" and value else None
    if reservation_id is not None:
        return Reading("link", (reservation_id,))
    evening = find_tonight(reader, at).isoformat()
    found = _find_by_code(reader, value, evening) if kind == "code" else ()
    if found:
        return Reading("code", found)
    named = _find_by_name(reader, text, evening) if by_name and is_name(text) else ()
    if named:
        return Reading("name", named)
    return Reading(
        "code" if kind == "code" else "other", refused="unknown_code", read_hash=_hash(text)
    )


def find_tonight(reader: Reader, at: int | None = None) -> date:
    """The evening that is on now, or was on `at`."""
    venue = get_venue(reader)
    at = reader.now if at is None else at
    return tonight(at, reader.zones.zone(venue.time_zone), venue.evening_ends_at)


def _read_pass(reader: Reader, keyring: Keyring, environment_name: str, text: str) -> Reading:
    def verify(read: ReadPass) -> GuestPass | None:
        key = find_verifying_key(reader, keyring, read.guest_pass.kid)
        if key is not None and read.is_signed_with(key):
            return read.guest_pass
        leaked = find_leaked_key(reader, keyring, read.guest_pass.kid)
        if leaked is not None and read.is_signed_with(leaked):
            return replace(read.guest_pass, generation=_REPLACED)
        return None

    found = read_pass(text, environment_name, get_venue_tag(reader), verify)
    if isinstance(found, GuestPass):
        return Reading("pass", guest_pass=found)
    return Reading("pass", refused=found, read_hash=_hash(text))


def _find_by_code(reader: Reader, access_code: str, evening: str) -> tuple[str, ...]:
    """The evening's reservation of that code, else those whose codes look like it."""
    exact = _find_codes(reader, [access_code], evening)
    return exact or _find_codes(reader, lookalikes(access_code), evening)


def _find_codes(reader: Reader, codes: Iterable[str], evening: str) -> tuple[str, ...]:
    sql = """SELECT id FROM reservation
             WHERE access_code IN (SELECT value FROM json_each(:codes)) AND date = :evening
             ORDER BY access_code"""
    rows = reader.rows(sql, {"codes": json.dumps(list(codes)), "evening": evening})
    return tuple(row[0] for row in rows)


def _find_by_name(reader: Reader, text: str, evening: str) -> tuple[str, ...]:
    everybody = list_evening(reader, evening)
    return tuple(found.id for found in search_by_name(everybody, text) if found.holds)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.strip().encode()).digest()
