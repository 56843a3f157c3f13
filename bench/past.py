"""Rows that no partner could make in a minute: a million past reservations, tonight's
guests and evenings to read, written straight into the database of a stopped box."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import apsw

from bench.venue import FIRST_HOUR, GUESTS, LAST_HOUR, TABLES, Plan

PAST_EVENING = 360  # reservations of a past evening: half of what the venue can hold
BATCH = 50_000
ANNOUNCED = ("reservation.created", "reservation.checked_in")  # what the past has events of
MINUTES_OF_A_DAY = 1440

# Version 7, as tokens.py makes them: the time first, so that the newest id is the last.
_UUID = """substr(printf('%012x', midnight - 864000000 + n % 86400000), 1, 8) || '-'
    || substr(printf('%012x', midnight - 864000000 + n % 86400000), 9)
    || lower('-7' || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2)
    || '-' || hex(randomblob(6)))"""

# One reservation for each number n in [:first, :last): the caller says which evening, table
# and minutes the number means. Codes count in the alphabet of tokens.py.
_INSERT = """
INSERT INTO reservation (id, status, source, table_id, date, slot, starts, ends, guests,
    customer_name, customer_email, customer_phone, notes, access_code, pass_id,
    checked_in_at, arrived, link_expires_at, created_at, updated_at, cancelled_at,
    external_ref)
WITH RECURSIVE
    number (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM number WHERE n + 1 < :last),
    place AS (SELECT n, {columns} FROM number),
    wish AS (
        SELECT *, unixepoch(date) * 1000 AS midnight FROM place)
SELECT {uuid}, status, 'partner', (SELECT id FROM temp.numbered WHERE position = wish.table_n),
    date, printf('%02d:%02d', starts / 60, starts % 60), starts, ends, :guests,
    {contacts}, {code}, randomblob(8),
    iif(status = 'completed', midnight + starts * 60000, NULL),
    iif(status = 'completed', :guests, 0),
    midnight + 129600000, midnight - 864000000, midnight - 864000000,
    iif(status = 'cancelled', midnight - 432000000, NULL),
    'P-' || :kind || n
FROM wish
"""
_REQUESTS = """
INSERT INTO booking_request (reservation_seq, lineage, idempotency_key, issued_code, email_outcome)
SELECT seq, :lineage, 'prepared-' || external_ref, printf('SVC-%04d', seq % 10000), 'skipped'
FROM reservation WHERE seq > :after"""
_HOLDS = """INSERT INTO hold (date, table_id, starts, ends, reservation_seq, source)
SELECT date, table_id, starts, ends, seq, source FROM reservation
WHERE seq > :after AND status <> 'cancelled'"""
_LETTER = "substr('23456789ABCDEFGHJKMNPQRSTUVWXYZ', (n / {power}) % 31 + 1, 1)"
_CODE = " || ".join(["'SVC-'", *(_LETTER.format(power=31**power) for power in (3, 2, 1, 0))])
_KNOWN = "'Salma Bennani', 'salma@example.com', '+212600000000', 'Une table au calme'"
_ERASED = "NULL, NULL, NULL, NULL"

_PAST = f"""date(:tonight, '-' || (:days - n / {PAST_EVENING}) || ' days') AS date,
    n % {TABLES} AS table_n,
    ({FIRST_HOUR} + n % {PAST_EVENING} / {TABLES} * 2) * 60 AS starts,
    ({FIRST_HOUR} + n % {PAST_EVENING} / {TABLES} * 2 + 1) * 60 AS ends,
    iif(n % 10 = 0, 'cancelled', 'completed') AS status"""
# Latest first: the schema's look for overlaps starts at the beginning of the evening.
_TONIGHT = f""":tonight AS date, n % {TABLES} AS table_n,
    {MINUTES_OF_A_DAY - 1} - n / {TABLES} AS starts, {MINUTES_OF_A_DAY} - n / {TABLES} AS ends,
    'confirmed' AS status"""
_READ = f"""date(:first_date, '+' || (n / {TABLES}) || ' days') AS date, n % {TABLES} AS table_n,
    ({FIRST_HOUR} + n % ({LAST_HOUR} - {FIRST_HOUR})) * 60 AS starts,
    ({FIRST_HOUR} + 1 + n % ({LAST_HOUR} - {FIRST_HOUR})) * 60 AS ends, 'confirmed' AS status"""

_HISTORY = """INSERT INTO history (reservation_id, at, what, actor)
SELECT id, created_at, 'created', 'key:' || :lineage FROM reservation
WHERE seq > :after"""
_SCANS = """INSERT INTO scan_log (scan_id, terminal_id, at, kind, reservation_id, result, admitted,
    verdict)
SELECT lower(hex(randomblob(16))), (SELECT id FROM terminal), checked_in_at, 'pass', id,
    'checked_in', guests, :verdict
