"""Guests' data: export, erasure on demand or by age, and the erasure list (Moroccan law 09-08).

`erasures.jsonl` in the data directory lists the ids of the reservations whose guest data was erased
on demand. A restore does not replace this file. The box can therefore repeat the erasures on the
restored data. A damaged line, for example after a power cut, does not affect the other lines. At
the next start, the box writes the lost entry again if the database still records that erasure.
"""

import asyncio
import json
import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from appliance.clock import format_instant, optional_instant
from appliance.core.errors import OperatorError
from appliance.core.files import open_private, sync
from appliance.database.connection import Reader, Transaction
from appliance.environment import Environment
from appliance.reservations.email_queue import forget_no_reminders
from appliance.reservations.model import evening_is_over
from appliance.reservations.rows import (
    add_history,
    get_reservation,
    list_history,
    update_reservation,
)
from appliance.scheduler import Job
from appliance.venue.model import get_venue
from appliance.webhooks.delivery_log import erase_deliveries_of

# Members of a history entry's detail that are not erased. They hold numbers, column names or ids.
_IMPERSONAL = {"changed", "guests", "people", "amount", "from", "to", "status"}
_ERASE = (
    """UPDATE email
       SET recipient = NULL, words = NULL,
           trouble = CASE state WHEN 'waiting' THEN 'the address was erased' ELSE trouble END,
           state = CASE state WHEN 'waiting' THEN 'failed' ELSE state END
       WHERE reservation_id = :id""",
    "UPDATE scan_log SET reason = NULL WHERE reservation_id = :id AND reason IS NOT NULL",
    "DELETE FROM claim WHERE reservation_id = :id",
    """UPDATE booking_request SET request_hash = NULL
       WHERE reservation_seq = (SELECT seq FROM reservation WHERE id = :id)""",
    """UPDATE change_request SET request_hash = NULL
       WHERE reservation_seq = (SELECT seq FROM reservation WHERE id = :id)""",
    "UPDATE erasure_request SET done_at = :now WHERE reservation_id = :id AND done_at IS NULL",
)
_PERSONAL = """(customer_name IS NOT NULL OR customer_email IS NOT NULL
    OR customer_phone IS NOT NULL OR notes IS NOT NULL)"""


def find_past_guests(reader: Reader, last_evening: date, limit: int) -> list[str]:
    """Return the ids of reservations up to and including `last_evening` that have personal data.

    Returns at most `limit` ids, earliest evening first.
    """
    sql = f"""SELECT id FROM reservation WHERE date <= :last AND {_PERSONAL}
              ORDER BY date LIMIT :limit"""  # noqa: S608 - consists of constants
    return [row[0] for row in reader.rows(sql, {"last": last_evening.isoformat(), "limit": limit})]


def erase_texts_of(tx: Transaction, reservation_id: str) -> None:
    """Erase a reservation's personal data from emails, scans, claims and history.

    Cancels waiting emails. The reasons that staff typed are deleted from the scan log. The history
    still shows who did what and when, with numbers and ids only.
    """
    values = {"id": reservation_id, "now": tx.now}
    for statement in _ERASE:
        tx.execute(statement, values)
    sql = "SELECT seq, detail FROM history WHERE reservation_id = :id AND detail IS NOT NULL"
    for seq, detail in list(tx.rows(sql, values)):
        kept = {name: value for name, value in json.loads(detail).items() if name in _IMPERSONAL}
        change = {"kept": json.dumps(kept), "seq": seq}
        tx.execute("UPDATE history SET detail = :kept WHERE seq = :seq", change)


def add_erasure(tx: Transaction, reservation_id: str) -> None:
    """Record an erasure on demand so that it is repeated after a restore."""
    sql = "INSERT INTO erasure (reservation_id, at) VALUES (:id, :now) ON CONFLICT DO NOTHING"
    tx.execute(sql, {"id": reservation_id, "now": tx.now})


def list_erasures(reader: Reader) -> dict[str, int]:
    """Return the instants (ms since 1970) of erasures on demand, by reservation id."""
    return dict(reader.rows("SELECT reservation_id, at FROM erasure ORDER BY at, reservation_id"))


def keep_existing(reader: Reader, reservation_ids: Collection[str]) -> list[str]:
    """Return the ids in `reservation_ids` for which a reservation exists, in any order."""
    sql = "SELECT id FROM reservation WHERE id IN (SELECT value FROM json_each(:ids))"
    return [row[0] for row in reader.rows(sql, {"ids": json.dumps(list(reservation_ids))})]


LIST = "erasures.jsonl"


class _Entry(msgspec.Struct):
    environment: str
    reservation: str


