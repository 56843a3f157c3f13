"""Parse snapshots, and decide scans while the box is unreachable (docs/decisions/door.md).

An offline verdict is green only if the guest is in a snapshot less than 12 h old and has not yet
arrived.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from msgspec.structs import replace

from appliance.clock import MINUTE_MS, ZoneDatabase, parse_instant
from appliance.core.i18n import load_languages
from appliance.core.i18n import mark as _
from appliance.door.guest_pass import GuestPass, ReadPass, is_signed, lookalikes
from appliance.door.scan import REPLACED, classify, read_pass
from appliance.door.verdict import COLOURS, FirstCheckIn, Verdict, awaited_back, judge, phrase, see
from appliance.reservations.model import Reservation
from appliance.reservations.search import is_name
from appliance.venue.model import Slot, interval, minute_of, tonight
from terminal_bridge.agent.client import Identity
from terminal_bridge.scanners.scanner import ARRIVALS, Answer

_CONTEXT = b"svc-snapshot-v1"
# A snapshot is not used to admit guests if it is dated more than 10 min after the bridge's current
# time.
_AHEAD_MS = 10 * 60_000
# Amber results that occur only offline.
OFFLINE: Mapping[str, str] = {
    "unlisted": _("Genuine pass, but not on the list: ask the host."),
    "old_list": _("The list is too old and the box cannot be reached: ask the host."),
    "needs_box": _("The box cannot be reached: ask for the QR code."),
}
# The usual messages for these results contain the reservation's time. The bridge does not know this
# time if the reservation is not in the snapshot, which lists only tonight's reservations.
_OTHER_EVENING = frozenset({"not_yet", "too_late"})
_DATE_ONLY = _("Pass for another evening: ask the host.")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tonight's passes as of `made_at`. Times are in ms since 1970.

    `entries` maps reservation ids to first check-ins, whose `clock` is empty.
    """

    made_at: int
    expires_at: int
    evening: date
    early_minutes: int
    passes: tuple[Reservation, ...]
    entries: Mapping[str, FirstCheckIn]

    def is_fresh(self, now: int) -> bool:
        """Whether this snapshot may be used to admit guests.

        It must be less than 12 h old, and not be dated more than 10 min in the future.
        """
        return self.made_at - _AHEAD_MS < now < self.expires_at


@dataclass(frozen=True, slots=True)
class Context:
    """The data for an offline verdict. `now` is in ms since 1970.

    `arrived` maps reservation ids to the number of people that this bridge has admitted since the
    snapshot was made.
    """

    identity: Identity
    snapshot: Snapshot | None
    arrived: Mapping[str, int]
    zones: ZoneDatabase
    now: int


@dataclass(frozen=True, slots=True)
class Decision:
    """An offline verdict. `admitted` is the number of people it admits."""

    result: str
    answer: Answer
    reservation_id: str | None = None
    admitted: int = 0


def decide_offline(code: str, context: Context) -> Decision:
    """Decide `code` from the snapshot. The caller must store the admission."""
    kind, value = classify(code)
    if kind == "pass":
        return _decide_pass(code, context)
    if kind == "code":
        may_be_name = is_name(code) and code.strip().upper() == value.removeprefix("SVC-")
        return _decide_access_code(value, context, may_be_name=may_be_name)
    only_the_box = context.snapshot is None or kind in {"link", "name"}
    return _decision("needs_box" if only_the_box else "unknown_code", context)


def _decide_pass(code: str, context: Context) -> Decision:
    identity = context.identity

    def verify(read: ReadPass) -> GuestPass | None:
        key = identity.public_key(read.guest_pass.kid)
        return read.guest_pass if key is not None and read.is_signed_by(key) else None

    found = read_pass(code, identity.environment, bytes.fromhex(identity.venue_tag), verify)
    if isinstance(found, str):
        return _decision(found, context)
    for listed in context.snapshot.passes if context.snapshot else ():
        if listed.pass_id == found.pass_id:
            return _decide_guest(listed, found.generation, context)
    evening = _tonight(context)
    if found.evening != evening:
        return _decision("not_yet" if found.evening > evening else "too_late", context)
    is_fresh = context.snapshot is not None and context.snapshot.is_fresh(context.now)
    return _decision("unlisted" if is_fresh else "old_list", context)


def _decide_access_code(access_code: str, context: Context, *, may_be_name: bool) -> Decision:
    """Decide an access code from tonight's list.

    Only the box can decide codes for other evenings.
    """
    snapshot = context.snapshot
    if snapshot is None or snapshot.evening != _tonight(context):
        return _decision("needs_box", context)
    found = [listed for listed in snapshot.passes if listed.access_code == access_code]
    replaced = [listed for listed in snapshot.passes if access_code in listed.old_codes]
    if replaced and not found:
        return _decide_guest(replaced[0], REPLACED, context)
    if not found:
        alike = set(lookalikes(access_code))
        found = [listed for listed in snapshot.passes if listed.access_code in alike]
    if len(found) == 1:
        return _decide_guest(found[0], None, context)
    if found:
        return _decision("ambiguous", context)
    is_unknown = snapshot.is_fresh(context.now) and not may_be_name
    return _decision("unknown_code" if is_unknown else "needs_box", context)


