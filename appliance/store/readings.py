"""What a text read at the door stands for: looked up before the decision, changing nothing."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from appliance.model.access_code import lookalikes, parse_access_code
from appliance.model.evening import tonight
from appliance.model.guest_pass import VERSIONS, ReadPass, decode_passes, resembles_pass
from appliance.model.guest_search import is_name, search_by_name
from appliance.model.scan import Reading
from appliance.store.connection import Reader
from appliance.store.guest_passes import get_venue_tag
from appliance.store.reservations import list_evening
from appliance.store.signing_keys import find_leaked_key, find_verifying_key
from appliance.store.venue import get_venue
from appliance.tokens import Keyring

_LINK = re.compile(r"/access/([A-Za-z0-9_-]+)/?(?:[?#].*)?$")
_REPLACED = -1  # a generation that no reservation is at: what a leaked key signed
_DAMAGED_BYTES = 2  # a tag that differs in no more is ours with a fault in it


def read_code(
    reader: Reader,
    keyring: Keyring,
    environment_name: str,
    text: str,
    *,
    by_name: bool,
    at: int | None = None,
) -> Reading:
    """A guest pass, an access link, an access code of tonight or, if `by_name`, a guest's name.

    `at`: when it was read, in ms since 1970, if not now; tonight is the evening of then.
    """
    access_code = parse_access_code(text)
    if access_code is None and resembles_pass(text):
        return _read_pass(reader, keyring, environment_name, text)
    link = _LINK.search(text.strip())
    reservation_id = keyring.read_access_token(link[1]) if link else None
    if reservation_id is not None:
        return Reading("link", (reservation_id,))
    evening = find_tonight(reader, at).isoformat()
    found = _find_by_code(reader, access_code, evening) if access_code else ()
    if found:
        return Reading("code", found)
    named = _find_by_name(reader, text, evening) if by_name and is_name(text) else ()
    if named:
        return Reading("name", named)
    kind = "code" if access_code else "other"
    return Reading(kind, refused="unknown_code", read_hash=_hash(text))


def find_tonight(reader: Reader, at: int | None = None) -> date:
    """The evening that is on now, or was on `at`."""
    venue = get_venue(reader)
    at = reader.now if at is None else at
    return tonight(at, reader.zones.zone(venue.time_zone), venue.evening_ends_at)


def _read_pass(reader: Reader, keyring: Keyring, environment_name: str, text: str) -> Reading:
    likeliest: ReadPass | None = None
    for read in decode_passes(text):
        private_key = find_verifying_key(reader, keyring, read.guest_pass.kid)
        if private_key is not None and read.is_signed_with(private_key):
            foreign = _find_foreign(reader, environment_name, read)
            if foreign is None:
                return Reading("pass", guest_pass=read.guest_pass)
            return Reading("pass", refused=foreign, read_hash=_hash(text))
        leaked = find_leaked_key(reader, keyring, read.guest_pass.kid)
        if leaked is not None and read.is_signed_with(leaked):
            return Reading("pass", guest_pass=replace(read.guest_pass, generation=_REPLACED))
        likeliest = likeliest or read
    foreign = _find_foreign(reader, environment_name, likeliest) if likeliest else None
    return Reading("pass", refused=foreign or "bad_signature", read_hash=_hash(text))


def _find_foreign(reader: Reader, environment_name: str, read: ReadPass) -> str | None:
    """Where else a pass claims to belong: to the other environment, to another venue, or None.

    Theirs are signed with keys that this box does not know, so the claim has to do.
    """
    if read.guest_pass.version != VERSIONS[environment_name]:
        return "test_code"
    pairs = zip(read.guest_pass.venue_tag, get_venue_tag(reader), strict=True)
    different = sum(theirs != ours for theirs, ours in pairs)
    return "wrong_venue" if different > _DAMAGED_BYTES else None


def _find_by_code(reader: Reader, access_code: str, evening: str) -> tuple[str, ...]:
    """The evening's reservation of that code, else those whose codes look like it."""
    exact = _find_codes(reader, [access_code], evening)
    return exact or _find_codes(reader, lookalikes(access_code), evening)


def _find_codes(reader: Reader, codes: Iterable[str], evening: str) -> tuple[str, ...]:
    rows = reader.rows(
        """SELECT id FROM reservation
           WHERE access_code IN (SELECT value FROM json_each(:codes)) AND date = :evening
           ORDER BY access_code""",
        {"codes": json.dumps(list(codes)), "evening": evening},
    )
    return tuple(row[0] for row in rows)


def _find_by_name(reader: Reader, text: str, evening: str) -> tuple[str, ...]:
    everybody = list_evening(reader, evening)
    return tuple(found.id for found in search_by_name(everybody, text) if found.holds)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.strip().encode()).digest()
