"""A scan: what a terminal read, and which reservation it stands for."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from appliance.core.tokens import Keyring
from appliance.database.connection import Reader
from appliance.door.guest_pass import (
    VERSIONS,
    GuestPass,
    ReadPass,
    decode_passes,
    lookalikes,
    parse_access_code,
    resembles_pass,
)
from appliance.door.signing_keys import find_leaked_key, find_verifying_key, get_venue_tag
from appliance.door.verdict import COLOURS
from appliance.reservations.rows import list_evening
from appliance.reservations.search import is_name, search_by_name
from appliance.staff.model import StaffMember
from appliance.venue.rows import find_tonight

TAKEN_BACK = "undone"  # what a terminal showed that let them in and took it back before it told
_UNHEARD = "~apart"
_LINK = re.compile(r"/access/([A-Za-z0-9_-]+)(/?(?:[?#].*)?$)?")
_DAMAGED_BYTES = 2  # a tag that differs in no more is ours with a fault in it
_FULL = frozenset({"already_checked_in", "party_full"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read at the door, and whom it may stand for.

    `kind` is pass, link, code, name, list, or other. A genuine pass is in `guest_pass`;
    other kinds name reservations. `refused` is a result that needs no look at reservations.
    `read_hash` is SHA-256 of a text that is not ours.
    """

    kind: str
    reservation_ids: tuple[str, ...] = ()
    guest_pass: GuestPass | None = None
    refused: str | None = None
    read_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """A reading with its circumstances. The same `id` from the same terminal is one scan.

    `arrivals`: how many are here, None for all who are missing. `reason`: why staff admit
    whoever the box would not, or took back whom they had let in. `simulate`: decide, and change
    nothing. `device_at`: when it happened by the terminal's own clock. `staff`: who did it from
    the portal.

    Of a scan that was made out of the box's reach, `shown` is the result that its terminal
    showed, and `happened_at` when that was, as far as the box can tell by its own clock.
    """

    id: str
    reading: Reading
    arrivals: int | None = None
    reason: str | None = None
    simulate: bool = False
    device_at: int | None = None
    staff: StaffMember | None = None
    shown: str | None = None
    happened_at: int | None = None

    @property
    def was_let_in(self) -> bool:
        """Whether its guests are inside already, whatever is decided now."""
        if self.shown is None or self.was_taken_back:
            return False
        return self._shown_green or self.reason is not None

    @property
    def was_taken_back(self) -> bool:
        """Whether its guests were let in, and taken back before the box heard of them."""
        return self.shown == TAKEN_BACK

    def overfills(self, result: str) -> bool:
        """Whether staff knew that the party was full, and let more in with a reason.

        The terminal tells by what it showed before, or it tells green: then `result` does, which
        is what the box says of the party.
        """
        before = result if self.shown is None or self._shown_green else self.shown
        return self.reason is not None and before in _FULL

    @property
    def _shown_green(self) -> bool:
        return COLOURS.get(self.shown or "") == "green"


def compensation_id(scan_id: str) -> str:
    """The id under which those are counted whom the box refused too late for anybody to hear.

    The refusal keeps the scan's own id; their admission, by the terminal's list, is beside it.
    """
    return f"{scan_id}{_UNHEARD}"


def classify(text: str) -> tuple[str, str]:
    """What a text that was read or typed looks like, and the part of it that counts.

    pass (the text), link (its token, "" where something else follows it), code (the access
    code; four letters may be a name as well), name or other (the text).
    """
    access_code = parse_access_code(text)
    if access_code is not None:
        return "code", access_code
    if resembles_pass(text):
        return "pass", text
    link = _LINK.search(text.strip())
    if link is not None:
        return "link", link[1] if link[2] is not None else ""
    return "name" if is_name(text) else "other", text


def read_pass(
    text: str, environment: str, venue_tag: bytes, verify: Callable[[ReadPass], GuestPass | None]
) -> GuestPass | str:
    """The genuine pass that `text` spells, or the result that refuses it.

    `verify` returns the pass as it counts, None for a signature that is not one of the box's.
    """
    likeliest: ReadPass | None = None
    for read in decode_passes(text):
        genuine = verify(read)
        if genuine is not None:
            return _find_foreign(read, environment, venue_tag) or genuine
        likeliest = likeliest or read
    foreign = _find_foreign(likeliest, environment, venue_tag) if likeliest else None
    return foreign or "bad_signature"


def _find_foreign(read: ReadPass, environment: str, venue_tag: bytes) -> str | None:
    """Where else a pass claims to belong: to the other environment, to another venue, or None.

    Theirs are signed with keys that nobody here knows, so the claim has to do.
    """
    if read.guest_pass.version != VERSIONS[environment]:
        return "test_code"
    pairs = zip(read.guest_pass.venue_tag, venue_tag, strict=True)
    return "wrong_venue" if sum(a != b for a, b in pairs) > _DAMAGED_BYTES else None


_REPLACED = -1  # a generation that no reservation is at: what a leaked key signed


def look_up_code(
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