def _decide_guest(listed: Reservation, generation: int | None, context: Context) -> Decision:
    snapshot = context.snapshot
    assert snapshot is not None  # noqa: S101 - `listed` comes from the snapshot
    guest = _enter(listed, context.arrived.get(listed.id, 0))
    guest = replace(guest, checked_in_at=snapshot.made_at if guest.arrived else None)
    zone = context.zones.zone(context.identity.time_zone)
    starts_at = minute_of(snapshot.evening, guest.starts, zone)
    too_early = context.now < starts_at - snapshot.early_minutes * MINUTE_MS
    result = judge(
        guest, generation=generation, arrivals=None, tonight=_tonight(context), too_early=too_early
    )
    is_green = COLOURS[result] == "green"
    if is_green and not snapshot.is_fresh(context.now):
        return _decision("old_list", context, guest)
    return _decision(result, context, guest, admitted=ARRIVALS if is_green else 0)


def _enter(guest: Reservation, people: int) -> Reservation:
    """Return the party after people of it came in. Those who are out come back first."""
    back = min(people, awaited_back(guest))
    arrived, out = guest.arrived + people - back, guest.people_out - back
    return replace(guest, arrived=arrived, people_out=out)


def _tonight(context: Context) -> date:
    identity = context.identity
    return tonight(context.now, context.zones.zone(identity.time_zone), identity.evening_ends_at)


def _decision(
    result: str, context: Context, guest: Reservation | None = None, admitted: int = 0
) -> Decision:
    identity = context.identity
    after = _enter(guest, admitted) if guest else None
    seen = see(after) if after else None
    offline = _DATE_ONLY if result in _OTHER_EVENING and guest is None else OFFLINE.get(result)
    if offline is not None:
        sentence = load_languages().get(identity.language).plain(offline)
    else:
        first = context.snapshot.entries.get(guest.id) if context.snapshot and guest else None
        if first is not None:
            first = replace(first, clock=_clock(first.at, context))
        back = guest.people_out - after.people_out if guest and after else 0
        out_at = guest.went_out_at if guest and back else None
        verdict = Verdict(
            result, seen, admitted - back, first, moved=back,
            went_out=_clock(out_at, context) if out_at else None,
        )  # fmt: skip
        sentence = phrase(verdict, identity.language).staff
    table, party = (seen.table_name, f"{seen.arrived}/{seen.guests}") if seen else ("", "")
    answer = Answer(COLOURS.get(result, "amber"), result, table, party, sentence)
    return Decision(result, answer, guest.id if guest else None, admitted)


def _clock(at: int, context: Context) -> str:
    zone = context.zones.zone(context.identity.time_zone)
    return f"{datetime.fromtimestamp(at / 1000, zone):%H:%M}"


def read_snapshot(signed: dict[str, Any], identity: Identity) -> Snapshot | None:
    """Parse a signed snapshot.

    Return None if the signature is invalid, the content is malformed, or the snapshot is from a
    different venue or environment.
    """
    try:
        payload, key = str(signed["payload"]), identity.public_key(int(signed["kid"]))
        signature = base64.urlsafe_b64decode(str(signed["signature"]) + "==")
        if not is_signed(key or b"", signature, _CONTEXT + payload.encode()):
            return None
        content = json.loads(payload)
        origin = (content["environment"], content["venueTag"])
        if origin != (identity.environment, identity.venue_tag):
            return None
        return Snapshot(
            made_at=parse_instant(content["madeAt"]),
            expires_at=parse_instant(content["expiresAt"]),
            evening=date.fromisoformat(content["evening"]),
            early_minutes=int(content["earlyMinutes"]),
            passes=tuple(_reservation(listed, content) for listed in content["passes"]),
            entries={
                listed["reservationId"]: FirstCheckIn(
                    parse_instant(first["at"]), "", first.get("terminal"), first.get("by")
                )
                for listed in content["passes"]
                if (first := listed.get("firstCheckIn"))
            },
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _reservation(listed: dict[str, Any], content: dict[str, Any]) -> Reservation:
    """Convert an entry of the snapshot `content` to a reservation. Missing fields are None."""
    missing: dict[str, Any] = dict.fromkeys(Reservation.__struct_fields__)
    start = listed["slot"]
    slot = Slot("", "", start, start, ()) if start else None
    return Reservation(**missing | {
        "id": listed["reservationId"], "status": listed["state"],
        "table_id": "", "table_number": "", "table_name": listed["table"],
        "date": content["evening"], "slot": start, "guests": int(listed["guests"]),
        "customer_name": listed["firstName"], "names_at_door": "whole",
        "access_code": listed["accessCode"],
        "replaced_codes": json.dumps(listed.get("replacedCodes", [])),
        "pass_id": bytes.fromhex(listed["passId"]), "generation": int(listed["generation"]),
        "arrived": int(listed["arrived"]), "people_out": int(listed.get("out", 0)),
        "went_out_at": parse_instant(listed["wentOutAt"]) if listed.get("wentOutAt") else None,
        "left_at": parse_instant(content["madeAt"]) if listed["state"] == "completed" else None,
        "starts": interval(slot, content["eveningEndsAt"])[0],
    })  # fmt: skip
