"""Scans: classify the text that a terminal read, and look up its reservation.

The box and the agent use `classify` and `read_pass`; the door app follows the same vectors.
"""

import hashlib
import json
import re
from collections.abc import Callable
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
from appliance.door.signing_keys import find_verifying_key, get_venue_tag
from appliance.door.verdict import COLOURS
from appliance.reservations.rows import list_evening
from appliance.reservations.search import is_name, search_by_name
from appliance.staff.model import StaffMember
from appliance.venue.rows import find_tonight

TAKEN_BACK = "undone"  # shown by a terminal that admitted a party offline and undid it
_LINK = re.compile(r"/access/([A-Za-z0-9_-]+)(/?(?:[?#].*)?$)?")
_DAMAGED_BYTES = 2  # a venue tag with more different bytes is another venue's
_FULL = frozenset({"already_checked_in", "party_full"})


@dataclass(frozen=True, slots=True)
class Reading:
    """The text that was read, and the reservations that it may refer to.

    `kind` is pass, link, code, name, list or other. A genuine pass is in `guest_pass`;
    the other kinds have `reservation_ids`. `refused` is a result that does not depend on a
    reservation. `read_hash` is the SHA-256 of an unknown text.
    """

    kind: str
    reservation_ids: tuple[str, ...] = ()
    guest_pass: GuestPass | None = None
    refused: str | None = None
    read_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """A reading with its context. The same `id` from the same terminal is the same scan.

    `arrivals`: the number of people who are here; None is the whole remaining party. `reason`:
    why staff override a refusal, or undid an admission. `simulate`: decide without changes.
    `device_at`: the time by the terminal's clock, in ms since 1970. `staff`: the account that
    checks in from the portal.

    For an offline scan, `shown` is the result that the terminal showed, and `happened_at` is the
    time of the scan by the box's clock.
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
        """Whether the party was admitted offline. It is inside, whatever the verdict is."""
        if self.shown is None or self.was_taken_back:
            return False
        return self._shown_green or self.reason is not None

    @property
    def was_taken_back(self) -> bool:
        """Whether the party was admitted and undone offline."""
        return self.shown == TAKEN_BACK

    def overfills(self, result: str) -> bool:
        """Whether staff knowingly admitted more people than were booked, with a reason.

        The result that they overrode is the one that the terminal showed. For an online scan, or
        if the terminal showed green, it is `result`, the box's own.
        """
        overridden = result if self.shown is None or self._shown_green else self.shown
        return self.reason is not None and overridden in _FULL

    @property
    def _shown_green(self) -> bool:
        return COLOURS.get(self.shown or "") == "green"


def compensation_id(scan_id: str) -> str:
    """Return the scan id of an admission that was made offline before the box's refusal arrived.

    The refusal is logged under the scan's own id, the offline admission under this one.
    """
    return f"{scan_id}~apart"


def classify(text: str) -> tuple[str, str]:
    """Classify a scanned or typed text by its form. Returns (kind, value).

    The kinds are pass, link, code, name and other. The value of a link is its token, or "" if
    other text follows the token; of a code, the access code, though four letters may also be a
    name; of the other kinds, the text.
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
    """Return the genuine pass of `text`, or the result that refuses it.

    `verify` returns the pass, or None if its signature is not by a key of this box.
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
    """Return `test_code` or `wrong_venue` if the pass claims to be from elsewhere, else None.

    The claim is not verified: the keys of other environments and venues are unknown here.
    """
    if read.guest_pass.version != VERSIONS[environment]:
        return "test_code"
    pairs = zip(read.guest_pass.venue_tag, venue_tag, strict=True)
    return "wrong_venue" if sum(a != b for a, b in pairs) > _DAMAGED_BYTES else None


_REPLACED = -1  # the generation of passes signed by a leaked key; no reservation has it


def look_up_code(
    reader: Reader, keyring: Keyring, environment_name: str, text: str,
    *, by_name: bool, at: int | None = None,
) -> Reading:  # fmt: skip
    """Look up a guest pass, access link, access code of tonight or, if `by_name`, a name.

    `at` is the time of the scan in ms since 1970, by default now. Tonight is the evening then.
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
        key, has_leaked = find_verifying_key(reader, keyring, read.guest_pass.kid) or (None, False)
        if key is None or not read.is_signed_with(key):
            return None
        return replace(read.guest_pass, generation=_REPLACED) if has_leaked else read.guest_pass

    outcome = read_pass(text, environment_name, get_venue_tag(reader), verify)
    if isinstance(outcome, GuestPass):
        return Reading("pass", guest_pass=outcome)
    return Reading("pass", refused=outcome, read_hash=_hash(text))


def _find_by_code(reader: Reader, access_code: str, evening: str) -> tuple[str, ...]:
    """Return the evening's reservation with that code, else those with similar codes."""
    sql = """SELECT id FROM reservation
             WHERE access_code IN (SELECT value FROM json_each(:codes)) AND date = :evening
             ORDER BY access_code"""
    for codes in ([access_code], lookalikes(access_code)):
        found = reader.rows(sql, {"codes": json.dumps(codes), "evening": evening})
        if ids := tuple(row[0] for row in found):
            return ids
    return ()


def _find_by_name(reader: Reader, text: str, evening: str) -> tuple[str, ...]:
    found = search_by_name(list_evening(reader, evening), text)
    return tuple(reservation.id for reservation in found if reservation.holds)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.strip().encode()).digest()