FROM reservation WHERE seq > :after AND status = 'completed'"""
# What the log of webhooks keeps: thirty days (retention.attempt_days), but for the last,
# which a box that starts would begin to forget.
_EVENTS = """INSERT INTO event (type, reservation_id, occurred_at)
SELECT type, id, at FROM (
    SELECT seq, 'reservation.created' AS type, id, created_at AS at FROM reservation
    WHERE seq > :after
    UNION ALL
    SELECT seq, 'reservation.checked_in', id, checked_in_at FROM reservation
    WHERE seq > :after AND checked_in_at NOT NULL)
WHERE at >= :kept ORDER BY seq, at"""
_DELIVERIES = """INSERT INTO delivery (id, endpoint_id, event_seq, state, attempts, due_at,
    finished_at)
SELECT lower(hex(randomblob(16))), endpoint.id, event.seq, 'delivered', 1, occurred_at,
    occurred_at + 40
FROM event, endpoint WHERE event.seq > :event"""
_ATTEMPTS = """INSERT INTO attempt (delivery_seq, n, at, duration_ms, phase, outcome, http_status,
    remote_address, charged, body_sha256)
SELECT seq, 1, due_at, 40, 'done', 'delivered', 200, '127.0.0.1', 1, randomblob(32)
FROM delivery WHERE event_seq > :event"""


def fill_tonight(database: Path, plan: Plan, lineage: str, guests: int | None = None) -> None:
    """Confirmed reservations of tonight, 86,400 of them, and the evenings that are only read."""
    connection = _opened(database)
    values: dict[str, str | int] = {
        "tonight": plan.tonight.isoformat(),
        "lineage": lineage,
        "guests": GUESTS,
    }
    with connection:
        _insert(
            connection,
            _TONIGHT,
            _CODE,
            _KNOWN,
            {**values, "kind": "t", "first": 0, "last": guests or supply()},
        )
        read = plan.read_dates()
        days: dict[str, str | int] = {
            "first_date": read[0].isoformat(),
            "first": 0,
            "last": len(read) * TABLES,
        }
        _insert(connection, _READ, "NULL", _KNOWN, {**values, **days, "kind": "r"})
    _closed(connection)


def fill_past(
    database: Path, plan: Plan, lineage: str, rows: int, progress: Callable[[int], None]
) -> None:
    """`rows` completed and cancelled reservations before tonight, oldest first, with the
    history, the door log and the deliveries that the box keeps of them; contacts erased, codes
    freed."""
    connection = _opened(database)
    values: dict[str, str | int] = {
        "tonight": plan.tonight.isoformat(),
        "lineage": lineage,
        "guests": GUESTS,
        "kind": "p",
    }
    values["days"] = rows // PAST_EVENING + 2
    a_month_ago = dt.datetime.combine(plan.tonight, dt.time(), dt.UTC) - dt.timedelta(days=29)
    kept = int(a_month_ago.timestamp() * 1000)
    for first in range(0, rows, BATCH):
        with connection:
            after = connection.execute("SELECT coalesce(max(seq), 0) FROM reservation").get
            last = min(first + BATCH, rows)
            _insert(connection, _PAST, "NULL", _ERASED, {**values, "first": first, "last": last})
            connection.execute(_HISTORY, {"after": after, "lineage": lineage})
            connection.execute(
                _SCANS, {"after": after, "verdict": '{"result":"checked_in"}' + " " * 600}
            )
            event = connection.execute("SELECT coalesce(max(seq), 0) FROM event").get
            connection.execute(_EVENTS, {"after": after, "kept": kept})
            connection.execute(_DELIVERIES, {"event": event})
            connection.execute(_ATTEMPTS, {"event": event})
        progress(last)
    _closed(connection)


def supply() -> int:
    """How many guests there are to scan."""
    return TABLES * MINUTES_OF_A_DAY


def _insert(
    connection: apsw.Connection,
    columns: str,
    code: str,
    contacts: str,
    values: dict[str, str | int],
) -> None:
    after = connection.execute("SELECT coalesce(max(seq), 0) FROM reservation").get
    connection.execute(
        _INSERT.format(uuid=_UUID, columns=columns, code=code, contacts=contacts), values
    )
    connection.execute(_REQUESTS, {"after": after, "lineage": values["lineage"]})
    connection.execute(_HOLDS, {"after": after})


def _opened(database: Path) -> apsw.Connection:
    """Fast and unsafe, which a stopped box does not notice."""
    connection = apsw.Connection(str(database))
    connection.execute(
        "PRAGMA synchronous=OFF; PRAGMA cache_size=-1000000; PRAGMA temp_store=MEMORY"
    )
    connection.execute(
        "CREATE TEMP TABLE numbered AS "
        "SELECT row_number() OVER (ORDER BY position) - 1 AS position, id FROM venue_table"
    )
    connection.execute("CREATE UNIQUE INDEX temp.by_position ON numbered (position)")
    return connection


def _closed(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
