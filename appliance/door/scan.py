"""A scan: the text that was read, and the reservation that it identifies.

The box and the terminal agent both use `classify` and `read_pass`. The door app has its own
implementation, which must pass the same test vectors.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from appliance.core.tokens import Keyring
from appliance.database.connection import Reader
from appliance.door.guest_pass import (
    VERSIONS,
    GuestPass,
    ReadPass,
    decode_passes,
    drop_unseen,
    find_access_code,
    find_verifying_key,
    get_venue_tag,
    is_pass,
    lookalikes,
    parse_access_code,
)
from appliance.door.verdict import COLOURS
from appliance.reservations.rows import find_reservation, list_evening
from appliance.reservations.search import is_name, search_by_name
from appliance.staff.model import StaffMember
from appliance.venue.model import find_tonight

TAKEN_BACK = "undone"  # the result of an admission that was made and undone offline
_LINK = re.compile(r"/(?:access|claim-guest)/([A-Za-z0-9_-]+)", re.IGNORECASE)
_TOKEN_LENGTH = 44
# A damaged pass may have this many wrong bytes in its venue tag. If more differ, another venue
# issued the pass.
_DAMAGED_BYTES = 2
_FULL = frozenset({"already_checked_in", "party_full"})


class Reading(Struct, frozen=True):
    """The result of looking up a scanned text.

    `kind` is pass, link, code, name, list, walk_in or other. A genuine pass is in `guest_pass`; for
    the other kinds, `reservation_ids` lists the possible reservations, none for a walk-in without a
    table, and `is_replaced` says that the link or code was replaced. If the pass is not genuine or
    no reservation was found, `refused` is the verdict's result, and `read_hash` is the SHA-256 of
    the text.
    """

    kind: str
    reservation_ids: tuple[str, ...] = ()
    guest_pass: GuestPass | None = None
    refused: str | None = None
    read_hash: bytes | None = None
    is_replaced: bool = False

    @property
    def generation(self) -> int | None:
        """The pass's generation, `REPLACED` for a replaced link or code, or else None."""
        if self.guest_pass is not None:
            return self.guest_pass.generation
        return REPLACED if self.is_replaced else None


# The generation of replaced links and codes, and of passes signed with a leaked key. No reservation
# has it, so they are refused as revoked.
REPLACED = -1
UNREAD = Reading("other")  # for a scan whose text has not been looked up yet
WALK_IN = Reading("walk_in")  # for people who come or go without a reservation


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan. If a terminal sends the same `id` again, it is the same scan.

    - `arrivals`: the number of people at the door, or None for all who have not arrived yet.
    - `reason`: the reason that staff gave for overriding a refusal or undoing an admission.
    - `simulate`: true to get a verdict without admitting the party.
    - `device_at`: the time on the terminal's clock, in ms since 1970.
    - `staff`: the staff member who checks in the party from the portal.
    - `shown`: the result that the terminal showed. None unless the scan was offline.
    - `happened_at`: the time of an offline scan by the box's clock, in ms since 1970.
    - `leaving`: true if the people go out. `arrivals` is then how many, or None for all inside.
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
    leaving: bool = False

    @property
    def was_let_in(self) -> bool:
        """Whether the terminal already let the party in, or out, offline."""
        if self.shown is None or self.was_taken_back:
            return False
        return self._shown_green or self.reason is not None

    @property
    def was_taken_back(self) -> bool:
        """Whether the terminal admitted the party offline and then undid the admission."""
        return self.shown == TAKEN_BACK

    def overfills(self, result: str) -> bool:
        """Whether staff knowingly admitted more people than were booked, and gave a reason.

        If the scan was online or the terminal showed green, staff overrode `result`, which is the
        box's result. Otherwise they overrode the result that the terminal showed.
        """
        overridden = result if self.shown is None or self._shown_green else self.shown
        return self.reason is not None and overridden in _FULL

    @property
    def _shown_green(self) -> bool:
        return COLOURS.get(self.shown or "") == "green"


def compensation_id(scan_id: str) -> str:
    """Return a second scan id for a scan that the box refused but the terminal admitted offline.

    This happens if the refusal does not reach the terminal in time. The refusal is logged under
    `scan_id`, and the admission is logged under the returned id.
    """
    return f"{scan_id}~apart"


def classify(text: str) -> tuple[str, str]:
    """Classify a scanned or typed text by its form, and return (kind, value).

    Scanners may send characters before and after a pass, link or code.

    - link: the value is the token.
    - code: the value is the access code. A text of four letters may also be a name.
    - pass, name and other: the value is the text itself. A pass that is not whole is other.
    """
    access_code = parse_access_code(text)
    if access_code is not None:
        return "code", access_code
    if is_pass(text):
        return "pass", text
    link = _LINK.search("".join(drop_unseen(text).split()))
    if link is not None:
        return "link", link[1][:_TOKEN_LENGTH]
    access_code = find_access_code(text)
    if access_code is not None:
        return "code", access_code
    return "name" if is_name(text) else "other", text


