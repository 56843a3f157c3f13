"""The snapshot as the bridge reads it: whose signature holds, and what stands in it."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance.clock import parse_instant
from appliance.model.reservation import Reservation
from appliance.model.verdict import FirstCheckIn
from terminal_bridge.bridge.client import Identity

_CONTEXT = b"svc-snapshot-v1"
_AHEAD_MS = 10 * 60_000  # one from further in the future was made by another clock


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tonight's passes as the box knew them at `made_at` (ms since 1970).

    `entries`: when the first of a party came in, by reservation; `clock` is left empty.
    """

    made_at: int
    expires_at: int
    evening: date
    early_minutes: int
    time_zone: str
    evening_ends_at: str
    passes: tuple[Reservation, ...]
    entries: Mapping[str, FirstCheckIn]

    def is_fresh(self, now: int) -> bool:
        """Whether it may let anybody in: under 12 h old, by a clock that makes sense."""
        return self.made_at - _AHEAD_MS < now < self.expires_at


def read_snapshot(signed: dict[str, Any], identity: Identity) -> Snapshot | None:
    """What the box signed for this venue and environment, or None."""
    try:
        payload = str(signed["payload"])
        if not _is_signed(payload, signed, identity):
            return None
        said = json.loads(payload)
        if (said["environment"], said["venueTag"]) != (identity.environment, identity.venue_tag):
            return None
        return Snapshot(
            made_at=parse_instant(said["madeAt"]),
            expires_at=parse_instant(said["expiresAt"]),
            evening=date.fromisoformat(said["evening"]),
            early_minutes=int(said["earlyMinutes"]),
            time_zone=str(said["timeZone"]),
            evening_ends_at=str(said.get("eveningEndsAt", identity.evening_ends_at)),
            passes=tuple(_reservation(one, said["evening"]) for one in said["passes"]),
            entries={
                one["reservationId"]: _entry(one["firstCheckIn"])
                for one in said["passes"]
                if one.get("firstCheckIn")
            },
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _is_signed(payload: str, signed: dict[str, Any], identity: Identity) -> bool:
    key = identity.public_key(int(signed["kid"]))
    if key is None:
        return False
    try:
        signature = base64.urlsafe_b64decode(str(signed["signature"]) + "==")
        Ed25519PublicKey.from_public_bytes(key).verify(signature, _CONTEXT + payload.encode())
    except (InvalidSignature, binascii.Error):
        return False
    return True


def _entry(first: dict[str, Any]) -> FirstCheckIn:
    return FirstCheckIn(parse_instant(first["at"]), "", first.get("terminal"), first.get("by"))


def _reservation(listed: dict[str, Any], evening: str) -> Reservation:
    """A line of the snapshot as the rules know it; what a snapshot does not tell is empty."""
    members: dict[str, Any] = dict.fromkeys(Reservation.__slots__)
    table = listed["table"]
    members |= {
        "id": listed["reservationId"],
        "status": listed["state"],
        "table_id": "",
        "table_number": "",
        "table_name": table["name"] if isinstance(table, dict) else table,
        "date": evening,
        "slot": listed["slot"],
        "guests": int(listed["guests"]),
        "customer_name": listed["firstName"],
        "access_code": listed["accessCode"],
        "pass_id": bytes.fromhex(listed["passId"]),
        "generation": int(listed["generation"]),
        "arrived": int(listed["arrived"]),
    }
    return Reservation(**members)
