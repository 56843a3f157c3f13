"""A scan: what a terminal read, what it may stand for, and what it asks for.

`classify` and `read_pass` serve the box and the bridge; the door app follows the same vectors.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from appliance.model.access_code import parse_access_code
from appliance.model.guest_pass import VERSIONS, GuestPass, ReadPass, decode_passes, resembles_pass
from appliance.model.guest_search import is_name
from appliance.model.staff import StaffMember
from appliance.model.verdict import COLOURS

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


def unheard_id(scan_id: str) -> str:
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