def read_pass(
    text: str, environment: str, venue_tag: bytes, verify: Callable[[ReadPass], GuestPass | None]
) -> GuestPass | str:
    """Return the genuine guest pass in `text`, or the result code of the refusal.

    `verify` must return the pass, or None if it was not signed with a key of this box.
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
    """Return `test_code` or `wrong_venue` if the pass is for another environment or venue.

    Return None otherwise. The signature is not verified, because it was made with the key of the
    other environment or venue, which is not available here.
    """
    if read.guest_pass.version != VERSIONS[environment]:
        return "test_code"
    pairs = zip(read.guest_pass.venue_tag, venue_tag, strict=True)
    return "wrong_venue" if sum(a != b for a, b in pairs) > _DAMAGED_BYTES else None


def look_up_code(
    reader: Reader, keyring: Keyring, environment_name: str, text: str,
    *, by_name: bool, at: int | None = None,
) -> Reading:  # fmt: skip
    """Look up a guest pass, an access link, an access code or, if `by_name`, a customer's name.

    Codes and names are looked up among the reservations for the evening that includes `at` (ms
    since 1970, default: now).
    """
    kind, value = classify(text)
    if kind == "pass":
        return _read_pass(reader, keyring, environment_name, text)
    evening = find_tonight(reader, at).isoformat()
    link = _find_by_link(reader, keyring, value, evening) if kind == "link" else None
    if link is not None:
        now = find_reservation(reader, link[0])
        return Reading("link", link[:1], is_replaced=now is None or now.link_generation != link[1])
    reading = _find_by_code(reader, value, evening) if kind == "code" else None
    if reading is not None:
        return reading
    named = _find_by_name(reader, text, evening) if by_name and is_name(text) else ()
    if named:
        return Reading("name", named)
    return Reading(
        "code" if kind == "code" else "other", refused="unknown_code", read_hash=_hash(text)
    )


def _read_pass(reader: Reader, keyring: Keyring, environment_name: str, text: str) -> Reading:
    def verify(read: ReadPass) -> GuestPass | None:
        key, has_leaked = find_verifying_key(reader, keyring, read.guest_pass.kid) or (None, False)
        if key is None or not read.is_signed_with(key):
            return None
        return replace(read.guest_pass, generation=REPLACED) if has_leaked else read.guest_pass

    outcome = read_pass(text, environment_name, get_venue_tag(reader), verify)
    if isinstance(outcome, GuestPass):
        return Reading("pass", guest_pass=outcome)
    return Reading("pass", refused=outcome, read_hash=_hash(text))


def _find_by_link(
    reader: Reader, keyring: Keyring, token: str, evening: str
) -> tuple[str, int] | None:
    """Return the id and the generation in the token of an access or claim link.

    If a scanner has changed the case of all letters, search among the evening's reservations.
    """
    link = keyring.read_access_token(token) or keyring.read_claim_token(token)
    if link is not None or len(token) < _TOKEN_LENGTH:
        return link
    if token not in {token.upper(), token.lower()}:
        return None
    for reservation in list_evening(reader, evening):
        link = reservation.id, reservation.link_generation
        tokens = keyring.access_token(*link), keyring.claim_token(*link)
        if token.upper() in {each.upper() for each in tokens}:
            return link
    return None


def _find_by_code(reader: Reader, access_code: str, evening: str) -> Reading | None:
    """Find the evening's reservations with that code, or else the one that had it.

    If there are none, find those with similar codes.
    """
    sql = """SELECT id FROM reservation
             WHERE access_code IN (SELECT value FROM json_each(:codes)) AND date = :evening
             ORDER BY access_code"""
    replaced = """SELECT id FROM reservation
                  WHERE date = :evening AND replaced_codes LIKE '%' || :codes || '%'"""
    for query, codes in (
        (sql, json.dumps([access_code])), (replaced, access_code),
        (sql, json.dumps(lookalikes(access_code))),
    ):  # fmt: skip
        found = reader.rows(query, {"codes": codes, "evening": evening})
        if ids := tuple(row[0] for row in found):
            return Reading("code", ids, is_replaced=query is replaced)
    return None


def _find_by_name(reader: Reader, text: str, evening: str) -> tuple[str, ...]:
    found = search_by_name(list_evening(reader, evening), text)
    return tuple(reservation.id for reservation in found if reservation.holds)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.strip().encode()).digest()