def read_list(folder: Path, environment: str) -> list[str]:
    """Return the environment's reservation ids in the erasure list, earliest erasure first.

    Skips invalid lines. Raises OperatorError if the file exists but cannot be read.
    """
    path = folder / LIST
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OperatorError(
            f"{path} cannot be read ({error.strerror}). Run this command as the file's owner."
        ) from None
    entries = [entry for line in lines if (entry := _parse(line))]
    return [entry.reservation for entry in entries if entry.environment == environment]


def append_to_list(folder: Path, environment: str, erased: dict[str, int]) -> None:
    """Append the erasures that the list does not contain yet, and fsync the file.

    `erased` maps reservation ids to the time of the erasure in ms since 1970.
    """
    known = set(read_list(folder, environment))
    lines = [
        json.dumps({"environment": environment, "reservation": id_, "at": format_instant(at)})
        for id_, at in erased.items()
        if id_ not in known
    ]
    if not lines:
        return
    with open(folder / LIST, "ab", opener=open_private) as file:
        file.write(("\n" + "\n".join(lines) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())
    sync(folder)  # makes the directory entry durable if the file is new


def _parse(line: bytes) -> _Entry | None:
    """Return the entry of a line, or None if the line is invalid."""
    try:
        return msgspec.json.decode(line, type=_Entry)
    except (ValueError, RecursionError):
        return None


Json = dict[str, Any]


# The lists in the export of a reservation. Columns called `at` or `…At` hold instants.
_LISTS = {
    "payments": """SELECT at, amount, method, voided_at AS voidedAt FROM payment
                   WHERE reservation_id = :id ORDER BY at, id""",
    "letters": """SELECT kind, recipient AS "to", language, state, created_at AS queuedAt,
                         sent_at AS sentAt
                  FROM email WHERE reservation_id = :id AND kind NOT GLOB 'house_*'
                  ORDER BY created_at, id""",
    "scans": """SELECT s.at, t.name AS terminal, s.kind, s.result, s.admitted, s.reason
                FROM scan_log s JOIN terminal t ON t.id = s.terminal_id
                WHERE s.reservation_id = :id ORDER BY s.seq""",
    "sentTo": """SELECT e.type AS event, e.occurred_at AS at, p.url AS host, d.state
                 FROM event e JOIN delivery d ON d.event_seq = e.seq
                 JOIN endpoint p ON p.id = d.endpoint_id
                 WHERE e.reservation_id = :id ORDER BY d.seq""",
}


def _list(reader: Reader, sql: str, reservation_id: str) -> list[Json]:
    """Return the rows of a query in `_LISTS` as JSON objects.

    URLs are reduced to their host, because the rest may contain secrets.
    """
    cursor = reader.connection.execute(sql, {"id": reservation_id})
    described = ((cursor.get_description(), row) for row in cursor)
    return [
        {name: _written(name, value) for (name, _), value in zip(columns, row, strict=True)}
        for columns, row in described
    ]


def _written(name: str, value: Any) -> Any:
    if name == "at" or name.endswith("At"):
        return optional_instant(value)
    return urlsplit(value).hostname if name == "host" else value


@dataclass(frozen=True, slots=True)
class GuestErased:
    """A notice, published after a commit, that a guest's data was erased.

    `Erasures.finish` must then run.
    """

    reservation_id: str


def erase_guest(tx: Transaction, reservation_id: str, *, actor: str) -> None:
    """Erase a guest's data on demand: name, contacts, notes, and texts that may contain them.

    Covers the reservation, emails, webhook log, scan log, history and claims. The reservation
    itself is kept, and its pass and access code stay valid, because they contain no name. Raises
    NotFound if the id is unknown.
    """
    _erase(tx, reservation_id, actor)
    add_erasure(tx, reservation_id)
    tx.notices.append(GuestErased(reservation_id))


def erase_past_guests(tx: Transaction, reservation_ids: Sequence[str]) -> None:
    """Erase the guests' data in reservations that are older than the retention period.

    These erasures are not added to the erasure list, because restored data of this age is erased
    again anyway.
    """
    for reservation_id in reservation_ids:
        _erase(tx, reservation_id, "box")


def erase_again(tx: Transaction, reservation_ids: Sequence[str]) -> int:
    """Erase guests' data that a restore has brought back. Return the number of reservations."""
    found = keep_existing(tx, reservation_ids)
    for reservation_id in found:
        _erase(tx, reservation_id, "box")
        add_erasure(tx, reservation_id)
    return len(found)


def _erase(tx: Transaction, reservation_id: str, actor: str) -> None:
    address = get_reservation(tx, reservation_id).customer_email
    update_reservation(
        tx, reservation_id,
        customer_name=None, customer_email=None, customer_phone=None, notes=None,
    )  # fmt: skip
    if address is not None:
        forget_no_reminders(tx, address)
    erase_texts_of(tx, reservation_id)
    erase_deliveries_of(tx, reservation_id)
    add_history(tx, reservation_id, "erased", actor)


_CLAIMS = "SELECT count(*) FROM claim WHERE reservation_id = :id"
_ASKED = "SELECT at FROM erasure_request WHERE reservation_id = :id"


def export_guests(reader: Reader, reservation_ids: list[str]) -> Json:
    """Return all data about these reservations as JSON. Raises NotFound if an id is unknown."""
    return {
        "venue": get_venue(reader).name,
        "exportedAt": format_instant(reader.now),
        "reservations": [_reservation(reader, id_) for id_ in reservation_ids],
    }


def _reservation(reader: Reader, reservation_id: str) -> Json:
    found = get_reservation(reader, reservation_id)
    return {
        "id": found.id, "status": found.status, "source": found.source,
        "date": found.date, "slot": found.slot, "table": found.table_name,
        "guests": found.guests, "arrived": found.arrived,
        "customer": {"name": found.customer_name, "email": found.customer_email,
                     "phone": found.customer_phone, "language": found.language},
        "notes": found.notes, "vip": bool(found.vip),
        "accessCode": found.access_code, "externalRef": found.external_ref,
        "createdAt": format_instant(found.created_at),
        "updatedAt": format_instant(found.updated_at),
        "cancelledAt": optional_instant(found.cancelled_at),
        "checkedInAt": optional_instant(found.checked_in_at),
        "lateSince": optional_instant(found.late_at),
        "leftAt": optional_instant(found.left_at), "noShow": bool(found.no_show),
        "linkExpiresAt": format_instant(found.link_expires_at),
        "history": [
            {"at": format_instant(entry.at), "what": entry.what, "by": entry.actor.split(":")[0],
             "detail": entry.detail}
            for entry in list_history(reader, found.id)
        ],
        **{name: _list(reader, sql, found.id) for name, sql in _LISTS.items()},
        "keptInBrowsers": reader.value(_CLAIMS, {"id": found.id}),
        "erasureAskedAt": optional_instant(reader.value(_ASKED, {"id": found.id})),
    }  # fmt: skip


def ask_erasure(tx: Transaction, reservation_id: str) -> bool:
    """Handle a guest's request for erasure. Returns whether the data was erased immediately.

    If the reservation holds its table and its evening is not over, the venue still needs the name,
    so the request is only stored for the staff. Raises NotFound if the id is unknown.
    """
    reservation = get_reservation(tx, reservation_id)
    sql = "INSERT OR IGNORE INTO erasure_request (reservation_id, at) VALUES (:id, :at)"
    is_first = tx.execute(sql, {"id": reservation_id, "at": tx.now}) > 0
    if not reservation.holds or evening_is_over(tx, reservation):
        erase_guest(tx, reservation_id, actor="guest")
        return True
    if is_first:
        add_history(tx, reservation_id, "erasure_asked", "guest")
    return False


log = logging.getLogger(__name__)

_BATCH = 20


class Erasures:
    """Writes one environment's erasures to the list, and removes erased data from the WAL.

    Call `start` before serving requests.
    """

    def __init__(self, environment: Environment) -> None:
        self._database = environment.database
        self._name = environment.name
        self._folder = environment.database.path.parent
        self._requested = self._done = 0
        self.job = Job(f"{self._name}: erasures", self._database, self._next_due, self.finish)

    async def start(self) -> None:
        """Erase the data of listed reservations that a restore has brought back."""
        self._database.on_commit(self._on_erasure, GuestErased)
        known = await self._database.read(list_erasures)
        listed = read_list(self._folder, self._name)
        lost = [id_ for id_ in listed if id_ not in known]
        steps = range(0, len(lost), _BATCH)
        found = sum([await self._database.write(erase_again, lost[n : n + _BATCH]) for n in steps])
        if found:
            log.warning("privacy: erased the guest data in %d restored reservations again", found)
        # Run `finish`, because a crash may have prevented it from truncating the WAL.
        self._requested += bool(found or known)

    async def finish(self) -> None:
        """Write the erasure list, and truncate the WAL, which still contains the erased data."""
        requested = self._requested
        erased = await self._database.read(list_erasures)
        await asyncio.to_thread(append_to_list, self._folder, self._name, erased)
        if not await self._database.cut_log():
            raise OperatorError(
                f"the WAL of {self._name}.db is in use and still contains erased data"
            )
        self._done = requested

    def _on_erasure(self, _notices: Sequence[object]) -> None:
        self._requested += 1
        self.job.changed()

    def _next_due(self, _reader: Reader) -> int | None:
        return 0 if self._requested > self._done else None
